"""Bounds of integers, from the operators that compute them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from pytensor_onnx.operators.elementwise import BOUNDS_OF_DTYPES
from pytensor_onnx.operators.entries import entry_of
from pytensor_onnx.operators.facts import SIZE, UNKNOWN, Interval
from pytensor_onnx.operators.inference import dtype_of

MOST_VALUES = 64
"""Largest number of values that a search visits; beyond it bounds are unknown."""

INT32 = BOUNDS_OF_DTYPES[ir.DataType.INT32]


class Bounds:
    """Bounds of the integers of a model, each computed once.

    Parameters
    ----------
    most
        Largest number of values whose bounds are computed; those of others are unknown.

    Examples
    --------
    >>> text = "m (float[n, k] x) => (int64[k, 1] y) {i = ArgMax(x) y = Add(i, i)}"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    >>> Bounds().of(model.graph.outputs[0])
    (0, 1073741824)
    """

    def __init__(self, most: int | None = None) -> None:
        self._known: dict[ir.Value, Interval] = {}
        self._most, self._visited = most, 0

    def of(self, value: ir.Value | None) -> Interval:
        """Return the smallest and the largest element that a value may have."""
        if value is None:
            return UNKNOWN
        if value not in self._known:
            if self._visited == self._most:
                return UNKNOWN
            self._visited += 1
            low, high = self._computed(value)
            # Other results wrap around.
            least, most = BOUNDS_OF_DTYPES.get(value.dtype, UNKNOWN) if value.dtype else UNKNOWN
            is_inside = least <= low <= high <= most
            self._known[value] = (low, high) if is_inside else (least, most)
        return self._known[value]

    def fit(self, value: ir.Value | None) -> bool:
        """Return whether int32 holds all elements without clipping."""
        low, high = self.of(value)
        return INT32[0] < low and high < INT32[1]

    def _computed(self, value: ir.Value) -> Interval:
        array = ir.convenience.get_const_tensor(value)
        if array is not None:
            numbers = array.numpy()
            return (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
        node = value.producer()
        if node is None or node.domain:
            return UNKNOWN
        entry = entry_of(node)
        if value in node.outputs[entry.positions]:
            return SIZE
        if entry.moves is not None:
            return _union([self.of(x) for x in node.inputs[entry.moves]])
        if node.op_type == "If":
            branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
            results = [graph.outputs[node.outputs.index(value)] for graph in branches]
            return _union(list(map(self.of, results)))
        rule = entry.bounds
        return UNKNOWN if rule is None else rule(node, list(map(self.of, _integers(node))))


def fit_int32(node: ir.Node) -> bool:
    """Return whether all elements of the operands of a node are inside of int32."""
    return all(map(Bounds(MOST_VALUES).fit, node.inputs))


def never_negative(*values: ir.Value) -> bool:
    """Return whether no element of some values is negative, as sizes are not."""
    bounds = Bounds(MOST_VALUES)
    return all(bounds.of(value)[0] >= 0 for value in values)


def is_count(node: ir.Node) -> bool:
    """Return whether a node sums zeros and ones."""
    if node.op_type != "ReduceSum" or node.outputs[0].dtype != ir.DataType.INT64:
        return False
    return Bounds().of(node.inputs[0]) == (0, 1)


def _integers(node: ir.Node) -> Sequence[ir.Value]:
    dtype = dtype_of(node.outputs[0])
    return [x for x in node.inputs if x is not None and x.dtype in (dtype, None)]


def _union(operands: Sequence[Interval]) -> Interval:
    return min(low for low, _ in operands), max(high for _, high in operands)
