"""Operations on vectors of entries that are complex numbers, by their parts."""

from collections.abc import Callable, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.ops.sparse import RowProducts, ScaledRowSums, SegmentSum, Take
from pytensor_onnx.rewriting.complex.complex_parts import ENCODING, is_complex
from pytensor_onnx.rewriting.complex.complex_products import product_of_parts
from pytensor_onnx.rewriting.complex.complex_structure import by_part


@ENCODING.rewrites(Take, SegmentSum)
def by_real_and_imaginary_part(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Take or add the real and the imaginary parts."""
    return by_part(op, node, inputs, slice(1))


@ENCODING.rewrites(ScaledRowSums, RowProducts)
def multiply_rows(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Multiply complex rows by the products of their real and imaginary parts."""
    return product_of_parts(op, node, inputs, factors=(0, 2))


def less(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return whether numbers are less than others, in SciPy's order."""
    return _ordered(pt.lt, x, y)


def greater(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return whether numbers are greater than others, in SciPy's order."""
    return _ordered(pt.gt, x, y)


def _ordered(
    compare: Callable[[TensorVariable, TensorVariable], TensorVariable],
    x: TensorVariable,
    y: TensorVariable,
) -> TensorVariable:
    """Compare by the real parts, equal ones by the imaginary parts.

    NumPy's comparison of arrays is false for NaN in any part, SciPy's for NaN in a compared one.
    """
    if not is_complex(x):
        return compare(x, y)
    by_imag = compare(pt.imag(x), pt.imag(y))
    return pt.switch(pt.eq(pt.real(x), pt.real(y)), by_imag, compare(pt.real(x), pt.real(y)))
