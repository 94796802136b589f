"""Derivatives of the regularized incomplete beta function by its parameters.

PyTensor has them as loops of a continued fraction, and no Ops.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytensor
from pytensor.compile.mode import Mode
from pytensor.scalar.basic import ScalarOp, float64, upgrade_to_float_no_complex
from pytensor.scalar.math import betainc_grad
from pytensor.tensor.elemwise import Elemwise


@cache
def _computed(is_first: bool) -> Callable[..., Any]:
    arguments = [float64(name) for name in "abx"]
    return pytensor.function(arguments, betainc_grad(*arguments, is_first), mode=Mode("py", None))


class BetaIncByFirst(ScalarOp):
    """Derivative of ``betainc(a, b, x)`` by ``a``."""

    nin = 3

    def impl(self, a: Any, b: Any, x: Any) -> Any:
        """Compute PyTensor's continued fraction."""
        return _computed(True)(a, b, x)


class BetaIncBySecond(ScalarOp):
    """Derivative of ``betainc(a, b, x)`` by ``b``."""

    nin = 3

    def impl(self, a: Any, b: Any, x: Any) -> Any:
        """Compute PyTensor's continued fraction."""
        return _computed(False)(a, b, x)


betainc_by_first = Elemwise(BetaIncByFirst(upgrade_to_float_no_complex, name="betainc_by_first"))
betainc_by_second = Elemwise(BetaIncBySecond(upgrade_to_float_no_complex, name="betainc_by_second"))
