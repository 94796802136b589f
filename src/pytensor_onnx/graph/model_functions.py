"""Build model-local functions from Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import getdoc

import onnx_ir as ir

from pytensor_onnx.graph.dims import Dims
from pytensor_onnx.graph.domains import DOMAINS, FUNCTION_DOMAIN, STANDARD_DOMAIN
from pytensor_onnx.graph.names import Names, name_values, rename_in_subgraphs, snake_case
from pytensor_onnx.graph.scope import LocalFunction, live_nodes
from pytensor_onnx.graph.subgraphs import Body, SubgraphBuilder, parameter_names


@dataclass(frozen=True)
class Described:
    """Facts of a model-local function beside its body.

    Attributes
    ----------
    source
        Python function whose docstring documents the model-local function, and whose parameters
        name its parameters; the body unless given.
    parameters
        Other names for the parameters, None for those without one.
    is_definition
        Whether the function is an elementwise definition; see `LocalFunction`.
    is_standard
        Whether name and variant tell all that the function depends on but for sizes and ranks.
    dtypes
        Dtypes of the results, if they are known without the body.
    """

    source: Callable | None = None
    parameters: Sequence[str | None] = ()
    is_definition: bool = False
    is_standard: bool = False
    dtypes: Sequence[str] = ()


def define(
    inner: SubgraphBuilder,
    name: str,
    body: Body,
    operands: Sequence[ir.Value],
    shapes: Sequence[Dims] | None,
    described: Described,
) -> LocalFunction:
    """Return the model-local function of a body.

    Parameters
    ----------
    inner
        Builder of the function, without nodes.
    name
        Name wanted for the function.
    body
        Receives the builder and one value for each operand.
    operands
        Values of the dtypes that the function takes.
    shapes
        Dimensions of the operands that the body may rely on.
    described
        Documentation of the function, names of its parameters, dtypes of its results.
    """
    names, source = Names(), described.source or body
    parameters = described.parameters or parameter_names(source, len(operands))
    inputs = [
        ir.Value(name=names.unique(wanted or ("x" if len(operands) == 1 else f"x{i}")), type=x.type)
        for i, (wanted, x) in enumerate(zip(parameters, operands, strict=True))
    ]
    for value, dims in zip(inputs, shapes or (), strict=False):
        value.shape = ir.Shape(dims)
    returned = body(inner, *inputs)
    returns_list = not isinstance(returned, ir.Value)
    results = inner.own_results([returned] if isinstance(returned, ir.Value) else returned)
    for value in results:
        node = value.producer()
        if node is not None and node.name is None:
            node.name = names.unique(snake_case(node.op_type))
        value.name = names.unique("result")
    nodes = live_nodes(inner.nodes, results)
    rename_in_subgraphs(nodes, names)
    name_values(nodes, names)
    graph = ir.Graph(
        inputs,
        results,
        nodes=nodes,
        opset_imports={"": inner.scope.opset_version, **DOMAINS},
    )
    is_called = described.is_standard and name in inner.scope.kernel_calls
    unique = name if is_called else inner.scope.function_names.unique(name)
    is_standard = described.is_standard and unique == name
    domain = STANDARD_DOMAIN if is_standard else FUNCTION_DOMAIN
    function = ir.Function(domain, unique, graph=graph, attributes=[])
    function.doc_string = _summary(source)
    return LocalFunction(function, returns_list, described.is_definition)


def _summary(function: Callable) -> str | None:
    """Return the first line of a docstring."""
    return (getdoc(function) or "").partition("\n")[0] or None
