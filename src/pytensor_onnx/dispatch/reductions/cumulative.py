"""Lower cumulative sums, products, maxima and minima."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import CumOp

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.ops.reductions import RunningExtreme

_FIRST_OPSET_WITH_CUMPROD = 26


@onnx_funcify.register(CumOp)
def lower_cumulative(op: CumOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Accumulate along one axis in the dtype of the operand; integers wrap around."""
    if op.mode == "add":
        return build.CumSum(x, np.int64(op.axis))
    if build.scope.opset_version >= _FIRST_OPSET_WITH_CUMPROD:
        return build.CumProd(x, np.int64(op.axis))
    return _cumulative_product(build, x, op.axis)


def _cumulative_product(build: Builder, x: ir.Value, axis: int) -> ir.Value:
    """Multiply the slices in order: another order would overflow elsewhere.

    The slices are along the first axis, since a runtime may fail to loop along another axis of an
    empty array.
    """
    dims = build.dims(x)
    if 0 in dims:
        return x
    order = [axis, *(i for i in range(len(dims)) if i != axis)]
    first = x if axis == 0 else build.Transpose(x, perm=order)
    if isinstance(dims[axis], int):
        product = build.call("CumProd", _product_of_slices, first)
    else:
        product = build.call("CumProdOrEmpty", _product_of_any_slices, first)
    product.shape = first.shape
    return product if axis == 0 else build.Transpose(product, perm=np.argsort(order).tolist())


def _product_of_slices(build: Builder, x: ir.Value) -> ir.Value:
    return _scan_product(build, _slice_of_ones(build, x), x)


def _product_of_any_slices(build: Builder, x: ir.Value) -> ir.Value:
    """Prepend a slice of ones and drop it from the result, so that no loop is empty."""
    ones = _slice_of_ones(build, x)
    more = build.Concat(x, build.Unsqueeze(ones, build.ints([0])), axis=0)
    return build.Slice(
        _scan_product(build, ones, more), build.ints([0]), build.Shape(x, start=0, end=1)
    )


def _slice_of_ones(build: Builder, x: ir.Value) -> ir.Value:
    one = build.constant(np.ones((), dtype_of(x).numpy()))
    return build.Expand(one, build.Shape(x, start=1))


def _scan_product(build: Builder, start: ir.Value, x: ir.Value) -> ir.Value:
    def step(body: Builder, product: ir.Value, factor: ir.Value) -> list[ir.Value]:
        new = body.Mul(product, factor)
        return [new, new]

    return build.scan([start], [x], step)[1]


@onnx_funcify.register(RunningExtreme)
def lower_running_extreme(op: RunningExtreme, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Combine each row with the row 1, 2, 4, 8, … rows before it."""
    body = _running_maximum if op.kind == "max" else _running_minimum
    result = build.call("CumMax" if op.kind == "max" else "CumMin", body, x)
    result.shape = x.shape
    return result


def _running_maximum(build: Builder, x: ir.Value) -> ir.Value:
    return _double(build, x, "Max")


def _running_minimum(build: Builder, x: ir.Value) -> ir.Value:
    return _double(build, x, "Min")


def _double(build: Builder, x: ir.Value, operator: str) -> ir.Value:
    length = build.Shape(x, start=0, end=1)
    zero, one = build.ints([0]), build.ints([1])

    def step(loop: Builder, i: ir.Value, distance: ir.Value, rows: ir.Value) -> list[ir.Value]:
        first = loop.Slice(rows, zero, distance, zero)
        later = loop.Slice(rows, distance, length, zero)
        earlier = loop.Slice(rows, zero, loop.Neg(distance), zero)
        whole = loop.Concat(first, loop.op(operator, later, earlier), axis=0)
        twice = loop.Add(distance, distance)
        return [loop.Squeeze(loop.Less(twice, length), zero), twice, whole]

    any_pair = build.Squeeze(build.Less(one, length), zero)
    return build.loop(None, any_pair, [one, x], step)[1]
