"""Lower linear recurrences to operations on all steps at once, and to a loop where these fail.

A loop computes the values again if one is infinite or NaN, if a factor is larger than one, where
rounded products would hide terms that cancel, or if products of factors below the normal numbers
change the values by more than rounding.
"""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.dispatch.recurrence_blocks import by_blocks, doubled, rounds_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.ops.linear_recurrence import LinearRecurrence


@onnx_funcify.register(LinearRecurrence)
def lower_linear_recurrence(
    op: LinearRecurrence, node: Apply, onnx: Builder, x: ir.Value, factors: ir.Value
) -> ir.Value:
    """Call the function for a constant factor, or the one for a factor of each step."""
    if 0 in onnx.dims(x):
        return onnx.Identity(x)
    if node.inputs[1].type.shape[0] != 1:
        result = _with_factors(onnx, x, factors)
    elif len(onnx.dims(x)) == 1:
        result = onnx.call("ConstantRecurrence", _constant_recurrence, x, factors)
    else:
        result = onnx.call("ConstantRecurrenceOfRows", _constant_recurrence_of_rows, x, factors)
    result.shape = x.shape
    return result


def _with_factors(onnx: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    """Call the function of the recurrence, with a factor of one for the first row."""
    pads = onnx.ints([1, *[0] * (2 * len(onnx.dims(x)) - 1)])
    whole = onnx.Pad(factors, pads, np.ones((), dtype_of(x).numpy()))
    return onnx.call("LinearRecurrence", _linear_recurrence, x, whole)


def _constant_recurrence(onnx: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t]."""
    values = by_blocks(onnx, x, factor)
    is_normal = _is_normal_power(onnx, factor, x)
    return onnx.Reshape(_checked(onnx, x, factor, values, is_normal), onnx.ints([-1]))


def _constant_recurrence_of_rows(onnx: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] along the first axis."""
    values = doubled(onnx, x, factor)
    is_normal = onnx.ReduceMin(onnx.cast(_is_normal_power(onnx, factor, x), "int32"), keepdims=0)
    result = _checked(onnx, x, factor, values, onnx.cast(is_normal, "bool"))
    return onnx.Reshape(result, onnx.Shape(x))


def _is_normal_power(onnx: Builder, factor: ir.Value, x: ir.Value) -> ir.Value:
    """Return where a factor is at most one, and its power for all steps a normal number."""
    # A quotient by -Log(1) would be minus infinity.
    decay = onnx.Sub(onnx.number_like(x, 0), onnx.Log(onnx.Abs(factor)))
    most_steps = onnx.Div(onnx.number_like(x, -_log_of_smallest(x)), decay)
    length = onnx.cast(onnx.Shape(x, start=0, end=1), dtype_of(x).numpy())
    return onnx.LessOrEqual(length, most_steps)


def _linear_recurrence(onnx: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    """Return y[t] = factors[t] * y[t - 1] + x[t] along the first axis."""
    values, products = _doubled(onnx, x, factors)
    # Where no factor is above one, the product of all of them is the smallest.
    last = onnx.Abs(onnx.Gather(products, onnx.ints([-1]), axis=0))
    smallest = onnx.number_like(x, 2 * np.finfo(dtype_of(x).numpy()).tiny)
    is_large = onnx.GreaterOrEqual(onnx.ReduceMin(last, keepdims=0), smallest)
    is_normal = onnx.And(is_large, _are_at_most_one(onnx, factors))
    return onnx.Reshape(_checked(onnx, x, factors, values, is_normal), onnx.Shape(x))


def _doubled(onnx: Builder, x: ir.Value, factors: ir.Value) -> list[ir.Value]:
    """Return the values and the products of all factors before (Hillis and Steele 1986).

    In each round a value takes in the one 1, 2, 4, 8, … steps before it, times the product of the
    factors between them.
    """
    # A first value of -0.0 keeps its sign.
    before, neutral = onnx.number_like(x, -0.0), onnx.number_like(x, 1)
    axis = onnx.ints([0])
    rounds, pads = rounds_of(onnx, x)

    def step(loop: Builder, i: ir.Value, values: ir.Value, products: ir.Value) -> list[ir.Value]:
        moved = loop.Gather(pads, i, axis=0)
        earlier = loop.Pad(values, moved, before, axis)
        values = loop.Add(values, loop.Mul(products, earlier))
        return [values, loop.Mul(products, loop.Pad(products, moved, neutral, axis))]

    return onnx.loop(rounds, None, [x, factors], step)


def _is_finite(onnx: Builder, values: ir.Value) -> ir.Value:
    total = onnx.ReduceL1(values, keepdims=0)
    return onnx.Less(total, onnx.number_like(values, np.inf))


def _are_at_most_one(onnx: Builder, factors: ir.Value) -> ir.Value:
    largest = onnx.ReduceMax(onnx.Abs(factors), keepdims=0)
    return onnx.LessOrEqual(largest, onnx.number_like(factors, 1))


def _length(onnx: Builder, x: ir.Value) -> ir.Value:
    length = onnx.Squeeze(onnx.Shape(x, start=0, end=1), onnx.ints([0]))
    return onnx.cast(length, dtype_of(x).numpy())


def _log_of_smallest(x: ir.Value) -> float:
    return float(np.log(2 * np.finfo(dtype_of(x).numpy()).tiny))


def _checked(
    onnx: Builder, x: ir.Value, factors: ir.Value, values: ir.Value, is_normal: ir.Value
) -> ir.Value:
    """Return the values where they are right to rounding, and those of a loop elsewhere.

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

    is_finite = _is_finite(onnx, values)
    # The runtime infers no rank from the branches, and needs one within the body of a Scan: callers
    # reshape.
    return onnx.cond(onnx.And(is_finite, is_normal), lambda then: [values], with_more_checks)[0]


def _are_large_or_zero(onnx: Builder, factors: ir.Value, x: ir.Value) -> ir.Value:
    """Return whether products of as many factors as there are steps are zero or normal."""
    sizes, zero = onnx.Abs(factors), onnx.number_like(x, 0)
    smallest = onnx.Exp(onnx.Div(onnx.number_like(x, _log_of_smallest(x)), _length(onnx, x)))
    others = onnx.Where(onnx.Equal(sizes, zero), onnx.number_like(x, 1), sizes)
    return onnx.GreaterOrEqual(onnx.ReduceMin(others, keepdims=0), smallest)


def _hide_underflow(onnx: Builder, x: ir.Value, values: ir.Value) -> ir.Value:
    """Return whether errors of products below the normal numbers are within rounding.

    A product of k factors that are at most one has an error of at most k times the smallest
    number, and a value of n steps one of n**2 times that, times the largest term. A value without
    terms other than zero is exact.
    """
    length, sizes = _length(onnx, x), onnx.Abs(x)
    largest = onnx.Max(onnx.ReduceMax(sizes, keepdims=0), onnx.number_like(x, 1))
    tiny = onnx.number_like(x, np.finfo(dtype_of(x).numpy()).tiny)
    bound = onnx.Mul(onnx.Mul(onnx.Mul(tiny, largest), length), length)
    is_large = onnx.GreaterOrEqual(onnx.Abs(values), bound)
    terms = onnx.CumSum(sizes, onnx.constant(np.array(0)))
    is_exact = onnx.Equal(terms, onnx.number_like(x, 0))
    all_hide = onnx.ReduceMin(onnx.cast(onnx.Or(is_large, is_exact), "int32"), keepdims=0)
    return onnx.cast(all_hide, "bool")


def _looped(onnx: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    def step(body: Builder, y: ir.Value, row: ir.Value, factor: ir.Value) -> list[ir.Value]:
        new = body.Add(body.Mul(factor, y), row)
        return [new, new]

    start = onnx.Expand(onnx.number_like(x, -0.0), onnx.Shape(x, start=1))
    # The first factor is one: an infinite factor times the start would be NaN.
    axis, one = onnx.ints([0]), onnx.number_like(x, 1)
    later = onnx.Pad(onnx.Expand(factors, onnx.Shape(x)), onnx.ints([-1, 0]), one, axis)
    whole = onnx.Pad(later, onnx.ints([1, 0]), one, axis)
    return onnx.scan([start], [x, whole], step)[1]
