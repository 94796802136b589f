"""Exponentially scaled Bessel functions, which PyMC has and PyTensor lacks."""

from typing import Any

from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.scalar.math import ive
from pytensor.tensor.elemwise import Elemwise


class I0e(UnaryScalarOp):
    """Modified Bessel function of the first kind of order 0, times ``exp(-|x|)``."""

    def impl(self, x: Any) -> Any:
        """Compute it by the function of any order."""
        return ive.impl(0, x)


class I1e(UnaryScalarOp):
    """Modified Bessel function of the first kind of order 1, times ``exp(-|x|)``."""

    def impl(self, x: Any) -> Any:
        """Compute it by the function of any order."""
        return ive.impl(1, x)


i0e = Elemwise(I0e(upgrade_to_float, name="i0e"))
i1e = Elemwise(I1e(upgrade_to_float, name="i1e"))
