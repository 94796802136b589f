"""Records of elementary functions of one number."""

from typing import Any

import mpmath as mp
import numpy as np
from pytensor.scalar import basic as ps, math as psm
from pytensor.scalar.basic import ScalarOp

from tests.dispatch.values import DISCRETE, FLOATS, NUMBERS
from tests.operations.record import WIDE, Operation, unary
from tests.operations.regions import (
    BOTH,
    FLOAT32,
    FLOAT64,
    Accuracy,
    Region,
    linear,
    logarithmic,
    near_multiples_of_half_pi,
    tiny,
)

inf, nan, pi = np.inf, np.nan, np.pi
KERNEL_INTEGERS = ("int64", "int32")


def _circle(bound_beyond_limit: float = 4.0) -> list[Region]:
    limit = 2.0**20
    return [
        linear(-1, 1),
        linear(-4, 4),
        linear(-100, 100),
        logarithmic(100, limit),
        near_multiples_of_half_pi(1, 100),
        near_multiples_of_half_pi(100, limit, FLOAT64),
        tiny(),
        logarithmic(limit, None, FLOAT32),
        logarithmic(limit, 1e300, FLOAT64, bound=bound_beyond_limit),
        near_multiples_of_half_pi(limit, 2.0**52, FLOAT64, bound=bound_beyond_limit),
    ]


INVERSE = [linear(-0.5, 0.5), linear(0.5, 1), linear(-1, -0.5), linear(0.98, 1), tiny()]
POWERS = [linear(0.5, 2), linear(0.95, 1.05), linear(2, 16), logarithmic(0)]
LOGISTIC = [linear(-745, -5, FLOAT64), linear(-103, -5, FLOAT32), tiny()]
GROWING = [
    linear(-1, 1),
    linear(1, 4),
    linear(-40, 40),
    linear(700, 710.47, FLOAT64),
    linear(80, 89.41, FLOAT32),
    tiny(),
]
# The last numbers of which the result is finite, and numbers beyond.
OVERFLOW = {"float64": [(710.4768, inf)], "float32": [(89.4169, inf)]}
TINY_TANH = [(5e-324, 0.0), (0.0, 0.0), (2.0**-1022, 2.0**-1022), (2.0**-55, 2.0**-55)]
NO_INFINITY = [(inf, nan), (-inf, nan), (nan, nan)]
LOGARITHM = [(0.0, -inf), (-1.0, nan), (1.0, 0.0), (inf, inf), (-inf, nan), (nan, nan)]


def log1mexp(x: mp.mpf) -> mp.mpf:
    return mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


def largest(dtype: str) -> list[tuple[float, float]]:
    number = float(np.finfo(dtype).max)
    return [(number, number), (-number, 0.0)]


def smooth(scalar: ScalarOp, at: float = 0.6, **fields: Any) -> Operation:
    """Return the record of a smooth function, with a point of its domain."""
    accuracy = fields.pop("accuracy", None)
    return unary(scalar, at=at, fuzz="smooth", accuracy=accuracy, **fields)


