"""Modified Bessel functions that PyTensor lacks, or writes as a product with an exponential."""

from typing import Any

from pytensor.scalar.basic import (
    BinaryScalarOp,
    ScalarOp,
    UnaryScalarOp,
    upgrade_to_float,
)
from pytensor.scalar.math import ive, special
from pytensor.tensor.elemwise import Elemwise


class I0e(UnaryScalarOp):
    """Modified Bessel function of the first kind of order 0, times ``exp(-|x|)``."""

    def impl(self, x: Any) -> Any:
        """Compute the function by the one of any order."""
        return ive.impl(0, x)


class I1e(UnaryScalarOp):
    """Modified Bessel function of the first kind of order 1, times ``exp(-|x|)``."""

    def impl(self, x: Any) -> Any:
        """Compute the function by the one of any order."""
        return ive.impl(1, x)


i0e = Elemwise(I0e(upgrade_to_float, name="i0e"))
i1e = Elemwise(I1e(upgrade_to_float, name="i1e"))


class TimesIv(ScalarOp):
    """A number times the modified Bessel function of the first kind of any real order."""

    nin = 3

    def impl(self, factor: Any, v: Any, x: Any) -> Any:
        """Compute the function by SciPy."""
        return factor * special.iv(v, x)


class Kv(BinaryScalarOp):
    """Modified Bessel function of the second kind of any real order."""

    def impl(self, v: Any, x: Any) -> Any:
        """Compute the function by SciPy."""
        return special.kv(v, x)


times_iv = Elemwise(TimesIv(upgrade_to_float, name="times_iv"))
kv = Elemwise(Kv(upgrade_to_float, name="kv"))
