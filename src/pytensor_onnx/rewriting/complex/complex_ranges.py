"""Ranges of complex numbers."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.tensor.basic import ARange

from pytensor_onnx.encodings.complex_numbers import REAL
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.functions.complex.complex_arithmetic import each
from pytensor_onnx.functions.complex.zero_signs import select
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    operands,
)


@ENCODING.rewrites(ARange)
def number(op: ARange, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return a range as NumPy does: of the shorter of the lengths of the two parts.

    The length is rounded before PyTensor sees it, which infers the size of a range from zero in
    steps of one without rounding up. Rewrites of float64 replace the difference of the first two
    numbers, which NumPy takes for the step, by the step itself, which is more accurate.
    """
    if op.dtype not in REAL:
        return None
    dtype = REAL[op.dtype]
    start, stop, step = operands(node.inputs, inputs, "float64")
    lengths = each(pt.ceil, _quotient(stop - start, step))
    length = lengths.real
    if any(map(is_complex, node.inputs)):
        length = pt.minimum(length, lengths.imag)
    count = ARange(dtype)(0.0, pt.maximum(length, 0.0), 1.0)
    first, second = (each(lambda x: pt.cast(x, dtype), z) for z in (start, start + step))
    return [[joined(each(lambda x, change: x + count * change, first, second - first))]]


def _quotient(x: Parts, y: Parts) -> Parts:
    """Return a quotient as Python rounds it, whose numbers NumPy computes the length with."""
    is_imag = pt.abs(y.real) < pt.abs(y.imag)
    large, small = select(is_imag, y.imag, y.real), select(is_imag, y.real, y.imag)
    ratio = small / large
    real = select(is_imag, x.real * ratio + x.imag, x.real + x.imag * ratio)
    imag = select(is_imag, x.imag * ratio - x.real, x.imag - x.real * ratio)
    divisor = large + small * ratio
    return Parts(real / divisor, imag / divisor)
