"""Lower sums and products of the parts of complex numbers."""

import onnx_ir as ir
from pytensor.graph.basic import Apply

from pytensor_onnx.dispatch.registry.basic import onnx_funcify
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.complex import (
    PartDifference,
    PartSum,
    ProductImag,
    ProductReal,
)


@onnx_funcify.register(PartSum)
def lower_part_sum(op: PartSum, node: Apply, build: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Add by Sum: runtimes drop an Add of zero, which makes a positive zero of a negative one."""
    return build.Sum(a, b)


@onnx_funcify.register(PartDifference)
def lower_part_difference(
    op: PartDifference, node: Apply, build: Builder, a: ir.Value, b: ir.Value
) -> ir.Value:
    """Return the difference of two parts."""
    return build.Sub(a, b)


@onnx_funcify.register(ProductReal)
def lower_product_real(
    op: ProductReal, node: Apply, build: Builder, a: ir.Value, b: ir.Value, c: ir.Value, d: ir.Value
) -> ir.Value:
    """Return the real part of a product."""
    return build.Sub(build.Mul(a, c), build.Mul(b, d))


@onnx_funcify.register(ProductImag)
def lower_product_imag(
    op: ProductImag, node: Apply, build: Builder, a: ir.Value, b: ir.Value, c: ir.Value, d: ir.Value
) -> ir.Value:
    """Return the imaginary part of a product, by Sum as in `lower_part_sum`."""
    return build.Sum(build.Mul(a, d), build.Mul(b, c))
