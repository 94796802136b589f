"""Elementary functions whose results are equal in every bit in all runtimes.

Runtimes compute logarithms and exponentials by libraries of their own, which differ in the last
bits. These Ops are defined by sums, products, quotients and comparisons, which IEEE 754 rounds
alike everywhere; `pytensor_onnx.functions.special.exponential` has the definitions. Powers of
two are looked up in a table of them.
"""

from typing import Any

import numpy as np
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise


class PortableLog(UnaryScalarOp):
    """Natural logarithm."""

    def impl(self, x: Any) -> Any:
        """Compute the function by NumPy."""
        return np.log(x)


class PortableLog1p(UnaryScalarOp):
    """Logarithm of ``1 + x``."""

    def impl(self, x: Any) -> Any:
        """Compute the function by NumPy."""
        return np.log1p(x)


class PortableExp(UnaryScalarOp):
    """Exponential."""

    def impl(self, x: Any) -> Any:
        """Compute the function by NumPy."""
        return np.exp(x)


class PortableExpm1(UnaryScalarOp):
    """Exponential less one."""

    def impl(self, x: Any) -> Any:
        """Compute the function by NumPy."""
        return np.expm1(x)


class PortableCotPi(UnaryScalarOp):
    """Cotangent of ``pi x`` for ``x`` from 0 to 1."""

    def impl(self, x: Any) -> Any:
        """Compute it by NumPy, from the end of the interval that is nearer."""
        x = np.asarray(x)
        angle = x.dtype.type(np.pi) * np.minimum(x, 1 - x)
        return np.copysign(np.cos(angle) / np.sin(angle), 0.5 - x)[()]


class HalfPowerOfTwo(UnaryScalarOp):
    """``2**(k - 1)`` of whole numbers ``k``, which is finite for ``k = 1024`` too.

    Parts of exponentials: half of the power of two next to the largest numbers is finite. It is
    zero below the range of the dtype, and any number of NaN.
    """

    def impl(self, k: Any) -> Any:
        """Compute the function by NumPy."""
        return np.exp2(k - 1)


log = Elemwise(PortableLog(upgrade_to_float, name="portable_log"))
log1p = Elemwise(PortableLog1p(upgrade_to_float, name="portable_log1p"))
exp = Elemwise(PortableExp(upgrade_to_float, name="portable_exp"))
expm1 = Elemwise(PortableExpm1(upgrade_to_float, name="portable_expm1"))
cot_pi = Elemwise(PortableCotPi(upgrade_to_float, name="portable_cot_pi"))
half_power_of_two = Elemwise(HalfPowerOfTwo(upgrade_to_float, name="half_power_of_two"))
