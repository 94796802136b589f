"""Ops of special functions and their derivatives."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.scalar.basic import (
    BinaryScalarOp,
    ScalarOp,
    UnaryScalarOp,
    float64,
    upgrade_to_float,
    upgrade_to_float_no_complex,
)
from pytensor.scalar.math import betainc, betainc_grad, ive, special
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


# Derivatives of the regularized incomplete beta function.
#
# PyTensor has those by the parameters as loops of a continued fraction, and that by the third
# argument as an exponential of logarithms of gamma functions. It has no Ops for them.


def derivative(index: int, arguments: Sequence[Variable]) -> Variable:
    """Return the scalar graph that PyTensor has for the derivative by one of the arguments."""
    if index < 2:
        return betainc_grad(*arguments, index == 0)
    result = betainc(*arguments)
    product = betainc.pullback(arguments, [result], [result.type()])[index]
    return product.owner.inputs[1]


@cache
def _computed(index: int) -> Callable[..., Any]:
    arguments = [float64(name) for name in "abx"]
    return pytensor.function(arguments, derivative(index, arguments), mode=Mode("py", None))


class BetaIncByFirst(ScalarOp):
    """Derivative of ``betainc(a, b, x)`` by ``a``."""

    nin = 3

    def impl(self, a: Any, b: Any, x: Any) -> Any:
        """Compute PyTensor's continued fraction."""
        return _computed(0)(a, b, x)


class BetaIncBySecond(ScalarOp):
    """Derivative of ``betainc(a, b, x)`` by ``b``."""

    nin = 3

    def impl(self, a: Any, b: Any, x: Any) -> Any:
        """Compute PyTensor's continued fraction."""
        return _computed(1)(a, b, x)


class BetaIncByThird(ScalarOp):
    """Derivative of ``betainc(a, b, x)`` by ``x``, the density of the beta distribution."""

    nin = 3

    def impl(self, a: Any, b: Any, x: Any) -> Any:
        """Compute PyTensor's exponential."""
        return _computed(2)(a, b, x)


betainc_by_first = Elemwise(BetaIncByFirst(upgrade_to_float_no_complex, name="betainc_by_first"))
betainc_by_second = Elemwise(BetaIncBySecond(upgrade_to_float_no_complex, name="betainc_by_second"))
betainc_by_third = Elemwise(BetaIncByThird(upgrade_to_float_no_complex, name="betainc_by_third"))
