"""Where the special functions are measured, and what they are measured against."""

from collections.abc import Callable
from dataclasses import dataclass, field

import mpmath as mp
import numpy as np
from pytensor.graph.op import Op
from pytensor.scalar import basic as ps
from pytensor.scalar import math as psm

FLOAT64 = ("float64",)
FLOAT32 = ("float32",)
BOTH = ("float64", "float32")
SMALLEST = {"float64": 5e-324, "float32": 1e-45}
LARGEST = {"float64": 1.79e308, "float32": 3.4e38}

Sampler = Callable[[np.random.Generator, int, str], list[np.ndarray]]


@dataclass(frozen=True)
class Region:
    """A part of a domain, for some dtypes: how it is called and how points are drawn from it."""

    label: str
    draw: Sampler
    dtypes: tuple[str, ...] = BOTH
    bound: float = 4.0
    """The largest error, in ulp, that is allowed here."""

    def points(self, size: int, dtype: str) -> list[np.ndarray]:
        """Draw one array for each argument of the function, the same ones every time."""
        rng = np.random.default_rng(1)
        return [x.astype(dtype) for x in self.draw(rng, size, dtype)]


@dataclass(frozen=True)
class Case:
    """A function: its Op, its values in high precision, and its regions."""

    op_type: type[Op]
    exact: Callable[..., mp.mpf]
    regions: list[Region] = field(default_factory=list)


def linear(low: float, high: float, dtypes: tuple[str, ...] = BOTH) -> Region:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [np.concatenate([[low, high], rng.uniform(low, high, size)])]

    return Region(f"{low:g} … {high:g}", draw, dtypes)


def tiny(high: float = 1e-3) -> Region:
    """Both signs, from the smallest subnormal number on."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        size = np.exp(rng.uniform(np.log(SMALLEST[dtype]), np.log(high), size))
        return [size * rng.choice([-1.0, 1.0], len(size))]

    return Region(f"tiny … ±{high:g}", draw)


def logarithmic(
    low: float,
    high: float | None = None,
    dtypes: tuple[str, ...] = BOTH,
    *,
    sign: float = 1.0,
    bound: float = 4.0,
) -> Region:
    """From ``low`` (0: the smallest number) to ``high`` (None: the largest one)."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        ends = low or SMALLEST[dtype], high or LARGEST[dtype]
        return [sign * np.clip(np.exp(rng.uniform(*np.log(ends), size)), *ends)]

    minus = "-" if sign < 0 else ""
    last = "largest" if high is None else f"{high:g}"
    return Region(f"{minus}{f'{low:g}' if low else 'tiny'} … {minus}{last}", draw, dtypes, bound)


