"""Regions in which the special functions are measured, with their references."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import mpmath as mp
import numpy as np
from pytensor.graph.op import Op

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
    scale: Callable[..., mp.mpf] | None = None
    """A size of the function around a point; errors near roots are relative to it."""

    def points(self, size: int, dtype: str) -> list[np.ndarray]:
        """Draw one array for each argument of the function, the same ones every time."""
        rng = np.random.default_rng(1)
        return [x.astype(dtype) for x in self.draw(rng, size, dtype)]


Ends = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Accuracy:
    """Exact values of a function of numbers, and the regions in which its errors are bounded.

    The tests of all errors and ``docs/reference/accuracy.md`` are made from it.
    """

    op_type: type[Op]
    exact: Callable[..., mp.mpf]
    regions: Sequence[Region]
    scipy: Callable[..., np.ndarray] | None = None
    """SciPy's function, whose errors the table of accuracy shows too."""
    size: int = 100
    """Points of each region in the tests: fewer where mpmath is slow."""
    ends: Ends = ()
    """Arguments at the ends of the domain and beyond, with their values and the signs of zeros."""
    ends_in: Mapping[str, Ends] = field(default_factory=dict)
    """The same for one dtype."""
    keeps_tiny: tuple[str, ...] = ()
    """Dtypes in which zeros and tiny numbers of both signs are their own values."""

    @property
    def arguments(self) -> int:
        """The number of arguments of the function."""
        return len(self.regions[0].points(1, "float64"))


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
