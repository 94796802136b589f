"""List the nodes of a model and of its functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class ListedNode:
    """A node of a graph, of a subgraph or of a function.

    Attributes
    ----------
    name, operator
        Name and operator, which has its domain unless that is ONNX's own.
    inputs, outputs
        Names of the values; an input that is left out is empty.
    attributes
        Attributes as texts.
    """

    name: str
    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, str]

    def __str__(self) -> str:
        """Write the node as an assignment."""
        attributes = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        call = f"{self.operator}({', '.join(self.inputs)})"
        return f"{', '.join(self.outputs)} = {call}{f' [{attributes}]' if attributes else ''}"


@dataclass(frozen=True)
class ListedFunction:
    """A model-local function: its name, the names of its parameters and results, its nodes."""

    name: str
    inputs: list[str]
    outputs: list[str]
    nodes: list[ListedNode]

    def lines(self) -> Iterator[str]:
        """Yield the lines of a listing."""
        yield f"{self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}"
        yield from (f"  {node}" for node in self.nodes)


def listed_nodes(model: ir.Model) -> list[ListedNode]:
    """Return the nodes of the main graph, in order, each before the nodes of its subgraphs.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> x = ir.val("x")
    >>> node = ir.node("LeakyRelu", [x], {"alpha": 0.5}, num_outputs=1)
    >>> node.outputs[0].name = "y"
    >>> graph = ir.Graph([x], node.outputs, nodes=[node])
    >>> [str(listed) for listed in listed_nodes(ir.Model(graph, ir_version=10))]
    ['y = LeakyRelu(x) [alpha=0.5]']
    """
    from pytensor_onnx.graph.traversal import all_nodes

    return list(map(_listed, all_nodes(model.graph)))


def listed_functions(model: ir.Model) -> list[ListedFunction]:
    """Return the model-local functions with their nodes."""
    from pytensor_onnx.graph.traversal import all_nodes

    return [
        ListedFunction(
            f"{function.domain}::{function.name}",
            _names(function.inputs),
            _names(function.outputs),
            list(map(_listed, all_nodes(function))),
        )
        for function in model.functions.values()
    ]


def _listed(node: ir.Node) -> ListedNode:
    operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    attributes = {str(k): _text(v) for k, v in node.attributes.items()}
    return ListedNode(
        str(node.name or ""), operator, _names(node.inputs), _names(node.outputs), attributes
    )


def _names(values: Iterable[ir.Value | None]) -> list[str]:
    return ["" if value is None else str(value.name) for value in values]


def _text(attribute: ir.Attr) -> str:
    """Return the value of an attribute; tensors and graphs by their kind alone."""
    if attribute.is_ref():
        return f"@{attribute.ref_attr_name}"
    kind = attribute.type.name
    return f"<{kind.lower()}>" if "TENSOR" in kind or "GRAPH" in kind else str(attribute.value)
