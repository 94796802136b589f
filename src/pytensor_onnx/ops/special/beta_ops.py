"""Derivatives of the regularized incomplete beta function.

PyTensor has those by the parameters as loops of a continued fraction, and that by the third
argument as an exponential of logarithms of gamma functions. It has no Ops for them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.scalar.basic import ScalarOp, float64, upgrade_to_float_no_complex
from pytensor.scalar.math import betainc, betainc_grad
from pytensor.tensor.elemwise import Elemwise


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