OPERATIONS = [
    smooth(ps.exp, kernel=WIDE),
    smooth(
        ps.exp2,
        kernel=WIDE,
        accuracy=Accuracy(
            ps.Exp2,
            lambda x: mp.mpf(2) ** x,
            [linear(-1, 1), linear(-1074, 1023.9, FLOAT64), linear(-149, 127.9, FLOAT32), tiny()],
            ends=[(inf, inf), (1100.0, inf), (-inf, 0.0), (-1100.0, 0.0), (nan, nan)],
        ),
    ),
    smooth(
        ps.expm1,
        kernel=WIDE,
        accuracy=Accuracy(
            ps.Expm1,
            mp.expm1,
            [
                linear(-1, 1),
                linear(-3, -0.5),
                linear(0.5, 3),
                linear(-40, 709.7, FLOAT64),
                linear(-40, 88.7, FLOAT32),
                tiny(),
            ],
            ends=[(inf, inf), (-800.0, -1.0), (-inf, -1.0), (nan, nan)],
            ends_in={"float64": [(709.79, inf)], "float32": [(88.73, inf)]},
            keeps_tiny=BOTH,
        ),
    ),
    smooth(ps.log, kernel=WIDE),
    smooth(
        ps.log2,
        kernel=WIDE,
        accuracy=Accuracy(ps.Log2, lambda x: mp.log(x, 2), POWERS, ends=LOGARITHM),
    ),
    smooth(
        ps.log10,
        kernel=WIDE,
        accuracy=Accuracy(ps.Log10, lambda x: mp.log(x, 10), POWERS, ends=LOGARITHM),
    ),
    smooth(
        ps.log1p,
        kernel=WIDE,
        accuracy=Accuracy(
            ps.Log1p,
            mp.log1p,
            [linear(-0.999, -0.5), linear(-0.5, 0.5), linear(0.5, 3), logarithmic(1), tiny()],
            ends=[(-1.0, -inf), (-1.5, nan), (inf, inf), (-inf, nan), (nan, nan)],
            keeps_tiny=BOTH,
        ),
    ),
    smooth(
        psm.log1mexp,
        -0.6,
        kernel=WIDE,
        accuracy=Accuracy(
            psm.Log1mexp,
            log1mexp,
            [
                linear(-1, -0.001),
                linear(-3, -0.6),
                linear(-745, -3, FLOAT64),
                linear(-103, -3, FLOAT32),
                logarithmic(0, 1, sign=-1),
            ],
            ends=[(0.0, -inf), (1.0, nan), (inf, nan), (-inf, -0.0), (nan, nan)],
        ),
    ),
    smooth(ps.sqrt, kernel=WIDE, ulp=0),
    smooth(ps.reciprocal, kernel=WIDE, ulp=0),
    smooth(
        ps.sin,
        kernel=WIDE,
        accuracy=Accuracy(ps.Sin, mp.sin, _circle(), ends=NO_INFINITY, keeps_tiny=BOTH),
    ),
    smooth(
        ps.cos,
        kernel=WIDE,
        accuracy=Accuracy(ps.Cos, mp.cos, _circle(), ends=[(0.0, 1.0), (-0.0, 1.0), *NO_INFINITY]),
    ),
    smooth(
        ps.tan,
        # Beyond the limit it is the quotient of two operators with errors of up to 3 ulp.
        accuracy=Accuracy(
            ps.Tan, mp.tan, _circle(bound_beyond_limit=6), ends=NO_INFINITY, keeps_tiny=BOTH
        ),
    ),
    smooth(
        ps.arcsin,
        accuracy=Accuracy(
            ps.ArcSin,
            mp.asin,
            INVERSE,
            ends=[(1.0, pi / 2), (-1.0, -pi / 2), (1.1, nan), (inf, nan), (nan, nan)],
            keeps_tiny=BOTH,
        ),
    ),
    smooth(
        ps.arccos,
        accuracy=Accuracy(
            ps.ArcCos,
            mp.acos,
            INVERSE,
            ends=[(1.0, 0.0), (0.0, pi / 2), (-1.0, pi), (-1.1, nan), (inf, nan), (nan, nan)],
        ),
    ),
    smooth(
        ps.arctan,
        accuracy=Accuracy(
            ps.ArcTan,
            mp.atan,
            [linear(-1, 1), linear(1, 3), logarithmic(1), tiny()],
            ends=[(inf, pi / 2), (-inf, -pi / 2), (1.0, pi / 4), (nan, nan)],
            keeps_tiny=BOTH,
        ),
    ),
    smooth(
        ps.sinh,
        accuracy=Accuracy(
            ps.Sinh,
            mp.sinh,
            GROWING,
            ends=[(inf, inf), (-inf, -inf), (nan, nan)],
            ends_in=OVERFLOW,
            keeps_tiny=BOTH,
        ),
    ),
    smooth(
        ps.cosh,
        accuracy=Accuracy(
            ps.Cosh,
            mp.cosh,
            GROWING,
            ends=[(0.0, 1.0), (inf, inf), (-inf, inf), (nan, nan)],
            ends_in=OVERFLOW,
        ),
    ),
    smooth(
        ps.tanh,
        kernel=WIDE,
        # The Tanh of ONNX Runtime loses the last subnormal number of float32.
        atol=2e-45,
        accuracy=Accuracy(
            ps.Tanh,
            mp.tanh,
            [linear(-0.55, 0.55), linear(0.55, 2), linear(-20, 20), tiny()],
            ends=[(inf, 1.0), (50.0, 1.0), (-50.0, -1.0), (-inf, -1.0), (nan, nan)],
            # Half of the last subnormal number is zero.
            ends_in={"float64": [(s * x, s * y) for s in (1, -1) for x, y in TINY_TANH]},
            keeps_tiny=FLOAT32,
        ),
    ),
    smooth(
        ps.arcsinh,
        kernel=WIDE,
        accuracy=Accuracy(
            ps.ArcSinh,
            mp.asinh,
            [linear(-1, 1), linear(1, 5), logarithmic(1), logarithmic(1, sign=-1), tiny()],
            ends=[(inf, inf), (-inf, -inf), (nan, nan)],
            keeps_tiny=BOTH,
        ),
    ),
    smooth(
        ps.arccosh,
        3.2,
        kernel=WIDE,
        accuracy=Accuracy(
            ps.ArcCosh,
            mp.acosh,
            [linear(1, 1.1), linear(1, 5), logarithmic(1)],
            ends=[(1.0, 0.0), (0.9, nan), (-1e20, nan), (-inf, nan), (inf, inf), (nan, nan)],
        ),
    ),
    smooth(
        ps.arctanh,
        kernel=WIDE,
        accuracy=Accuracy(
            ps.ArcTanh,
            mp.atanh,
            [linear(-0.5, 0.5), linear(0.5, 0.999999), linear(-0.999999, -0.5), tiny()],
            ends=[(1.0, inf), (-1.0, -inf), (1.1, nan), (-1e20, nan), (inf, nan), (nan, nan)],
            keeps_tiny=BOTH,
        ),
    ),
    smooth(
        psm.sigmoid,
        kernel=WIDE,
        accuracy=Accuracy(
            psm.Sigmoid,
            lambda x: 1 / (1 + mp.exp(-x)),
            [linear(-5, 5), linear(0, 40), *LOGISTIC],
            ends=[(0.0, 0.5), (800.0, 1.0), (inf, 1.0), (-inf, 0.0), (nan, nan)],
        ),
    ),
    smooth(
        psm.softplus,
        # For bool, PyTensor's Python implementation of Softplus computes in float16.
        dtypes=NUMBERS,
        kernel=WIDE,
        accuracy=Accuracy(
            psm.Softplus,
            lambda x: mp.log1p(mp.exp(x)),
            [linear(-5, 5), linear(0, 40), *LOGISTIC, logarithmic(40)],
            ends=[(inf, inf), (-inf, 0.0), (nan, nan)],
            ends_in={dtype: largest(dtype) for dtype in BOTH},
        ),
    ),
    unary(ps.abs, at=0.6, kernel=(*WIDE, *KERNEL_INTEGERS), ulp=0, fuzz="exact"),
    unary(ps.sqr, at=0.6, kernel=(*WIDE, *KERNEL_INTEGERS), ulp=0, fuzz="exact"),
    unary(ps.neg, NUMBERS, at=0.6, kernel=(*WIDE, *KERNEL_INTEGERS), ulp=0, fuzz="exact"),
    unary(ps.sign, NUMBERS, at=0.6, kernel=(*WIDE, *KERNEL_INTEGERS), ulp=0, fuzz="rounding"),
    unary(ps.identity),
    unary(ps.real),
    unary(ps.imag),
    unary(ps.conj, NUMBERS),
    unary(ps.isnan, kernel=WIDE, ulp=0, fuzz="rounding"),
    unary(ps.isinf, kernel=WIDE, ulp=0, fuzz="rounding"),
    unary(ps.ceil, at=0.6, kernel=WIDE, ulp=0, fuzz="rounding"),
    unary(ps.floor, at=0.6, kernel=WIDE, ulp=0, fuzz="rounding"),
    unary(ps.trunc, at=0.6, kernel=WIDE, ulp=0, fuzz="rounding"),
    unary(ps.round_half_to_even, FLOATS, at=0.6, kernel=WIDE, ulp=0, fuzz="rounding"),
    # PyTensor's Python implementation rounds 0.0 to -0.0, unlike its C code.
    unary(
        ps.round_half_away_from_zero,
        FLOATS,
        signed_zeros=False,
        kernel=WIDE,
        ulp=0,
        fuzz="rounding",
    ),
    unary(ps.invert, DISCRETE, kernel=("bool", *KERNEL_INTEGERS), ulp=0),
]
