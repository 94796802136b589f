"""Split short vectors in loops into vectors of one element where single elements are read.

Some states, as of differential equations, are stacked from numbers and read by position.
Each read is a Gather, and each number an Unsqueeze before the Concat. One Split reads all elements,
and vectors of one element need no Unsqueeze. A call of an operator takes as long as hundreds of
arithmetic operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import is_elementwise
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.rewriting import given, int_attribute, remove_unused, store_constants

LONGEST = 16
"""Largest number of elements of a vector that is split."""
VECTORS_FOR_A_CALL = 5
"""Number of operators whose additional cost on vectors of one element equals one call."""


@dataclass
class _Group:
    """Numbers that are computed from each other, and the vectors that contain them.

    Attributes
    ----------
    reads
        For each vector, the nodes that read an element, and the positions of the elements.
    numbers
        The elements, and results of operators on them; they become vectors of one element.
    """

    reads: dict[ir.Value, list[tuple[ir.Node, int]]] = field(default_factory=dict)
    numbers: dict[ir.Value, None] = field(default_factory=dict)

    def join(self, other: _Group) -> None:
        """Take over the numbers of another group."""
        for vector, nodes in other.reads.items():
            self.reads.setdefault(vector, []).extend(nodes)
        self.numbers |= other.numbers

    def gains(self) -> bool:
        """Return whether the calls that are saved outweigh the cost of operators on vectors."""
        saved = sum(len(nodes) - 1 for nodes in self.reads.values())
        saved += sum(len(_vectors_of(x)) for x in self.numbers)
        saved -= sum(bool(self.uses_as_number(x)) or x.is_graph_output() for x in self.numbers)
        return saved * VECTORS_FOR_A_CALL > len(self.numbers)

    def uses_as_number(self, number: ir.Value) -> list[tuple[ir.Node, int]]:
        """Return the uses by nodes that do not accept a vector of one element."""
        vectors = _vectors_of(number)
        return [
            (node, i)
            for node, i in number.uses()
            if node not in vectors and node.outputs[0] not in self.numbers
            if not (_is_of_elements(node) and dims_of(node.outputs[0]))
        ]


def split_vectors(model: ir.Model, scope: ModelScope) -> int:
    """Split vectors in the bodies of loops.

    Parameters
    ----------
    model
        Model to change in place.
    scope
        Names and constants of the model.

    Returns
    -------
    int
        Number of vectors that are split.
    """
    count = 0
    for node in list(all_nodes(model.graph)):
        if node.op_type in ("Loop", "Scan") and not node.domain:
            body = node.attributes["body"].as_graph()
            groups = [group for group in _groups(body) if group.gains()]
            for group in groups:
                _split(body, group, scope)
                count += len(group.reads)
            if groups:
                remove_unused(body)
    if count:
        store_constants(model.graph, scope)
    return count


def _groups(body: ir.Graph) -> list[_Group]:
    """Return the groups of numbers of a body."""
    of_value: dict[ir.Value, _Group] = {}
    for node in body:
        number, read = node.outputs[0], _read(node, body)
        if read is not None:
            vector, position = read
            # The elements of a vector are one group, as one Split reads them all.
            group = of_value.setdefault(vector, _Group())
            group.reads.setdefault(vector, []).append((node, position))
        elif _is_of_elements(node) and dims_of(number) == ():
            groups = {id(of_value[x]): of_value[x] for x in node.inputs if x in of_value}
            if not groups:
                continue
            group, *others = groups.values()
            for other in others:
                group.join(other)
                of_value |= dict.fromkeys((*other.reads, *other.numbers), group)
        else:
            continue
        group.numbers[number] = None
        of_value[number] = group
    return list({id(group): group for group in of_value.values()}.values())


def _read(node: ir.Node, body: ir.Graph) -> tuple[ir.Value, int] | None:
    """Return the vector and the position of an element that a node reads."""
    if node.op_type != "Gather" or node.domain or int_attribute(node, "axis", 0) != 0:
        return None
    vector, index = map(given, node.inputs)
    dims = dims_of(vector)
    size = dims[0] if dims is not None and len(dims) == 1 else None
    if (
        not isinstance(size, int)
        or size > LONGEST
        or dims_of(index) != ()
        or index.const_value is None
        or vector.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
        or vector.graph is not body
    ):
        return None
    position = int(index.const_value.numpy())
    return (vector, position % size) if -size <= position < size else None


def _is_of_elements(node: ir.Node) -> bool:
    """Return whether a node is elementwise and accepts vectors of one element for all operands.

    The bounds of a Clip must be numbers.
    """
    if node.domain or node.op_type == "Clip":
        return False
    return is_elementwise(node.op_type) or node.op_type == "Cast"


def _vectors_of(number: ir.Value) -> list[ir.Node]:
    """Return the nodes that unsqueeze a number to a vector of one element in the same graph."""
    return [
        node
        for node, _ in number.uses()
        if node.op_type == "Unsqueeze"
        and not node.domain
        and node.graph is number.graph
        and dims_of(node.outputs[0]) == (1,)
        and not node.outputs[0].is_graph_output()
    ]


def _split(body: ir.Graph, group: _Group, scope: ModelScope) -> None:
    """Replace the numbers of a group by vectors of one element."""
    vectors = {number: number for number in group.numbers}
    for vector, reads in group.reads.items():
        parts = _parts(body, vector, reads, scope)
        vectors |= {node.outputs[0]: parts[position] for node, position in reads}
    for number, vector in vectors.items():
        as_number = group.uses_as_number(number)
        for node in _vectors_of(number):
            ir.convenience.replace_all_uses_with(node.outputs[0], vector)
            body.remove(node, safe=True)
        if as_number or number.is_graph_output():
            _squeeze(body, number, vector, as_number, scope)
        for node, i in number.uses():
            if vector is not number and (node, i) not in as_number:
                node.replace_input_with(i, vector)
        if vector is number:
            number.shape = ir.Shape((1,))


def _parts(
    body: ir.Graph, vector: ir.Value, reads: list[tuple[ir.Node, int]], scope: ModelScope
) -> Mapping[int, ir.Value]:
    """Return vectors of one element for the positions that are read."""
    builder, (first, position) = Builder(scope), reads[0]
    builder.provenance = dict(first.metadata_props)
    if all(other == position for _, other in reads):
        parts = {position: builder.Gather(vector, builder.ints([position]), axis=0)}
    else:
        size = builder.dims(vector)[0]
        assert isinstance(size, int)
        values = builder.op("Split", vector, builder.ints([1] * size), axis=0, outputs=size)
        parts = dict(enumerate(values))
    for part in parts.values():
        part.shape = ir.Shape((1,))
    name_values(builder.nodes, scope.names)
    body.insert_before(first, builder.nodes)
    return parts


def _squeeze(
    body: ir.Graph,
    number: ir.Value,
    vector: ir.Value,
    uses: list[tuple[ir.Node, int]],
    scope: ModelScope,
) -> None:
    """Squeeze a vector for some uses of a number, and for the outputs of the body."""
    builder = Builder(scope)
    again = ir.Value(type=number.type, shape=ir.Shape(()))
    squeeze = ir.Node("", "Squeeze", [vector, builder.ints([0])], outputs=[again])
    producer = number.producer()
    assert producer is not None
    name_values([squeeze], scope.names)
    body.insert_after(producer, [squeeze])
    for node, i in uses:
        node.replace_input_with(i, again)
    for i, output in enumerate(body.outputs):
        if output is number:
            body.outputs[i] = again
