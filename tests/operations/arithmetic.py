"""Records of operations on two numbers and more."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
from pytensor.scalar import basic as ps
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import mul_without_zeros

from tests.dispatch.values import (
    DISCRETE,
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    special_values,
)
from tests.operations.record import WIDE, Arrays, Operation, name_of
from tests.operations.regions import Accuracy, Region

ONE_OF_EACH_KIND = ("bool", "int8", "uint64", "float16", "float64")
"""First dtypes of pairs whose second one is any dtype."""
KERNELS = ("float64", "float32", "int64", "int32")
SLOPE = (np.array([[0.7, 1.3], [2.6, 0.4]]), np.array([0.9, 1.7]))

Seconds = Callable[[str], Sequence[str]]


def _pairs(
    seconds: Seconds, values: Callable[[str, str], np.ndarray]
) -> Callable[[str], list[Arrays]]:
    """Return a function of a dtype that draws all pairs of values with those of other dtypes."""

    def draw(first: str) -> list[Arrays]:
        found = []
        for second in seconds(first):
            x, y = values(first, second)[:, None], values(second, first)[None]
            found += [(x, y), (x[::-2], y[:, ::-1]), (x[:0], y)]
        return found

    return draw


def _same(values: Callable[[str, str], np.ndarray]) -> Callable[[str], list[Arrays]]:
    """Return a function of a dtype that draws arrays of it of several ranks."""

    def draw(dtype: str) -> list[Arrays]:
        x = values(dtype, dtype)
        pairs = [(x[:, None], x[None]), (x, x[::-1].copy()), (x, x[1]), (x[0], x)]
        long = np.resize(x, (30, 40))
        pairs += [(long, long[::-1, 0:1].copy()), (long[:3], long[0]), (long[:0], long[0])]
        pairs += [(x[1], x[2]), (long.reshape(2, 15, 40), long[:15, :1].copy())]
        return [tuple(map(np.ascontiguousarray, pair)) for pair in pairs]

    return draw


def binary(
    scalar: ScalarOp,
    firsts: Sequence[str] = ONE_OF_EACH_KIND,
    seconds: Seconds = lambda first: DTYPES,
    values: Callable[[str, str], np.ndarray] = lambda dtype, other: special_values(dtype),
    **fields: Any,
) -> Operation:
    """Return the record of a function of two numbers of any two dtypes.

    Parameters
    ----------
    scalar
        The function.
    firsts
        First dtypes; the others are drawn in the sweep.
    seconds
        Dtypes of the second operand for one of the first.
    values
        Numbers of a dtype beside those of the other one.
    fields
        Other fields of the record.
    """
    swept = tuple(d for d in fields.pop("all", DTYPES) if d not in firsts)
    draw = _pairs(seconds, values)
    fields = {"slope": SLOPE, "ulp": 0, "kernel_draw": _same(values)} | fields
    return Operation(name_of(scalar), Elemwise(scalar), draw, tuple(firsts), swept=swept, **fields)


def comparison(scalar: ScalarOp) -> Operation:
    return binary(scalar, slope=None, kernel=KERNELS, fuzz="comparison")


def bits(scalar: ScalarOp) -> Operation:
    def seconds(first: str) -> Sequence[str]:
        if first == "bool":
            return ["bool"]
        return [d for d in INTEGERS if ps.upcast(first, d) in INTEGERS]

    kernel = ("bool", "int64", "int32")
    return binary(
        scalar, ("bool", "int8", "uint64"), seconds, all=DISCRETE, slope=None, kernel=kernel
    )


def power_values(dtype: str, other: str) -> np.ndarray:
    """Return no negative numbers where both are discrete, as exponents of integers."""
    values = special_values(dtype)
    return values[values >= 0] if ps.upcast(dtype, other) not in FLOATS else values


def moderate(dtype: str, other: str) -> np.ndarray:
    """Return numbers whose products PyTensor, which takes Python's integers, does not wrap."""
    values = special_values(dtype)
    return values if dtype in ("bool", *FLOATS) else values[(values < 9) & (values > -9)]