def near_multiples_of_half_pi(
    first: float, last: float, dtypes: tuple[str, ...] = BOTH, *, bound: float = 4.0
) -> Region:
    """The floating-point numbers around the multiples of pi/2, where results may nearly vanish."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        turns = np.round(np.exp(rng.uniform(np.log(first), np.log(last), size)) * 2 / np.pi)
        x = (turns * (np.pi / 2)).astype(dtype)
        return [x + rng.integers(-2, 3, size) * np.spacing(x)]

    return Region(f"next to k π/2, {first:g} … {last:g}", draw, dtypes, bound)


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


def _log1mexp(x: mp.mpf) -> mp.mpf:
    return mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


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


CASES = {
    case.op_type.__name__: case
    for case in [
        Case(psm.Erf, mp.erf, [linear(-1, 1), linear(-2, 2), linear(-6, 6), tiny()]),
        Case(
            psm.Erfc,
            mp.erfc,
            [
                linear(-6, 0),
                linear(0, 1),
                linear(1, 2),
                linear(2, 6),
                linear(6, 26.5, FLOAT64),
                linear(26.5, 27.3, FLOAT64),
                linear(3, 9.2, FLOAT32),
                linear(9.2, 10.1, FLOAT32),
                tiny(),
            ],
        ),
        Case(
            ps.Log1p,
            mp.log1p,
            [linear(-0.999, -0.5), linear(-0.5, 0.5), linear(0.5, 3), logarithmic(1), tiny()],
        ),
        Case(
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
        ),
        Case(
            psm.Log1mexp,
            _log1mexp,
            [
                linear(-1, -0.001),
                linear(-3, -0.6),
                linear(-745, -3, FLOAT64),
                linear(-103, -3, FLOAT32),
                logarithmic(0, 1, sign=-1),
            ],
        ),
        Case(
            psm.Softplus,
            lambda x: mp.log1p(mp.exp(x)),
            [
                linear(-5, 5),
                linear(0, 40),
                linear(-745, -5, FLOAT64),
                linear(-103, -5, FLOAT32),
                logarithmic(40),
                tiny(),
            ],
        ),
        Case(
            psm.Sigmoid,
            lambda x: 1 / (1 + mp.exp(-x)),
            [
                linear(-5, 5),
                linear(0, 40),
                linear(-745, -5, FLOAT64),
                linear(-103, -5, FLOAT32),
                tiny(),
            ],
        ),
        Case(
            ps.Log2,
            lambda x: mp.log(x, 2),
            [linear(0.5, 2), linear(0.95, 1.05), linear(2, 16), logarithmic(0)],
        ),
        Case(
            ps.Log10,
            lambda x: mp.log(x, 10),
            [linear(0.5, 2), linear(0.95, 1.05), linear(2, 16), logarithmic(0)],
        ),
        Case(
            ps.Exp2,
            lambda x: mp.mpf(2) ** x,
            [linear(-1, 1), linear(-1074, 1023.9, FLOAT64), linear(-149, 127.9, FLOAT32), tiny()],
        ),
        Case(ps.Sin, mp.sin, _circle()),
        Case(ps.Cos, mp.cos, _circle()),
        # Beyond the limit it is the quotient of two operators with errors of up to 3 ulp.
        Case(ps.Tan, mp.tan, _circle(bound_beyond_limit=6)),
        Case(
            ps.ArcSin,
            mp.asin,
            [linear(-0.5, 0.5), linear(0.5, 1), linear(-1, -0.5), linear(0.98, 1), tiny()],
        ),
        Case(
            ps.ArcCos,
            mp.acos,
            [linear(-0.5, 0.5), linear(0.5, 1), linear(-1, -0.5), linear(0.98, 1), tiny()],
        ),
        Case(ps.ArcTan, mp.atan, [linear(-1, 1), linear(1, 3), logarithmic(1), tiny()]),
        Case(ps.ArcTan2, mp.atan2, [plane(), wide_plane(), diagonals()]),
        Case(
            ps.Sinh,
            mp.sinh,
            [
                linear(-1, 1),
                linear(1, 4),
                linear(-40, 40),
                linear(700, 710.47, FLOAT64),
                linear(80, 89.41, FLOAT32),
                tiny(),
            ],
        ),
        Case(
            ps.Cosh,
            mp.cosh,
            [
                linear(-1, 1),
                linear(1, 4),
                linear(-40, 40),
                linear(700, 710.47, FLOAT64),
                linear(80, 89.41, FLOAT32),
                tiny(),
            ],
        ),
        Case(ps.Tanh, mp.tanh, [linear(-0.55, 0.55), linear(0.55, 2), linear(-20, 20), tiny()]),
        Case(
            ps.ArcSinh,
            mp.asinh,
            [linear(-1, 1), linear(1, 5), logarithmic(1), logarithmic(1, sign=-1), tiny()],
        ),
        Case(ps.ArcCosh, mp.acosh, [linear(1, 1.1), linear(1, 5), logarithmic(1)]),
        Case(
            ps.ArcTanh,
            mp.atanh,
            [linear(-0.5, 0.5), linear(0.5, 0.999999), linear(-0.999999, -0.5), tiny()],
        ),
    ]
}
