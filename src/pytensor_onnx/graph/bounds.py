"""Bounds of integers, from the operators that compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.operators.inference import dtype_of

Interval = tuple[int, int]

LARGEST_SIZE = 2**29
"""Largest size and position: two arrays of 4 bytes an element fill the memory of WebAssembly."""

MOST_VALUES = 64
"""Largest number of values that a search visits; beyond it bounds are unknown."""

INT32: Interval = (-(2**31), 2**31 - 1)
UNKNOWN: Interval = (-(2**63), 2**63 - 1)

_SIZE: Interval = (0, LARGEST_SIZE)
_POSITIONS = {
    "ArgMax": {0},
    "ArgMin": {0},
    "NonMaxSuppression": {0},
    "NonZero": {0},
    "Shape": {0},
    "Size": {0},
    "TopK": {1},
    "Unique": {1, 2, 3},
}
"""Outputs that are sizes or positions, by operator."""

MOVING = frozenset(
    (
        *("Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape"),
        *("Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
"""Operators whose results are elements of their first operand."""

_OF_DTYPES: dict[ir.DataType, Interval] = {ir.DataType.BOOL: (0, 1)} | {
    ir.DataType[name]: (int(np.iinfo(name.lower()).min), int(np.iinfo(name.lower()).max))
    for name in ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32", "UINT64")
}


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
            least, most = _OF_DTYPES.get(value.dtype, UNKNOWN) if value.dtype else UNKNOWN
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
        if value.index() in _POSITIONS.get(node.op_type, ()):
            return _SIZE
        if node.op_type in MOVING:
            return self.of(node.inputs[0])
        if node.op_type == "If":
            branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
            results = [graph.outputs[node.outputs.index(value)] for graph in branches]
            return _union(node, list(map(self.of, results)))
        rule = _RULES.get(node.op_type)
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


def _cast(node: ir.Node, _: Sequence[Interval]) -> Interval:
    return _OF_DTYPES.get(dtype_of(node.inputs[0]), UNKNOWN)


def _union(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    return min(low for low, _ in operands), max(high for _, high in operands)


def _add(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    (a, b), (c, d) = operands
    return a + c, b + d


def _subtract(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    (a, b), (c, d) = operands
    return a - d, b - c


def _multiply(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    x, y = operands
    products = [a * b for a in x for b in y]
    return min(products), max(products)


def _negate(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    ((low, high),) = operands
    return -high, -low


def _divide(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    """Divide by numbers from one on; a run fails at zero."""
    (low, high), (divisor, _last) = operands
    if divisor < 0:
        return UNKNOWN
    smallest = max(divisor, 1)
    return min(-(-low // smallest), 0), max(high // smallest, 0)


def _modulo(node: ir.Node, operands: Sequence[Interval]) -> Interval:
    _, (divisor, last) = operands
    fmod = node.attributes.get("fmod")
    has_own_sign = divisor < 0 or (fmod is not None and fmod.as_int())
    return UNKNOWN if has_own_sign else (0, max(last - 1, 0))


def _range(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    """Count from the start, by no more steps than an array has elements."""
    (low, high), (first, last), (least, most) = operands
    if least < 0:
        return min(low, first), max(high, last)
    return low, min(max(high, last), high + LARGEST_SIZE * most)


def _extremum(choice: Callable[..., int]) -> Callable[[ir.Node, Sequence[Interval]], Interval]:
    return lambda _, operands: (choice(a for a, _ in operands), choice(b for _, b in operands))


def _count(_: ir.Node, operands: Sequence[Interval]) -> Interval:
    """Sum zeros and ones."""
    return _SIZE if operands[0] == (0, 1) else UNKNOWN


_RULES: dict[str, Callable[[ir.Node, Sequence[Interval]], Interval]] = {
    "Add": _add,
    "Cast": _cast,
    "Concat": _union,
    "CumSum": _count,
    "Div": _divide,
    "Max": _extremum(max),
    "Min": _extremum(min),
    "Mod": _modulo,
    "Mul": _multiply,
    "Neg": _negate,
    "ReduceSum": _count,
    "Range": _range,
    "Sub": _subtract,
    "Where": _union,
}