def plane() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [rng.normal(size=size), rng.normal(size=size)]

    return Region("normal points", draw)


def wide_plane() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        power = {"float64": 300, "float32": 37}[dtype]
        y, x = 10.0 ** rng.uniform(-power, power, (2, size))
        return [y * rng.choice([-1.0, 1.0], size), x * rng.choice([-1.0, 1.0], size)]

    return Region("all magnitudes", draw)


def diagonals() -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        y = rng.normal(size=size)
        return [y, y * (1 + 1e-3 * rng.normal(size=size)) * rng.choice([-1.0, 1.0], size)]

    return Region("next to the diagonals", draw)


def not_in_float16(first: str) -> Sequence[str]:
    """Return dtypes whose arc tangents NumPy does not compute in float16, as PyTensor does not."""
    return [d for d in DTYPES if first != "float16" or d not in ("bool", "int8", "uint8")]


def bounded(dtype: str, other: str) -> np.ndarray:
    """Return numbers whose sums of powers are far from one."""
    return np.array([0.0, -0.0, 1.0, -30.0, 700.0, -700.0, np.inf, -np.inf, np.nan], dtype)


def three(dtype: str) -> list[Arrays]:
    x = special_values(dtype)
    return [(x[:, None, None], x[None, :, None], x[None, None])]


def conditions(dtype: str) -> list[Arrays]:
    """Return conditions of a dtype, and branches of every dtype and of some pairs."""
    c = special_values(dtype)
    pairs = [("bool", "bool"), ("int8", "uint16"), ("int64", "uint64"), ("float16", "float32")]
    pairs += [(d, d) for d in NUMBERS]
    return [(c, *(np.resize(special_values(d), c.shape) for d in pair)) for pair in pairs]


def fills(dtype: str) -> list[Arrays]:
    values = special_values(dtype)
    shapes = ((3, 4), (0, 4), (3, 2))
    calls = [(np.ones(shape), np.resize(values, shape[1:])) for shape in shapes]
    return [*calls, (np.ones((3, 4)), np.resize(values, (1, 4)))]


OPERATIONS = [
    binary(ps.add, kernel=KERNELS),
    binary(
        ps.sub,
        seconds=lambda first: [d for d in DTYPES if not "bool" == first == d],
        kernel=KERNELS,
        fuzz="arithmetic",
    ),
    binary(ps.mul, kernel=KERNELS),
    binary(ps.true_div, kernel=WIDE),
    binary(ps.int_div, kernel=()),
    binary(ps.mod, kernel=()),
    binary(ps.pow, values=power_values, kernel=WIDE, ulp=1),
    binary(mul_without_zeros, DTYPES, values=moderate, signed_zeros=False, slope=None),
    binary(ps.maximum, DTYPES, signed_zeros=False, kernel=KERNELS, fuzz="extremum"),
    binary(ps.minimum, DTYPES, signed_zeros=False, kernel=KERNELS, fuzz="extremum"),
    *map(comparison, (ps.lt, ps.gt, ps.le, ps.ge, ps.eq, ps.neq)),
    *map(bits, (ps.and_, ps.or_, ps.xor)),
    binary(
        ps.arctan2,
        (*ONE_OF_EACH_KIND, "float32"),
        seconds=not_in_float16,
        accuracy=Accuracy(ps.ArcTan2, mp.atan2, [plane(), wide_plane(), diagonals()]),
    ),
    # NaN bounds do nothing; of a lower bound above the upper one, the lower one wins.
    Operation("clip", pt.clip, three, NUMBERS, signed_zeros=False, slope=(*SLOPE, SLOPE[1] + 0.5)),
    Operation(
        "switch",
        pt.switch,
        conditions,
        DTYPES,
        signed_zeros=False,
        slope=(np.array([[1.0, 0], [0, 2]]), *SLOPE),
        nodes_again=1.3,
    ),
    Operation("logaddexp", pt.logaddexp, _same(bounded), WIDE, slope=SLOPE, nodes_again=1.6),
    Operation("fill", pt.second, fills, DTYPES),
]
