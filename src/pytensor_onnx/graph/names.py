"""Unique names of the values, nodes and functions of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from keyword import iskeyword

import onnx_ir as ir

from pytensor_onnx.graph.traversal import all_nodes, bodies_of


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
