"""Lower linear recurrences to log n rounds (Hillis and Steele 1986), and to a loop where they fail.

In each round a value takes in the one 1, 2, 4, 8, … steps before it, times the product of the
factors between them. A loop computes the values again if one is infinite or NaN, if a factor is
larger than one, where rounded products would hide terms that cancel, or if products may underflow.
"""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.ops.linear_recurrence import LinearRecurrence


@onnx_funcify.register(LinearRecurrence)
def lower_linear_recurrence(
    op: LinearRecurrence, node: Apply, onnx: Builder, x: ir.Value, factors: ir.Value
) -> ir.Value:
    """Call the function of the recurrence, with a factor of one for the first row."""
    pads = onnx.ints([1, *[0] * (2 * len(onnx.dims(x)) - 1)])
    whole = onnx.Pad(factors, pads, np.ones((), dtype_of(x).numpy()))
    result = onnx.call("LinearRecurrence", _linear_recurrence, x, whole)
    result.shape = x.shape
    return result


def _linear_recurrence(onnx: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    """Return y[t] = factors[t] * y[t - 1] + x[t] along the first axis."""
    doubled = _doubled(onnx, x, factors)
    zero = onnx.number_like(x, 0)
    total = onnx.ReduceSum(onnx.Mul(doubled, zero), keepdims=0)
    is_finite = onnx.Equal(total, zero)
    is_right = onnx.And(is_finite, onnx.Not(_are_extreme(onnx, factors)))
    (result,) = onnx.cond(
        is_right, lambda then: [doubled], lambda other: [_looped(other, x, factors)]
    )
    # The runtime infers no rank from the branches, and needs one within the body of a Scan.
    return onnx.Reshape(result, onnx.Shape(x))


def _doubled(onnx: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    length = onnx.Shape(x, start=0, end=1)
    one, axis = onnx.ints([1]), onnx.ints([0])
    # A first value of -0.0 keeps its sign.
    before, neutral = onnx.number_like(x, -0.0), onnx.number_like(x, 1)

    def step(
        loop: Builder, i: ir.Value, distance: ir.Value, values: ir.Value, products: ir.Value
    ) -> list[ir.Value]:
        moved = loop.Concat(distance, loop.Neg(distance), axis=0)
        earlier = loop.Pad(values, moved, before, axis)
        values = loop.Add(values, loop.Mul(products, earlier))
        products = loop.Mul(products, loop.Pad(products, moved, neutral, axis))
        twice = loop.Add(distance, distance)
        return [loop.Squeeze(loop.Less(twice, length), axis), twice, values, products]

    any_pair = onnx.Squeeze(onnx.Less(one, length), axis)
    return onnx.loop(None, any_pair, [one, x, factors], step)[1]


def _are_extreme(onnx: Builder, factors: ir.Value) -> ir.Value:
    """Return whether a factor is above one, or so small that products may leave normal numbers."""
    dtype = dtype_of(factors).numpy()
    length = onnx.cast(onnx.Squeeze(onnx.Shape(factors, start=0, end=1), onnx.ints([0])), dtype)
    smallest = onnx.Exp(onnx.Div(np.log(np.finfo(dtype).tiny).astype(dtype), length))
    zero = onnx.number_like(factors, 0)
    sizes = onnx.Abs(factors)
    is_small = onnx.And(onnx.Less(sizes, smallest), onnx.Greater(sizes, zero))
    is_extreme = onnx.Or(is_small, onnx.Greater(sizes, onnx.number_like(factors, 1)))
    count = onnx.ReduceSum(onnx.cast(is_extreme, dtype), keepdims=0)
    return onnx.Greater(count, zero)


def _looped(onnx: Builder, x: ir.Value, factors: ir.Value) -> ir.Value:
    def step(body: Builder, y: ir.Value, row: ir.Value, factor: ir.Value) -> list[ir.Value]:
        new = body.Add(body.Mul(factor, y), row)
        return [new, new]

    start = onnx.Expand(onnx.number_like(x, -0.0), onnx.Shape(x, start=1))
    return onnx.scan([start], [x, factors], step)[1]
