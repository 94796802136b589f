"""Compute the words of random generators, which have 64 bits, by four numbers of 16 bits in int32.

For runtimes that compute integers of 64 bits in fewer, or that have few operators for them. Sums,
products and quotients are below 2**17, so that they are right where a runtime divides in float32.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import bodies_of
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.operators.entries import entry_of
from pytensor_onnx.passes.matching import attributes_of, constant_of, producer_of, required
from pytensor_onnx.passes.node_walk import remove_unused

Words = list[ir.Value]
"""Numbers of 16 bits, the lowest first."""

_BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor"})

_BITS = 16
_MASK = 2**_BITS - 1
_COUNT = 4
_SMALL = ir.DataType.INT32
_LARGE = ir.DataType.UINT64
_SIGNED = (ir.DataType.INT64, _SMALL, ir.DataType.BOOL)


def split_words(graph: ir.Graph, scope: ModelScope) -> None:
    """Split the words that are made of numbers of 16 bits, and all that is computed of them.

    Words are made of signed integers that are cast, of numbers of 16 bits above all. Loops and
    branches take and return them as rows of four numbers; other users receive them whole.
    """
    _Splitter(scope).visit(graph)


class _Splitter:
    def __init__(self, scope: ModelScope) -> None:
        self.scope = scope
        self.words: dict[ir.Value, Words] = {}

    def visit(self, graph: ir.Graph, as_rows: Sequence[int] = ()) -> None:
        """Split the words of a graph, and return some of its outputs as rows."""
        done = [node for node in list(graph) if self.splits(node)]
        for i in as_rows:
            build = Builder(self.scope)
            graph.outputs[i] = _rows(build, self._of(build, graph.outputs[i]))
            name_values(build.nodes, self.scope.names)
            graph.extend(build.nodes)
        for node in reversed(done):
            (value,) = node.outputs
            if value.uses() or value.is_graph_output():
                build = Builder(self.scope)
                _insert(build, node, _joined(build, self.words[value], _LARGE))
            graph.remove(node, safe=True)
        remove_unused(graph)

    def _enter(self, node: ir.Node) -> None:
        """Split the words of the bodies of a node, which take and return them as rows."""
        taken, returned = _places(node)
        build = Builder(self.scope)
        for operand, _ in taken:
            rows = _rows(build, self._of(build, required(node.inputs[operand])))
            node.replace_input_with(operand, rows)
        _insert(build, node)
        known = self.words
        for body in bodies_of(node):
            # Words of outer values are split anew where a body needs them.
            self.words = dict(known)
            build = Builder(self.scope)
            for _, parameter in taken:
                self._open(build, body.inputs[parameter])
            name_values(build.nodes, self.scope.names)
            first = next(iter(body), None)
            if first is None:
                body.extend(build.nodes)
            else:
                body.insert_before(first, build.nodes)
            self.visit(body, [result for _, result in returned])
        self.words = known
        build = Builder(self.scope)
        for output, _ in returned:
            self._open(build, node.outputs[output])
        name_values(build.nodes, self.scope.names)
        assert node.graph is not None
        node.graph.insert_after(node, build.nodes)

    def _open(self, build: Builder, value: ir.Value) -> None:
        """Make a value rows of numbers; its users get the words, and others the whole ones."""
        uses, sizes = list(value.uses()), dims_of(value)
        value.type = ir.TensorType(_SMALL)
        value.shape = None if sizes is None else ir.Shape([*sizes, _COUNT])
        words = [build.Gather(value, np.int64(i), axis=-1) for i in range(_COUNT)]
        whole = _joined(build, words, _LARGE)
        for user, position in uses:
            user.replace_input_with(position, whole)
        if value.is_graph_output() and value.graph is not None:
            name, value.name = value.name, self.scope.names.unique("words")
            whole.name = name
            outputs = value.graph.outputs
            for i, output in enumerate(outputs):
                if output is value:
                    outputs[i] = whole
        self.words[whole] = words

    def splits(self, node: ir.Node) -> bool:
        """Put nodes for the words of a node before it, and return whether it can be removed."""
        if bodies_of(node):
            self._enter(node)
            return False
        build = Builder(self.scope)
        build.provenance = node.metadata_props
        found = self._small_number(build, node) or self._computed(build, node)
        if found is None:
            return False
        if isinstance(found, ir.Value):
            _insert(build, node, found)
        else:
            _insert(build, node)
            self.words[node.outputs[0]] = found
        return True

    def _small_number(self, build: Builder, node: ir.Node) -> Words | None:
        """Return the words of a cast integer; those of 16 bits have one word."""
        if node.op_type != "Cast" or node.outputs[0].dtype != _LARGE:
            return None
        x = required(node.inputs[0])
        kept = producer_of(x, "BitwiseAnd")
        if x.dtype != _SMALL or kept is None or _known(kept.inputs[1]) != _MASK:
            return _of_integer(build, x) if x.dtype in _SIGNED else None
        zero = build.Sub(x, x)
        return [x, zero, zero, zero]

    def _computed(self, build: Builder, node: ir.Node) -> Words | ir.Value | None:
        """Return the words of a result, or a result of another dtype; None if nothing is split."""
        large = [x for x in node.inputs if x is not None and x.dtype == _LARGE]
        if node.domain or not any(x in self.words for x in large) or len(node.outputs) > 1:
            return None
        if node.op_type == "Cast":
            words, dtype = self.words[large[0]], node.outputs[0].dtype
            return None if dtype is None else _joined(build, words, dtype)
        if entry_of(node).moves is not None:
            attributes = attributes_of(node)
            operands = [self._of(build, x) if x in large else [x] * _COUNT for x in node.inputs]
            rows = zip(*operands, strict=True)
            return [build.op(node.op_type, *row, **attributes) for row in rows]
        if node.op_type in _BITWISE or node.op_type == "Add":
            x, y = (self._of(build, x) for x in large)
            if node.op_type == "Add":
                return _sum(build, x, y)
            return [build.op(node.op_type, *pair) for pair in zip(x, y, strict=True)]
        moved = _moved(node)
        return None if moved is None else _shifted(build, self._of(build, moved[0]), moved[1])

    def _of(self, build: Builder, value: ir.Value) -> Words:
        """Return the words of a value, split here unless it is split already."""
        if value not in self.words:
            self.words[value] = self._split(build, value)
        return self.words[value]

    def _split(self, build: Builder, value: ir.Value) -> Words:
        constant = constant_of(value)
        if constant is not None:
            parts = ((constant >> np.uint64(_BITS * i)) & np.uint64(_MASK) for i in range(_COUNT))
            return [build.constant(part.astype("int32")) for part in parts]
        cast = producer_of(value, "Cast")
        source = None if cast is None else cast.inputs[0]
        if source is not None and source.dtype in _SIGNED:
            return _of_integer(build, source)
        shifted = (
            build.BitShift(value, np.uint64(_BITS * i), direction="RIGHT") for i in range(_COUNT)
        )
        return [build.cast(build.BitwiseAnd(x, np.uint64(_MASK)), _SMALL) for x in shifted]


def _places(node: ir.Node) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the words that bodies take and return.

    These are pairs of an operand and a parameter, and of an output and a result of a body.
    """
    first, shift = {"Loop": (2, 1), "If": (1, 0)}.get(node.op_type, (0, 0))
    elements = node.attributes.get_int("num_scan_inputs", 0)
    taken = [
        (i, i) for i, v in enumerate(node.inputs) if i >= first and v is not None and _is_large(v)
    ]
    states = len(node.inputs) - first - elements
    carried = len(node.outputs) if node.op_type == "If" else states
    returned = [(i, i + shift) for i, v in enumerate(node.outputs[:carried]) if _is_large(v)]
    return taken, returned


