"""Exact forms of operators, and known properties of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.binary_reduction import fold_last_axis, merge_axes
from pytensor_onnx.graph.builder import Builder, Described, Meaning
from pytensor_onnx.graph.traversal import is_bare, mark_guarded
from pytensor_onnx.operators.dims import Dim, constant_ints, dims_of, is_empty_with, is_positive
from pytensor_onnx.operators.entries import entry_of
from pytensor_onnx.operators.inference import attribute_of, dtype_of, signature
from pytensor_onnx.passes.matching import (
    attributes_of,
    constant_of,
    is_operator,
    producer_of,
    required,
)
from pytensor_onnx.passes.node_walk import emit_alike

LIFTED = ("ArgMax", "ArgMin", "CumProd", "CumSum", "Hardmax", "LogSoftmax", "Softmax")
"""Operators along one axis, which for a 0-d value can work on one element."""

_SIGNED = {ir.DataType.UINT32: ir.DataType.INT32, ir.DataType.UINT64: ir.DataType.INT64}
_INT64_BYTES = 8


def between_casts(
    build: Builder, node: ir.Node, dtype: ir.DataType, wider: ir.DataType
) -> list[ir.Value]:
    """Run an operator in a wider dtype, between two casts that lose nothing."""
    types = signature(node.op_type, build.scope.opset_version)
    assert types is not None
    operands = [
        build.cast(x, wider) if x is not None and _has(types.input_type(i), x, dtype) else x
        for i, x in enumerate(node.inputs)
    ]
    results = emit_alike(build, node, operands)
    return [
        build.cast(new, dtype) if old.dtype == dtype and new.dtype == wider else new
        for new, old in zip(results, node.outputs, strict=True)
    ]


def _has(variable: object, value: ir.Value, dtype: ir.DataType) -> bool:
    return isinstance(variable, str) and value.dtype == dtype


def where_bool(build: Builder, node: ir.Node) -> ir.Value:
    """Select between bool values by logic."""
    condition, x, y = node.inputs
    return build.Or(build.And(condition, x), build.And(build.Not(condition), y))


def cosine(build: Builder, node: ir.Node) -> ir.Value:
    """Return a cosine with an error of 2e-16, by a sine whose argument is exact."""
    sine = build.Sin(build.Mul(required(node.inputs[0]), 0.5))
    return build.Sub(1, build.Mul(2, build.Mul(sine, sine)))


def compress(build: Builder, node: ir.Node) -> ir.Value:
    """Gather the elements at the positions where a condition is true."""
    x, condition = node.inputs
    positions = build.Reshape(build.NonZero(condition), [-1])
    axis = node.attributes.get_int("axis")
    if axis is None:
        x, axis = build.Reshape(x, [-1]), 0
    return build.Gather(x, positions, axis=axis)


def is_infinite(build: Builder, node: ir.Node) -> ir.Value:
    """Compare the absolute value with infinity; no emitted `IsInf` asks for one sign alone."""
    x = required(node.inputs[0])
    return build.Equal(x if producer_of(x, "Abs") else build.Abs(x), np.inf)


def where_unsigned(build: Builder, node: ir.Node) -> ir.Value:
    """Select between integers as ``c * x + (1 - c) * y``, which is exact modulo the range."""
    condition, x, y = node.inputs
    c = build.cast(required(condition), dtype_of(x))
    return build.Add(build.Mul(c, x), build.Mul(build.Sub(1, c), y))


def is_zero_dim(node: ir.Node) -> bool:
    """Return whether the first operand is known to be 0-d."""
    return bool(node.inputs) and dims_of(node.inputs[0]) == ()


def lift_zero_dim(build: Builder, node: ir.Node) -> ir.Value:
    """Run an operator along the axis of a vector of one element in place of a 0-d value."""
    x, *rest = node.inputs
    attributes = attributes_of(node)
    if "axis" in attributes:
        attributes["axis"] = 0
    lifted = build.op(node.op_type, build.Unsqueeze(x, [0]), *rest, **attributes)
    if node.op_type in ("ArgMax", "ArgMin") and not attribute_of(node, "keepdims"):
        return lifted
    return build.Squeeze(lifted, [0])


def integer_sum(build: Builder, node: ir.Node) -> ir.Value:
    """Sum integers as a product with a column of ones: exact, and wrapping like NumPy's sum.

    Unsigned integers are summed as signed ones, whose sums have the same bits.
    """
    x = required(node.inputs[0])
    wide = ir.DataType.INT64 if dtype_of(x).itemsize == _INT64_BYTES else ir.DataType.INT32
    merged = _merge_reduced(build, node, build.cast(x, wide))
    dims = build.dims(merged)
    rank, size = len(dims), dims[-1]
    one = build.constant(np.ones((), wide.numpy()))
    if isinstance(size, int):
        column = build.Expand(one, build.ints([size, 1]))
    else:
        length = build.Shape(merged, start=rank - 1)
        column = build.Expand(one, build.Concat(length, build.ints([1]), axis=0))
    total = build.Squeeze(build.MatMul(merged, column), build.ints([rank - 1]))
    return _restore(build, node, build.cast(total, dtype_of(x)))


def integer_product(build: Builder, node: ir.Node) -> ir.Value:
    """Multiply elements in pairs, then the products, recursively."""
    merged = _merge_reduced(build, node, required(node.inputs[0]))
    return _restore(build, node, fold_last_axis(build, merged, "Mul", 1))


def product_of_steps(build: Builder, node: ir.Node) -> ir.Value:
    """Multiply integers of an axis of unknown size in a Scan, which more runtimes have than loops.

    A Scan of no steps is refused, so that one multiplies a one first.
    """
    merged = _merge_reduced(build, node, required(node.inputs[0]))
    *others, size = build.dims(merged)
    if isinstance(size, int):
        return integer_product(build, node)
    one = build.constant(np.ones((), dtype_of(merged).numpy()))
    start = build.Expand(one, build.Shape(merged, start=0, end=len(others))) if others else one
    rows = build.Transpose(merged, perm=[len(others), *range(len(others))])
    whole = build.Concat(build.Unsqueeze(start, build.ints([0])), rows, axis=0)
    (product,) = build.scan([start], [whole], lambda body, so_far, row: body.Mul(so_far, row))
    return _restore(build, node, product)


def _axes(node: ir.Node, rank: int) -> list[int]:
    axes = constant_ints(node.inputs[1]) if len(node.inputs) > 1 else None
    return list(range(rank)) if axes is None else sorted(a % rank for a in axes)


def _merge_reduced(build: Builder, node: ir.Node, x: ir.Value) -> ir.Value:
    """Return the operand with the reduced axes merged into the last one."""
    dims = dims_of(x)
    if dims is not None:
        return merge_axes(build, x, _axes(node, len(dims)))
    if len(node.inputs) > 1:
        raise build.unsupported(
            f"{node.op_type} of integers along axes of an array of unknown rank"
        )
    flat = build.Reshape(x, build.ints([-1]))
    flat.shape = ir.Shape([None])
    return flat


def _restore(build: Builder, node: ir.Node, result: ir.Value) -> ir.Value:
    """Restore the reduced axes with size one if the reduction keeps them."""
    if not attribute_of(node, "keepdims"):
        return result
    dims = dims_of(node.inputs[0])
    return build.Unsqueeze(result, build.ints(_axes(node, len(dims or ()))))


def nan_reduction(build: Builder, node: ir.Node) -> ir.Value:
    """Reduce to NaN, or to the position of the first NaN, if an element is NaN."""
    return NAN_REDUCTIONS[node.op_type](build, node)


def may_skip_nan(node: ir.Node) -> bool:
    """Return whether an operator is not guarded yet, and an element may be NaN."""
    return is_bare(node) and not is_never_nan(node.inputs[0])


def nan_extremum(build: Builder, node: ir.Node) -> ir.Value:
    """Reduce to NaN if an element is NaN.

    A sum of numbers of one sign is NaN only then: infinities do not cancel.
    """
    keepdims = attribute_of(node, "keepdims")
    by_sum = has_one_sign(node.inputs[0])

    def body(inner: Builder, x: ir.Value, *axes: ir.Value) -> ir.Value:
        if by_sum:
            any_nan = inner.IsNaN(inner.ReduceSum(x, *axes, keepdims=keepdims))
        else:
            is_nan = inner.Cast(inner.IsNaN(x), to=int(ir.DataType.UINT8))
            any_nan = inner.Cast(
                inner.ReduceMax(is_nan, *axes, keepdims=keepdims), to=int(ir.DataType.BOOL)
            )
        extremum = inner.op(node.op_type, x, *axes, keepdims=keepdims)
        mark_guarded(extremum)
        return inner.Where(any_nan, float("nan"), extremum)

    operands = [x for x in node.inputs if x is not None]
    name = f"{node.op_type}KeepDims" if keepdims else node.op_type
    name += "OfOneSign" if by_sum else ""
    variant = f"{dtype_of(operands[0]).numpy()}{'' if len(operands) > 1 else '_all'}"
    meaning = Meaning(node.op_type, attributes={"keepdims": keepdims})
    described = Described(meaning=meaning)
    return build.call(name, body, *operands, variant=variant, described=described)


def nan_arg_extremum(build: Builder, node: ir.Node) -> ir.Value:
    """Return the position of the first NaN, if any."""
    (x,) = node.inputs
    attributes = attributes_of(node)
    is_nan = build.Cast(build.IsNaN(x), to=int(ir.DataType.UINT8))
    axis, keepdims = attribute_of(node, "axis"), attribute_of(node, "keepdims")
    any_nan = build.Cast(
        build.ReduceMax(is_nan, build.ints([axis]), keepdims=keepdims), to=int(ir.DataType.BOOL)
    )
    position = build.op(node.op_type, x, **attributes)
    mark_guarded(position)
    first_nan = build.ArgMax(is_nan, axis=axis, keepdims=keepdims)
    return build.Where(any_nan, first_nan, position)


def may_be_empty(node: ir.Node) -> bool:
    """Return whether the inner dimension of a MatMul may be 0."""
    return is_bare(node) and not any(map(is_positive, _inner_sizes(node)))


def may_be_unwritten(node: ir.Node) -> bool:
    """Return whether a MatMul may leave the zeros of an empty product unwritten.

    A product with another dimension of zero has no elements, but has the length of a batch of one
    on the left where that is repeated.
    """
    if not may_be_empty(node):
        return False
    left, right = (dims_of(x) for x in node.inputs)
    batches = zip(reversed((left or ())[:-2]), reversed((right or ())[:-2]), strict=False)
    is_repeated = right is None or any(a == 1 and b != 1 for a, b in batches)
    sizes = dims_of(node.outputs[0]) or ()
    if not is_repeated and any(is_empty_with(size, sizes) for size in _inner_sizes(node)):
        return False
    ranks = [None if dims is None else len(dims) for dims in (left, right)]
    return ranks[1] != 2 and ranks != [1, 1]


def _inner_sizes(node: ir.Node) -> list[Dim]:
    left, right = (dims_of(x) for x in node.inputs)
    return [*(left or ())[-1:], *(right or ())[-2:-1]]


def signed_product(build: Builder, node: ir.Node) -> ir.Value:
    """Multiply unsigned integers as signed ones, whose products and sums have the same bits."""
    x, y = node.inputs
    dtype = dtype_of(x)
    signed = _SIGNED[dtype]
    return build.cast(
        build.MatMul(build.cast(required(x), signed), build.cast(required(y), signed)), dtype
    )


def batched_product(build: Builder, node: ir.Node) -> ir.Value:
    """Multiply, with zeros for an empty sum.

    The runtime does not repeat a matrix on the left then, so the zeros have the batch axes.
    """
    x, y = node.inputs
    product = build.MatMul(x, y)
    mark_guarded(product)
    left, right = dims_of(x), dims_of(y)
    zeros: ir.Value | int = 0
    if left is not None and right is not None and 1 in left[:-2]:
        batch = build.sizes(required(y), 0, len(right) - 2)
        sizes = build.Concat(batch, build.ints([1, 1]), axis=0) if right[2:] else build.ints([1, 1])
        zeros = build.ConstantOfShape(sizes, value=np.zeros(1, dtype_of(x).numpy()))
    return build.Where(build.Equal(build.Shape(x, start=-1), 0), zeros, product)


def multiplies_vectors(node: ir.Node) -> bool:
    """Return whether both factors are vectors."""
    return all(len(dims_of(x) or ()) == 1 for x in node.inputs)


def product_of_vectors(build: Builder, node: ir.Node) -> ir.Value:
    """Sum the products of elements."""
    return build.ReduceSum(build.Mul(*node.inputs), keepdims=0)


def nan_log_softmax(build: Builder, node: ir.Node) -> ir.Value:
    """Subtract the logarithm of the sum of exponentials, which is NaN if an element is.

    The maximum, which is subtracted first against overflow, may ignore NaN.
    """
    x = required(node.inputs[0])
    axis = build.ints([attribute_of(node, "axis")])
    largest = build.ReduceMax(x, axis, keepdims=1)
    mark_guarded(largest)
    below = build.Sub(x, largest)
    total = build.ReduceSum(build.Exp(below), axis, keepdims=1)
    return build.Sub(below, build.Log(total))


NAN_REDUCTIONS = {
    "ReduceMax": nan_extremum,
    "ReduceMin": nan_extremum,
    "ArgMax": nan_arg_extremum,
    "ArgMin": nan_arg_extremum,
}


def shrink(build: Builder, node: ir.Node) -> ir.Value:
    """Move elements towards zero by ``bias``, and to zero where they are within ``lambd`` of it."""
    x = required(node.inputs[0])
    bias, lambd = attribute_of(node, "bias"), attribute_of(node, "lambd")
    above = build.Where(build.Greater(x, lambd), build.Sub(x, bias), build.number_like(x, 0))
    return build.Where(build.Less(x, -lambd), build.Add(x, bias), above)


# Find values whose elements are never NaN or never negative, whatever the inputs are.
#
# Differences, quotients and products are NaN for some infinities, so most computed values may be
# NaN. A search visits at most `MOST_VALUES` values.

MOST_VALUES = 64
"""Largest number of values that a search visits; beyond it the answer is unknown."""
LARGEST = 65_536
"""Largest number of elements of a constant that is searched."""

Sources = Sequence[ir.Value | None] | None
"""Values on whose elements the answer depends: empty if it is yes, None if it is unknown."""


def is_never_nan(value: ir.Value | None) -> bool:
    """Return whether no element of a value is NaN, whatever the inputs are.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",))
    >>> count = build.cast(build.Greater(x, 0), "float32")
    >>> [is_never_nan(y) for y in (x, build.Exp(count), build.Sub(count, count))]
    [False, True, False]
    """
    return _holds(value, _sources_of_nan)


def is_finite(value: ir.Value | None) -> bool:
    """Return whether all elements of a value are finite, as far as integers show.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.INT8, shape=("n",))
    >>> y = build.DequantizeLinear(x, np.float32(0.5))
    >>> is_finite(build.Relu(y)), is_finite(build.Exp(y))
    (True, False)
    """
    return _holds(value, _sources_of_infinity)


def is_never_negative(value: ir.Value | None) -> bool:
    """Return whether all elements of a value are NaN, zero or positive.

    Examples
    --------
    >>> from pytensor_onnx.graph.builder import Builder, ModelScope
    >>> build = Builder(ModelScope(21))
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",))
    >>> y = build.Abs(x)
    >>> [is_never_negative(z) for z in (x, y, build.Mul(x, x), build.Mul(x, y))]
    [False, True, True, False]
    """
    return _holds(value, _sources_of_sign)


def has_one_sign(value: ir.Value | None) -> bool:
    """Return whether no two elements of a value have opposite signs.

    Infinities then do not cancel in a sum.
    """
    negation = producer_of(value, "Neg")
    return is_never_negative(value if negation is None else negation.inputs[0])


def _holds(value: ir.Value | None, sources_of: Callable[[ir.Value], Sources]) -> bool:
    """Return whether a property holds for a value and all values that it depends on."""
    waiting, seen = [value], {value}
    while waiting:
        current = waiting.pop()
        sources = None if current is None or len(seen) > MOST_VALUES else sources_of(current)
        if sources is None:
            return False
        waiting += [x for x in sources if x not in seen]
        seen |= set(sources)
    return True


def _sources_of_nan(value: ir.Value) -> Sources:
    """Return the operands that a value takes NaN from."""
    if value.dtype is not None and (value.dtype.is_integer() or value.dtype == ir.DataType.BOOL):
        return ()
    node = value.producer()
    if node is None:
        return _if_constant(value, lambda array: not np.isnan(array).any())
    if node.domain:
        return None
    if node.op_type == "Where":
        condition, x, y = node.inputs
        test = None if condition is None else condition.producer()
        is_guard = test is not None and test.op_type == "IsNaN" and test.inputs[0] is y
        return (x,) if is_guard else (x, y)
    return _operands(node, entry_of(node).numbers)


def _sources_of_infinity(value: ir.Value) -> Sources:
    """Return the operands that a value takes NaN and infinities from."""
    node = value.producer()
    if node is None:
        return _if_constant(value, lambda array: bool(np.isfinite(array).all()))
    return _operands(node, entry_of(node).finite)


def _sources_of_sign(value: ir.Value) -> Sources:
    """Return the operands that a value takes negative numbers from."""
    node = value.producer()
    if node is None:
        return _if_constant(value, lambda array: not (array < 0).any())
    if is_operator(node, "Mul") and node.inputs[0] is node.inputs[1]:
        return ()
    return _operands(node, entry_of(node).sign)


def _operands(node: ir.Node, those: slice | None) -> Sources:
    return None if those is None else node.inputs[those]


def _if_constant(value: ir.Value, condition: Callable[[np.ndarray], bool]) -> Sources:
    """Return an empty tuple if the value is a constant that meets a condition, otherwise None."""
    array = constant_of(value)
    return () if array is not None and array.size <= LARGEST and condition(array) else None
