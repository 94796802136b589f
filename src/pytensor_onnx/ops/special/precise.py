"""A logarithm that runtimes round almost always correctly, and therefore almost always alike."""

from typing import Any

import numpy as np
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise


class PreciseLog(UnaryScalarOp):
    """Natural logarithm.

    It is lowered to the logarithm of sums of one element each. Runtimes compute those by the
    logarithm of their C library, within 0.51 ulp in float64, and not by vector instructions.
    """

    def impl(self, x: Any) -> Any:
        """Compute the function by NumPy."""
        return np.log(x)


log = Elemwise(PreciseLog(upgrade_to_float, name="precise_log"))
