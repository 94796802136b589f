"""Quarter turns in angles of any size (M. H. Payne, R. N. Hanek, SIGNUM 18 (1983) 19-24)."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.arithmetic import constant, upper_half

# The hexadecimal digits of 2/pi after the point; six of them are one digit to the base 2**24.
_DIGITS = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a"
    "424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e41"
    "3991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf"
    "27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
)
_BITS, _COUNT = 24, 7
# An angle is scaled by 2**-24 until its last place is at least 4, so that it is below 2**80.
_SCALED = 55
_LAST = (1024 - _SCALED) // _BITS


def _table() -> np.ndarray:
    """Return rows of digits with their weights, and the scale of an angle before them."""
    digits = [int(_DIGITS[start : start + 6], 16) for start in range(0, len(_DIGITS), 6)]
    weights = 2.0 ** (-_BITS * np.arange(1, _COUNT + 1))
    rows = [[*(digits[j : j + _COUNT] * weights), 2.0 ** (-_BITS * j)] for j in range(_LAST + 1)]
    return np.array(rows).T


def quarter_turns(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Return ``2/pi x``, less a multiple of 4, for a vector of positive float64 numbers.

    It is the sum of a multiple of ``2**-24`` of at most 30, and a small rest. Digits whose products
    with a scaled angle are multiples of 4 are left out; the products of others with its upper and
    lower half are exact. The error is below ``2**-77``.
    """
    logarithm = pt.log(x) * constant(x, 1 / np.log(2))
    place = pt.floor((logarithm - constant(x, _SCALED)) * constant(x, 1 / _BITS))
    place = pt.clip(place, constant(x, 0.0), constant(x, _LAST)).astype("int64")
    digits, scale = pt.split(pt.constant(_table())[:, place], [_COUNT, 1], n_splits=2, axis=0)
    scaled = x * scale
    upper = upper_half(scaled)
    products = pt.concatenate([digits * upper, digits * (scaled - upper)])
    four, unit = constant(x, 4.0), constant(x, 2.0**_BITS)
    products = products - pt.round(products / four) * four
    coarse = pt.round(products * unit) / unit
    return pt.sum(coarse, axis=0), pt.sum(products - coarse, axis=0)
