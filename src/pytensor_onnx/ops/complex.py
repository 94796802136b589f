"""Operations on the real and imaginary parts of complex numbers, rounded and signed as NumPy's.

PyTensor's rewrites know none of them: to write ``0 - x`` as ``-x`` changes the sign of a zero, and
with it the side of a branch cut.
"""

from typing import Any

from pytensor.scalar.basic import ScalarOp, upgrade_to_float_no_complex
from pytensor.tensor.elemwise import Elemwise


class PartSum(ScalarOp):
    """Sum of two parts."""

    nin = 2

    def impl(self, a: Any, b: Any) -> Any:
        """Add the parts."""
        return a + b


class PartDifference(ScalarOp):
    """Difference of two parts."""

    nin = 2

    def impl(self, a: Any, b: Any) -> Any:
        """Subtract the parts."""
        return a - b


class ProductReal(ScalarOp):
    """Real part of a product of ``a + b i`` and ``c + d i``."""

    nin = 4

    def impl(self, a: Any, b: Any, c: Any, d: Any) -> Any:
        """Compute the real part of the product."""
        return a * c - b * d


class ProductImag(ScalarOp):
    """Imaginary part of a product of ``a + b i`` and ``c + d i``."""

    nin = 4

    def impl(self, a: Any, b: Any, c: Any, d: Any) -> Any:
        """Compute the imaginary part of the product."""
        return a * d + b * c


part_sum = Elemwise(PartSum(upgrade_to_float_no_complex, name="part_sum"))
part_difference = Elemwise(PartDifference(upgrade_to_float_no_complex, name="part_difference"))
product_real = Elemwise(ProductReal(upgrade_to_float_no_complex, name="product_real"))
product_imag = Elemwise(ProductImag(upgrade_to_float_no_complex, name="product_imag"))
