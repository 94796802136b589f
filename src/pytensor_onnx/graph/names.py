"""Names of values, and the lines that they come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from keyword import iskeyword
from typing import TYPE_CHECKING, NamedTuple

import onnx_ir as ir

from pytensor_onnx.graph.traversal import DOMAINS, all_nodes, bodies_of

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph


class Names:
    """Unique names of a model.

    Examples
    --------
    >>> names = Names()
    >>> names.unique("x"), names.unique("x"), names.unique("a (b)"), names.unique("log__")
    ('x', 'x_1', 'a_b', 'log__')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def reserve(self, name: str) -> None:
        """Reserve a name."""
        self._taken.add(name)

    def unique(self, wanted: str) -> str:
        """Return a unique identifier similar to the wanted name."""
        name = base = identifier(wanted)
        while name in self._taken:
            self._next[base] = self._next.get(base, 0) + 1
            name = f"{base}_{self._next[base]}"
        self._taken.add(name)
        return name


def identifier(wanted: str) -> str:
    """Return a name made from the wanted one, of letters, digits and _ . : / - only.

    Examples
    --------
    >>> identifier("1|group"), identifier("scale(x)"), identifier("?")
    ('1_group', 'scale_x', 'value')
    """
    base = re.sub(r"[^\w.:/\-]+", "_", wanted)
    return (base if base == wanted else base.strip("_")) or "value"


def name_values(nodes: Iterable[ir.Node], names: Names) -> None:
    """Name the nodes and values without a name after their operators."""
    for node in nodes:
        for value in node.outputs:
            if value.name is None:
                name = snake_case(node.op_type)
                # Tools that write a model as Python code use the names.
                value.name = names.unique(f"{name}_" if iskeyword(name) else name)
        if node.name is None:
            node.name = node.outputs[0].name


def names_in(function: ir.Function) -> Names:
    """Return the names of a function, which are separate from the names of the model."""
    names = Names()
    results = (v for node in function for v in node.outputs)
    for value in (*function.inputs, *results, *_values_in_subgraphs(function)):
        names.reserve(str(value.name))
    # The node of a result is not named after it.
    for node in all_nodes(function):
        names.reserve(str(node.name))
    return names


def rename_in_subgraphs(nodes: Iterable[ir.Node], names: Names) -> None:
    """Rename values of subgraphs whose names are used elsewhere, and nodes named after them."""
    for value in _values_in_subgraphs(nodes):
        if value.name:
            node, before = value.producer(), value.name
            value.name = names.unique(before)
            if node is not None and node.name == before:
                node.name = value.name


def snake_case(op_type: str) -> str:
    """Convert an operator's name to snake case.

    Examples
    --------
    >>> snake_case("ReduceSum"), snake_case("IsNaN"), snake_case("ScatterND")
    ('reduce_sum', 'is_nan', 'scatter_nd')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op_type.replace("NaN", "Nan")).lower()


def _values_in_subgraphs(nodes: Iterable[ir.Node]) -> Iterator[ir.Value]:
    for node in nodes:
        for body in bodies_of(node):
            yield from body.inputs
            yield from (value for inner in body for value in inner.outputs)
            yield from _values_in_subgraphs(body)


OP, VARIABLE = "pytensor.op", "pytensor.variable"
LOOP, LINE, NODE = "pytensor.loop", "pytensor.line", "pytensor.node"
_REPLACEMENT = "replacement"
Lines = Mapping[tuple[str, str], str]
"""Lines of the user's code by the names of function and node; the main graph has an empty name."""


class Place(NamedTuple):
    """A node and the name of the function that holds it, empty for the main graph."""

    node: ir.Node
    function: str = ""

    def line(self, lines: Lines) -> str:
        """Return the line of the user's code that made the node, or an empty text."""
        return lines.get((self.function, str(self.node.name)), "")


def take_lines(model: ir.Model) -> dict[tuple[str, str], str]:
    """Return the lines of code that made the nodes, and remove them from the model.

    Parameters
    ----------
    model
        Model that is complete: its nodes keep their names from here on.
    """
    lines = {}
    for place in places(model):
        line = place.node.metadata_props.pop(LINE, "")
        if line:
            lines[place.function, str(place.node.name)] = line
    return lines


def take_owners(model: ir.Model, fgraph: FunctionGraph) -> dict[str, Apply]:
    """Return the PyTensor node of each value, and remove it from the metadata.

    Parameters
    ----------
    model
        Model that is complete, made of the graph.
    fgraph
        The graph.
    """
    nodes = {str(id(node)): node for node in fgraph.apply_nodes}
    made_for = {place.node: place.node.metadata_props.pop(NODE, "") for place in places(model)}
    return {
        str(value.name): nodes[made_for[node]]
        for node in model.graph
        if made_for[node] in nodes
        for value in node.outputs
    }


def note_replacement(old: ir.Value, new: ir.Value) -> None:
    """Record that a value replaces another value of the model."""
    old.meta[_REPLACEMENT] = new


def present(value: ir.Value) -> ir.Value:
    """Return the value that stands for a value after all replacements.

    Examples
    --------
    >>> old, new = ir.val("old"), ir.val("new")
    >>> note_replacement(old, new)
    >>> present(old).name, present(new).name
    ('new', 'new')
    """
    while _REPLACEMENT in value.meta:
        value = value.meta[_REPLACEMENT]
    return value


def places(model: ir.Model) -> Iterator[Place]:
    """Yield all nodes of a model, of its subgraphs and of its functions."""
    for node in all_nodes(model.graph):
        yield Place(node)
    for function in model.functions.values():
        for node in all_nodes(function):
            yield Place(node, function.name)


def find_place(model: ir.Model, name: str) -> Place | None:
    """Return the node with a name in the runtime, None if unknown."""
    functions = sorted((f.name for f in model.functions.values()), key=len, reverse=True)
    for function in functions:
        inlined = re.match(rf"_inlfunc_{re.escape(function)}_(?:token_\d+_)?", name)
        if inlined:
            found = _longest_part(model, function, name[inlined.end() :])
            if found is not None:
                return found
    return _longest_part(model, "", name)


def _longest_part(model: ir.Model, function: str, name: str) -> Place | None:
    parts = [p for p in places(model) if p.function == function and _is_part(p.node.name, name)]
    return max(parts, key=lambda place: len(str(place.node.name)), default=None)


def _is_part(node: str | None, name: str) -> bool:
    """Return whether the name of a node is part of another name."""
    return bool(node) and bool(re.search(rf"(?<![^\W_]){re.escape(str(node))}(?![^\W_])", name))


def origins(model: ir.Model, place: Place, lines: Lines) -> list[tuple[Place, ...]]:
    """Return the node with the user's line, and the calls around it."""
    if not place.function or place.line(lines):
        return [(place,)]
    calls = [
        call
        for call in places(model)
        if call.node.op_type == place.function and call.node.domain in DOMAINS
    ]
    found = ((place, *outer) for call in calls for outer in origins(model, call, lines))
    return list(dict.fromkeys(found)) or [(place,)]
