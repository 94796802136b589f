"""Linear recurrences in blocks.

A loop computes the values again if one is infinite or NaN, if a factor is larger than one, where
rounded products would hide terms that cancel, or if products of factors below the normal numbers
change the values by more than rounding.
"""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.ops.loops import LinearRecurrence


@onnx_funcify.register(LinearRecurrence)
def lower_linear_recurrence(
    op: LinearRecurrence, node: Apply, build: Builder, x: ir.Value, factors: ir.Value
) -> ir.Value:
    """Call the definition for a factor that all steps share, or for a factor of each step."""
    if 0 in build.dims(x):
        return build.Identity(x)
    is_constant = node.inputs[1].type.shape[0] == 1
    if not is_constant:
        factors = _after_one(build, x, factors)
    if build.scope.is_portable:
        # OpenVINO and tract lack operators of the other forms.
        result = _in_steps(build, x, _first_one(build, x, factors) if is_constant else factors)
    elif not is_constant:
        result = build.call("LinearRecurrence", _linear_recurrence, x, factors)
    elif len(build.dims(x)) == 1:
        result = build.call("ConstantRecurrence", _constant_recurrence, x, factors)
    else:
        result = build.call("ConstantRecurrenceOfRows", _constant_recurrence_of_rows, x, factors)
    result.shape = x.shape
    return result


