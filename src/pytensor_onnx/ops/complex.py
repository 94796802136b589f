"""Operations on the real and imaginary parts of complex numbers, rounded and signed as NumPy's.

PyTensor's rewrites know none of them: to write ``0 - x`` as ``-x`` changes the sign of a zero, and
with it the side of a branch cut.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import ScalarOp, ScalarType, upgrade_to_float_no_complex
from pytensor.scalar.math import erf as scalar_erf, gamma as scalar_gamma, psi as scalar_psi
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable


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


class Hypotenuse(ScalarOp):
    """Absolute value of a complex number."""

    nin = 2

    def impl(self, a: Any, b: Any) -> Any:
        """Compute the absolute value."""
        return np.hypot(a, b)


class ComplexFunction(ScalarOp):
    """Real and imaginary part of a function of complex numbers, whose parts are the operands.

    Attributes
    ----------
    function
        The function of NumPy or SciPy.
    """

    function: Callable[..., Any]
    nin = 2
    nout = 2

    def output_types(self, types: list[ScalarType]) -> list[ScalarType]:
        """Return the dtype of the operands twice."""
        return [*upgrade_to_float_no_complex(*types)] * 2

    def impl(self, *parts: Any) -> tuple[Any, Any]:
        """Compute the function of complex numbers."""
        numbers = [_number(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        with np.errstate(all="ignore"):
            result = self.function(*numbers)
        return result.real, result.imag


def _number(real: Any, imag: Any) -> Any:
    """Return a number with parts that may be infinite, which a sum with ``1j`` would mix."""
    return np.array([real, imag], "float64").view("complex128")[0]


class ComplexQuotient(ComplexFunction):
    """Quotient of complex numbers."""

    function, nin = np.true_divide, 4


class ComplexReciprocal(ComplexFunction):
    """Reciprocal of a complex number."""

    function = np.reciprocal


class ComplexPower(ComplexFunction):
    """Power of complex numbers."""

    function, nin = np.power, 4


class ComplexSign(ComplexFunction):
    """Number of absolute value one in the direction of a number."""

    function = np.sign


class ComplexSqrt(ComplexFunction):
    """Square root with a real part that is not negative."""

    function = np.sqrt


class ComplexExp(ComplexFunction):
    """Exponential of a complex number."""

    function = np.exp


class ComplexExp2(ComplexFunction):
    """Power of two with a complex exponent."""

    function = np.exp2


class ComplexExpm1(ComplexFunction):
    """Exponential of a complex number less one."""

    function = np.expm1


class ComplexLog(ComplexFunction):
    """Principal logarithm."""

    function = np.log


class ComplexLog1p(ComplexFunction):
    """Principal value of ``log(1 + z)``."""

    function = np.log1p


class ComplexSinh(ComplexFunction):
    """Hyperbolic sine of a complex number."""

    function = np.sinh


class ComplexCosh(ComplexFunction):
    """Hyperbolic cosine of a complex number."""

    function = np.cosh


class ComplexTanh(ComplexFunction):
    """Hyperbolic tangent of a complex number."""

    function = np.tanh


class ComplexArcSinh(ComplexFunction):
    """Principal inverse of the hyperbolic sine."""

    function = np.arcsinh


class ComplexArcCosh(ComplexFunction):
    """Principal inverse of the hyperbolic cosine."""

    function = np.arccosh


class ComplexArcTanh(ComplexFunction):
    """Principal inverse of the hyperbolic tangent."""

    function = np.arctanh


class ComplexArcCos(ComplexFunction):
    """Principal inverse of the cosine."""

    function = np.arccos


class ComplexErf(ComplexFunction):
    """Error function of a complex number."""

    @staticmethod
    def function(z: Any) -> Any:
        """Compute the function by SciPy."""
        return scalar_erf.impl(z)


class ComplexGamma(ComplexFunction):
    """Gamma function of a complex number."""

    @staticmethod
    def function(z: Any) -> Any:
        """Compute the function by SciPy."""
        return scalar_gamma.impl(z)


class ComplexPsi(ComplexFunction):
    """Derivative of the logarithm of the gamma function of a complex number."""

    @staticmethod
    def function(z: Any) -> Any:
        """Compute the function by SciPy."""
        return scalar_psi.impl(z)


class ComplexProd(Op):
    """Products of complex numbers along the last axis but one of pairs."""

    __props__ = ()

    def make_node(self, pairs: TensorVariable) -> Apply:
        """Return the node for pairs."""
        shape = (*pairs.type.shape[:-2], 2)
        return Apply(self, [pairs], [tensor(dtype=pairs.type.dtype, shape=shape)])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Multiply by NumPy."""
        outputs[0][0] = _pairs(_numbers(inputs[0]).prod(axis=-1), inputs[0].dtype)


class ComplexCumProd(Op):
    """Cumulative products of complex numbers along the last axis but one of pairs."""

    __props__ = ()

    def make_node(self, pairs: TensorVariable) -> Apply:
        """Return the node for pairs."""
        return Apply(self, [pairs], [pairs.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Multiply by NumPy."""
        outputs[0][0] = _pairs(_numbers(inputs[0]).cumprod(axis=-1), inputs[0].dtype)


def _numbers(pairs: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pairs, "float64").view("complex128")[..., 0]


def _pairs(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.stack([numbers.real, numbers.imag], axis=-1).astype(dtype)


part_sum = Elemwise(PartSum(upgrade_to_float_no_complex, name="part_sum"))
part_difference = Elemwise(PartDifference(upgrade_to_float_no_complex, name="part_difference"))
product_real = Elemwise(ProductReal(upgrade_to_float_no_complex, name="product_real"))
product_imag = Elemwise(ProductImag(upgrade_to_float_no_complex, name="product_imag"))
hypotenuse = Elemwise(Hypotenuse(upgrade_to_float_no_complex, name="hypotenuse"))
quotient = Elemwise(ComplexQuotient(name="complex_quotient"))
reciprocal = Elemwise(ComplexReciprocal(name="complex_reciprocal"))
power = Elemwise(ComplexPower(name="complex_power"))
sign = Elemwise(ComplexSign(name="complex_sign"))
sqrt = Elemwise(ComplexSqrt(name="complex_sqrt"))
exp = Elemwise(ComplexExp(name="complex_exp"))
exp2 = Elemwise(ComplexExp2(name="complex_exp2"))
expm1 = Elemwise(ComplexExpm1(name="complex_expm1"))
log = Elemwise(ComplexLog(name="complex_log"))
log1p = Elemwise(ComplexLog1p(name="complex_log1p"))
sinh = Elemwise(ComplexSinh(name="complex_sinh"))
cosh = Elemwise(ComplexCosh(name="complex_cosh"))
tanh = Elemwise(ComplexTanh(name="complex_tanh"))
arcsinh = Elemwise(ComplexArcSinh(name="complex_arcsinh"))
arccosh = Elemwise(ComplexArcCosh(name="complex_arccosh"))
arctanh = Elemwise(ComplexArcTanh(name="complex_arctanh"))
erf = Elemwise(ComplexErf(name="complex_erf"))
gamma = Elemwise(ComplexGamma(name="complex_gamma"))
psi = Elemwise(ComplexPsi(name="complex_psi"))
arccos = Elemwise(ComplexArcCos(name="complex_arccos"))
