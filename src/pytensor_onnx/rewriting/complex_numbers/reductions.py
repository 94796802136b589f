"""Reduce complex numbers along axes."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.tensor.math import Sum

from pytensor_onnx.encodings.complex_numbers import REAL
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.rewriting.complex_numbers.parts import (
    ENCODING,
    Parts,
    joined,
    operand,
    real_dtype,
)


@ENCODING.rewrites(Sum)
def add(op: Sum, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the sums of the parts."""
    dtype = real_dtype(*node.outputs)
    accumulator = REAL.get(op.acc_dtype or "", dtype)
    parts = operand(node.inputs[0], inputs[0], dtype)
    reduction = Sum(axis=op.axis, dtype=dtype, acc_dtype=accumulator)
    return [[joined(Parts(*map(reduction, parts)))]]