def _is_large(value: ir.Value) -> bool:
    return value.dtype == _LARGE


def _rows(build: Builder, words: Words) -> ir.Value:
    """Join words along a last axis."""
    return build.Concat(*(build.Unsqueeze(x, build.ints([-1])) for x in words), axis=-1)


def _of_integer(build: Builder, x: ir.Value) -> Words:
    """Return the words of a signed integer, which a runtime may know the lower 32 bits of."""
    rest, words = build.cast(x, ir.DataType.INT64), []
    for _ in range(_COUNT):
        low = build.BitwiseAnd(rest, _MASK)
        words.append(build.cast(low, _SMALL))
        # A multiple of the divisor, which float32 holds.
        rest = build.Div(build.Sub(rest, low), _MASK + 1)
    return words


def _joined(build: Builder, words: Words, dtype: ir.DataType) -> ir.Value:
    """Return whole numbers; those of float64 are rounded once."""
    if dtype == ir.DataType.BOOL:
        return build.Not(build.Equal(_any_bit(build, words), 0))
    if dtype == ir.DataType.FLOAT16:
        # Its range ends below the higher words.
        return build.cast(_joined(build, words, ir.DataType.FLOAT), dtype)
    count = _COUNT if dtype.is_floating_point() else max(1, dtype.bitwidth // _BITS)
    kept = [i for i in range(count) if not _is_zero(words[i])] or [0]
    number = dtype.numpy().type
    parts = [build.cast(words[i], dtype) for i in kept]
    scaled = [
        build.Mul(x, number(2 ** (_BITS * i))) if i else x for i, x in zip(kept, parts, strict=True)
    ]
    # The sums of two are exact in float64.
    sums = [reduce(build.Add, scaled[i : i + 2]) for i in range(0, len(scaled), 2)]
    return reduce(build.Add, reversed(sums))


def _is_zero(word: ir.Value) -> bool:
    """Return whether a word is zero in all places: a difference of equals, or a part of a mask."""
    if _known(word) == 0:
        return True
    difference, masked = producer_of(word, "Sub"), producer_of(word, "BitwiseAnd")
    if difference is not None:
        return difference.inputs[0] is difference.inputs[1]
    return masked is not None and any(_known(x) == 0 for x in masked.inputs)


def _any_bit(build: Builder, words: Words) -> ir.Value:
    low, high = (build.BitwiseOr(*words[i : i + 2]) for i in (0, 2))
    return build.BitwiseOr(low, high)


def _sum(build: Builder, x: Words, y: Words) -> Words:
    """Add from the lowest word on, with carries."""
    results: Words = []
    carry = None
    for left, right in zip(x, y, strict=True):
        total = build.Add(left, right)
        total = total if carry is None else build.Add(total, carry)
        carry = build.Div(total, _MASK + 1)
        results.append(build.BitwiseAnd(total, _MASK))
    return results


def _shifted(build: Builder, words: Words, places: int) -> Words:
    """Move bits to higher places, or to lower ones for negative ``places``."""
    whole, bits = divmod(places, _BITS)
    # The word that is moved to the place of the lowest one, and those beside it.
    moved = [_at(build, words, i - whole) for i in range(-1, _COUNT)]
    if bits == 0:
        return moved[1:]
    kept, rest = 2 ** (_BITS - bits) - 1, 2 ** (_BITS - bits)
    return [
        build.Add(build.Mul(build.BitwiseAnd(word, kept), 2**bits), build.Div(lower, rest))
        for lower, word in pairwise(moved)
    ]


def _at(build: Builder, words: Words, i: int) -> ir.Value:
    return words[i] if 0 <= i < _COUNT else build.Sub(words[0], words[0])


def _moved(node: ir.Node) -> tuple[ir.Value, int] | None:
    """Return the operand whose bits a node moves, and by how many places up; None for others."""
    if node.op_type not in ("BitShift", "Div", "Mul"):
        return None
    x, factor = map(required, node.inputs)
    if node.op_type == "Mul" and _known(factor) is None:
        x, factor = factor, x
    number = _known(factor)
    if number is None or _stretches(factor, x, node.outputs[0]):
        return None
    if node.op_type == "BitShift":
        return x, number if node.attributes.get_string("direction") == "LEFT" else -number
    if number == 0 or number & (number - 1):
        return None
    places = number.bit_length() - 1
    return x, places if node.op_type == "Mul" else -places


def _stretches(constant: ir.Value, x: ir.Value, result: ir.Value) -> bool:
    """Return whether a constant may give a result another shape than its other operand has."""
    dims, wanted, array = dims_of(x), dims_of(result), constant_of(constant)
    is_one = array is not None and array.size == 1
    if dims is None or wanted is None:
        return not is_one
    return len(dims) != len(wanted) or not (is_one or dims == wanted)


def _known(value: ir.Value | None) -> int | None:
    """Return the number that a constant has in all places."""
    array = constant_of(value)
    if array is None or array.size == 0 or array.dtype.kind not in "iu":
        return None
    first = int(array.flat[0])
    return first if (array == first).all() else None


def _insert(build: Builder, node: ir.Node, result: ir.Value | None = None) -> None:
    """Put emitted nodes before a node, and a result in the place of its output."""
    if result is not None:
        (value,) = node.outputs
        result.name, value.name, result.shape = value.name, None, value.shape
    nodes = build.nodes
    name_values(nodes, build.scope.names)
    assert node.graph is not None
    node.graph.insert_before(node, nodes)
    if result is not None:
        ir.convenience.replace_all_uses_with(value, result, replace_graph_outputs=True)
