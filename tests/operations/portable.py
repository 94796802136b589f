"""Records of functions that all runtimes compute alike."""

import mpmath as mp
import numpy as np

from pytensor_onnx.ops.special import portable
from tests.operations.record import special
from tests.operations.regions import FLOAT32, FLOAT64, Accuracy, linear, logarithmic, tiny

inf, nan = np.inf, np.nan

# Beyond the largest number.
OVERFLOW = {"float64": [(709.79, inf)], "float32": [(88.73, inf)]}


def cot_pi(x):
    return mp.cospi(x) / mp.sinpi(x)


# The import of such a function is the expression of its body.
OPERATIONS = [
    special(
        Accuracy(
            portable.PortableLog,
            mp.log,
            [linear(0.5, 2), logarithmic(1e-16, 1), logarithmic(0), linear(0.99, 1.01)],
            ends=[(0.0, -inf), (1.0, 0.0), (inf, inf), (-1.0, nan), (nan, nan)],
        ),
        ulp_again=4,
        imports_ops=False,
    ),
    special(
        Accuracy(
            portable.PortableLog1p,
            mp.log1p,
            [linear(-0.999, -0.5), linear(-0.5, 0.5), logarithmic(1), tiny()],
            ends=[(-1.0, -inf), (-1.5, nan), (inf, inf), (nan, nan), (-0.0, -0.0)],
        ),
        ulp_again=4,
        imports_ops=False,
    ),
    special(
        Accuracy(
            portable.PortableExp,
            mp.exp,
            [
                linear(-1, 1),
                linear(-745, 709.7, FLOAT64),
                linear(-103, 88.7, FLOAT32),
                tiny(),
            ],
            ends=[(inf, inf), (nan, nan), (0.0, 1.0), (-800.0, 0.0), (-inf, 0.0)],
            ends_in=OVERFLOW,
        ),
        ulp_again=4,
        imports_ops=False,
    ),
    special(
        Accuracy(
            portable.PortableExpm1,
            mp.expm1,
            [linear(-1, 1), linear(-40, 88.7), tiny()],
            ends=[(inf, inf), (nan, nan), (-800.0, -1.0), (-inf, -1.0), (-0.0, -0.0)],
            ends_in=OVERFLOW,
        ),
        ulp_again=4,
        imports_ops=False,
    ),
    special(
        Accuracy(
            portable.PortableCotPi,
            cot_pi,
            [linear(1e-3, 0.249), logarithmic(1e-16, 1)],
            ends=[(0.0, inf), (0.25, 1.0), (0.5, 0.0), (0.75, -1.0), (1.0, -inf)],
        ),
        ulp_again=4,
        imports_ops=False,
    ),
]
