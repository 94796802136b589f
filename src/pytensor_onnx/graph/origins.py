"""Find the part of the user's graph that a node of a model comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import onnx_ir as ir

from pytensor_onnx.graph.domains import DOMAINS
from pytensor_onnx.graph.traversal import all_nodes

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

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
