"""Cumulative sums, products, maxima and minima."""

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.extra_ops import CumOp

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import onnx_funcify
from pytensor_onnx.inference import dtype_of
from pytensor_onnx.rewriting.running_extremes import RunningExtreme

_FIRST_OPSET_WITH_CUMPROD = 26


@onnx_funcify.register(CumOp)
def lower_cumulative(op: CumOp, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Accumulate along one axis in the dtype of the operand, integers modulo its range."""
    if op.mode == "add":
        return onnx.CumSum(x, np.int64(op.axis))
    if onnx.scope.opset_version >= _FIRST_OPSET_WITH_CUMPROD:
        return onnx.CumProd(x, np.int64(op.axis))
    return _cumulative_product(onnx, x, op.axis)


def _cumulative_product(onnx: Builder, x: ir.Value, axis: int) -> ir.Value:
    """Multiply one slice after the other, in order: any other would overflow in other places.

    The slices are those along the first axis, since a runtime may fail to loop along another one
    of an empty array.
    """
    dims = onnx.dims(x)
    if 0 in dims:
        return x
    order = [axis, *(i for i in range(len(dims)) if i != axis)]
    first = x if axis == 0 else onnx.Transpose(x, perm=order)
    if isinstance(dims[axis], int):
        product = onnx.call("CumProd", _product_of_slices, first)
    else:
        product = onnx.call("CumProdOrEmpty", _product_of_any_slices, first)
    product.shape = first.shape
    return product if axis == 0 else onnx.Transpose(product, perm=np.argsort(order).tolist())


def _product_of_slices(onnx: Builder, x: ir.Value) -> ir.Value:
    return _scan_product(onnx, _slice_of_ones(onnx, x), x)


def _product_of_any_slices(onnx: Builder, x: ir.Value) -> ir.Value:
    """Multiply one slice of ones more, which is left out of the result: no loop is empty."""
    ones = _slice_of_ones(onnx, x)
    more = onnx.Concat(x, onnx.Unsqueeze(ones, onnx.ints([0])), axis=0)
    return onnx.Slice(
        _scan_product(onnx, ones, more), onnx.ints([0]), onnx.Shape(x, start=0, end=1)
    )


def _slice_of_ones(onnx: Builder, x: ir.Value) -> ir.Value:
    one = onnx.constant(np.ones((), dtype_of(x).numpy()))
    return onnx.Expand(one, onnx.Shape(x, start=1))


def _scan_product(onnx: Builder, start: ir.Value, x: ir.Value) -> ir.Value:
    step = onnx.subgraph()
    product, factor = (
        ir.Value(name=name, type=ir.TensorType(dtype_of(x))) for name in ("product", "factor")
    )
    new = step.Mul(product, factor)
    body = step.graph([product, factor], [new, step.Identity(new)])
    return onnx.Scan(start, x, body=body, num_scan_inputs=1, outputs=2)[1]


@onnx_funcify.register(RunningExtreme)
def lower_running_extreme(op: RunningExtreme, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Compare each row with the one before, then two before, then four before, and so on."""
    body = _running_maximum if op.kind == "max" else _running_minimum
    result = onnx.call("CumMax" if op.kind == "max" else "CumMin", body, x)
    result.shape = x.shape
    return result


def _running_maximum(onnx: Builder, x: ir.Value) -> ir.Value:
    return _double(onnx, x, "Max")


def _running_minimum(onnx: Builder, x: ir.Value) -> ir.Value:
    return _double(onnx, x, "Min")


def _double(onnx: Builder, x: ir.Value, operator: str) -> ir.Value:
    loop = onnx.subgraph()
    step = ir.Value(name="step", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(()))
    going = ir.Value(name="going", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape(()))
    distance = ir.Value(
        name="distance", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape((1,))
    )
    rows = ir.Value(name="rows", type=ir.TensorType(dtype_of(x)))
    length = onnx.Shape(x, start=0, end=1)
    start, axis = onnx.ints([0]), onnx.ints([0])
    first = loop.Slice(rows, start, distance, axis)
    later = loop.Slice(rows, distance, length, axis)
    earlier = loop.Slice(rows, start, loop.Neg(distance), axis)
    whole = loop.Concat(first, loop.op(operator, later, earlier), axis=0)
    twice = loop.Add(distance, distance)
    again = loop.Squeeze(loop.Less(twice, length), start)
    body = loop.graph([step, going, distance, rows], [again, twice, whole])
    one = onnx.ints([1])
    any_pair = onnx.Squeeze(onnx.Less(one, length), start)
    return onnx.loop(None, any_pair, [one, x], body)[1]