def _after_one(build: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    """Return factors after a row of ones, the factors of the first row."""
    row = build.Concat(build.ints([1]), build.Shape(x, start=1), axis=0)
    return build.Concat(build.Expand(build.number_like(x, 1), row), factors, axis=0)


def _constant_recurrence(build: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t]."""
    values = by_blocks(build, x, factor)
    is_normal = _is_normal_power(build, factor, x)
    return build.Reshape(_checked(build, x, factor, values, is_normal), build.ints([-1]))


def _constant_recurrence_of_rows(build: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] along the first axis."""
    values = doubled(build, x, factor)
    is_normal = build.ReduceMin(build.cast(_is_normal_power(build, factor, x), "int32"), keepdims=0)
    result = _checked(build, x, factor, values, build.cast(is_normal, "bool"))
    return build.Reshape(result, build.Shape(x))


def _is_normal_power(build: Builder, factor: ir.Value, x: ir.Value) -> ir.Value:
    """Return where a factor is at most one, and its power for all steps a normal number."""
    # A quotient by -Log(1) would be minus infinity.
    decay = build.Sub(build.number_like(x, 0), build.Log(build.Abs(factor)))
    most_steps = build.Div(build.number_like(x, -_log_of_smallest(x)), decay)
    length = build.cast(build.Shape(x, start=0, end=1), dtype_of(x).numpy())
    return build.LessOrEqual(length, most_steps)


def _linear_recurrence(build: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    """Return y[t] = factors[t] * y[t - 1] + x[t] along the first axis."""
    values, products = _doubled(build, x, factors)
    # Where no factor is above one, the product of all of them is the smallest.
    last = build.Abs(build.Gather(products, build.ints([-1]), axis=0))
    smallest = build.number_like(x, 2 * np.finfo(dtype_of(x).numpy()).tiny)
    is_large = build.GreaterOrEqual(build.ReduceMin(last, keepdims=0), smallest)
    is_normal = build.And(is_large, _are_at_most_one(build, factors))
    return build.Reshape(_checked(build, x, factors, values, is_normal), build.Shape(x))


def _doubled(build: Builder, x: ir.Value, factors: ir.Value) -> list[ir.Value]:
    """Return the values and the products of all factors before (Hillis and Steele 1986).

    In each round a value takes in the one 1, 2, 4, 8, … steps before it, times the product of the
    factors between them.
    """
    # A first value of -0.0 keeps its sign.
    before, neutral = build.number_like(x, -0.0), build.number_like(x, 1)
    axis = build.ints([0])
    rounds, pads = rounds_of(build, x)

    def step(loop: Builder, i: ir.Value, values: ir.Value, products: ir.Value) -> list[ir.Value]:
        moved = loop.Gather(pads, i, axis=0)
        earlier = loop.Pad(values, moved, before, axis)
        values = loop.Add(values, loop.Mul(products, earlier))
        return [values, loop.Mul(products, loop.Pad(products, moved, neutral, axis))]

    return build.loop(rounds, None, [x, factors], step)


def _is_finite(build: Builder, values: ir.Value) -> ir.Value:
    total = build.ReduceL1(values, keepdims=0)
    return build.Less(total, build.number_like(values, np.inf))


def _are_at_most_one(build: Builder, factors: ir.Value) -> ir.Value:
    largest = build.ReduceMax(build.Abs(factors), keepdims=0)
    return build.LessOrEqual(largest, build.number_like(factors, 1))


def _length(build: Builder, x: ir.Value) -> ir.Value:
    length = build.Squeeze(build.Shape(x, start=0, end=1), build.ints([0]))
    return build.cast(length, dtype_of(x).numpy())


def _log_of_smallest(x: ir.Value) -> float:
    return float(np.log(2 * np.finfo(dtype_of(x).numpy()).tiny))


def _checked(
    build: Builder, x: ir.Value, factors: ir.Value, values: ir.Value, is_normal: ir.Value
) -> ir.Value:
    """Return the values where they are right to rounding, and the values of a loop elsewhere.

    Parameters
    ----------
    is_normal
        Whether no factor is above one, and all products of factors are normal numbers.
    """

    def with_more_checks(other: Builder) -> list[ir.Value]:
        is_bounded = other.And(is_finite, _are_at_most_one(other, factors))
        (is_harmless,) = other.cond(
            _are_large_or_zero(other, factors, x),
            lambda then: [then.Identity(is_bounded)],
            lambda rest: [rest.And(is_bounded, _hide_underflow(rest, x, values))],
        )
        return other.cond(
            is_harmless, lambda then: [values], lambda loop: [_looped(loop, x, factors)]
        )

    is_finite = _is_finite(build, values)
    # The runtime infers no rank from the branches, and needs one within the body of a Scan: callers
    # reshape.
    return build.cond(build.And(is_finite, is_normal), lambda then: [values], with_more_checks)[0]


def _are_large_or_zero(build: Builder, factors: ir.Value, x: ir.Value) -> ir.Value:
    """Return whether products of as many factors as there are steps are zero or normal."""
    sizes, zero = build.Abs(factors), build.number_like(x, 0)
    smallest = build.Exp(build.Div(build.number_like(x, _log_of_smallest(x)), _length(build, x)))
    others = build.Where(build.Equal(sizes, zero), build.number_like(x, 1), sizes)
    return build.GreaterOrEqual(build.ReduceMin(others, keepdims=0), smallest)


def _hide_underflow(build: Builder, x: ir.Value, values: ir.Value) -> ir.Value:
    """Return whether errors of products below the normal numbers are within rounding.

    A product of k factors that are at most one has an error of at most k times the smallest
    number, and a value of n steps one of n**2 times that, times the largest term. A value without
    terms other than zero is exact.
    """
    length, sizes = _length(build, x), build.Abs(x)
    largest = build.Max(build.ReduceMax(sizes, keepdims=0), build.number_like(x, 1))
    tiny = build.number_like(x, np.finfo(dtype_of(x).numpy()).tiny)
    bound = build.Mul(build.Mul(build.Mul(tiny, largest), length), length)
    is_large = build.GreaterOrEqual(build.Abs(values), bound)
    terms = build.CumSum(sizes, build.constant(np.array(0)))
    is_exact = build.Equal(terms, build.number_like(x, 0))
    all_hide = build.ReduceMin(build.cast(build.Or(is_large, is_exact), "int32"), keepdims=0)
    return build.cast(all_hide, "bool")


def _looped(build: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    return _in_steps(build, x, _first_one(build, x, factors))


def _in_steps(build: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    """Return the values of a loop; each row has a factor, and the first factor is one."""

    def step(body: Builder, y: ir.Value, row: ir.Value, factor: ir.Value) -> list[ir.Value]:
        new = body.Add(body.Mul(factor, y), row)
        return [new, new]

    start = build.Expand(build.number_like(x, -0.0), build.Shape(x, start=1))
    return build.scan([start], [x, factors], step)[1]


def _first_one(build: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    """Return a factor for each row; the first factor is one.

    An infinite factor times the start would be NaN.
    """
    all_rows, first = build.Expand(factors, build.Shape(x)), build.ints([1])
    later = build.Slice(all_rows, first, build.Shape(x, start=0, end=1), build.ints([0]))
    return _after_one(build, x, later)


# Compute a recurrence of a constant factor by products with matrices of its powers.
#
# The steps are divided into blocks of 32, and the blocks into groups of 32. A product with powers
# of the factor gives the last value of each block, and of each group, as if it started at zero. The
# last values of groups follow a recurrence again. Then a second product for groups, and one for
# blocks, takes in the value before each.

_BLOCK = 32
_ZERO = _BLOCK + 1
_DISTANCES = np.arange(_BLOCK) - np.arange(-1, _BLOCK)[:, None]
_POWERS = np.where(_DISTANCES >= 0, _DISTANCES, _ZERO)
"""Power by which each step multiplies the value before its block, and those of the block."""

_TO_LAST = _POWERS[1:, -1:]
"""The same for the last step of a block that starts at zero."""

_POWERS_BEFORE = np.where(_DISTANCES >= 1, _DISTANCES - 1, _ZERO)
_POWERS_BEFORE[0] = np.arange(_BLOCK)
"""The same for the value before each step."""

_LONGEST = 62


def by_blocks(build: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] of a vector, with a factor of shape (1,)."""
    zero, front = build.number_like(x, 0), build.ints([1, 0, -1, 0])
    dtype = dtype_of(x).numpy()
    powers, of_block = _powers(build, build.cast(factor, "float64"))
    powers_of_blocks, of_group = _powers(build, of_block)
    powers, powers_of_blocks, of_group = (
        build.cast(v, dtype) for v in (powers, powers_of_blocks, of_group)
    )
    length, as_blocks = build.Shape(x, start=0, end=1), build.ints([-1, _BLOCK])
    missing = build.Mod(build.Neg(length), build.ints([_BLOCK**2]))
    padded = build.Pad(x, build.Concat(build.ints([0]), missing, axis=0), zero)
    blocks = build.Reshape(padded, as_blocks)
    groups = build.Reshape(build.MatMul(blocks, _weights(build, powers, _TO_LAST)), as_blocks)
    lasts = doubled(
        build, build.MatMul(groups, _weights(build, powers_of_blocks, _TO_LAST)), of_group
    )
    groups = build.Concat(build.Pad(lasts, front, zero), groups, axis=1)
    weights = _weights(build, powers_of_blocks, _POWERS_BEFORE)
    before = build.Reshape(build.MatMul(groups, weights), build.ints([-1, 1]))
    weights = _weights(build, powers, _POWERS)
    values = build.MatMul(build.Concat(before, blocks, axis=1), weights)
    flat, start = build.Reshape(values, build.ints([-1])), build.ints([0])
    return build.Slice(flat, start, length, start)


def _powers(build: Builder, factor: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the powers 0 to 32 and a zero, and the power 32, in float64."""
    counts = np.arange(_ZERO + 1)[:, None]
    is_used = (np.arange(_BLOCK) < counts) & (counts < _ZERO)
    others = np.where(counts == _ZERO, 0.0, np.ones(_BLOCK))
    chosen = build.Where(build.constant(is_used), factor, build.constant(others))
    powers = build.ReduceProd(chosen, build.ints([1]), keepdims=0)
    return powers, build.Gather(powers, build.ints([_BLOCK]), axis=0)


def _weights(build: Builder, powers: ir.Value, exponents: np.ndarray) -> ir.Value:
    weights = build.Gather(powers, build.constant(exponents), axis=0)
    weights.shape = ir.Shape(exponents.shape)
    return weights


def doubled(build: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] along the first axis, in log n rounds."""
    axis, zero = build.ints([0]), build.number_like(x, -0.0)
    rounds, pads = rounds_of(build, x)

    def step(loop: Builder, i: ir.Value, values: ir.Value, power: ir.Value) -> list[ir.Value]:
        earlier = loop.Pad(values, loop.Gather(pads, i, axis=0), zero, axis)
        return [loop.Add(values, loop.Mul(power, earlier)), loop.Mul(power, power)]

    return build.loop(rounds, None, [x, factor], step)[0]


def rounds_of(build: Builder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the number of rounds for a first axis, and the pads that move it by 1, 2, 4, 8, …."""
    distances = 2 ** np.arange(_LONGEST)
    is_enough = build.GreaterOrEqual(build.constant(distances), build.Shape(x, start=0, end=1))
    rounds = build.ArgMax(build.cast(is_enough, "int32"), keepdims=0)
    return rounds, build.constant(np.stack([distances, -distances], 1))
