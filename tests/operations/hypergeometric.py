"""Record of the hypergeometric function 2F1."""

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region, Sampler

inf, nan = np.inf, np.nan


# In ulp: 1e-13 relative.
BOUND = 450.0


Ends = tuple[float, float]


def box(ab: Ends, c: Ends, z: Ends, bound: float = BOUND) -> Region:
    """Parameters between bounds, and an argument between others, by the logarithm if far away."""
    is_far = z[0] < -50

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        ends = sorted(np.log(np.negative(z))) if is_far else z
        x = rng.uniform(*ends, size)
        parameters = [rng.uniform(*ends, size) for ends in (ab, ab, c)]
        return [*parameters, -np.exp(x) if is_far else x]

    texts = [f"{low:g} … {high:g}" for low, high in (ab, c, z)]
    label = "a, b {}, c {}, z {}".format(*texts)
    return Region(label, draw, BOTH if ab == (0.1, 5) and z[1] < 1 else FLOAT64, bound)


def integers(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    parameters = [rng.integers(1, 8, size).astype("f8") for _ in range(3)]
    return [*parameters, rng.uniform(-3, 0.99, size)]


def next_to_one(differences: str) -> Sampler:
    """Arguments next to one, where integers ``c - a - b`` and those near them are degenerate."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        a, b = (rng.integers(1, 40, size) / 8 for _ in range(2))
        d = rng.integers(0, 4, size) + (
            0 if differences == "integers" else np.exp(rng.uniform(-30, -3, size))
        )
        return [a, b, a + b + d, 1 - np.exp(rng.uniform(-30, -1, size))]

    return draw


def polynomials(low: float, high: float, degrees: int = 15) -> Sampler:
    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        degree, b = rng.integers(0, degrees, size).astype("f8"), rng.uniform(0.1, 10, size)
        return [-degree, b, rng.uniform(0.1, 10, size), rng.uniform(low, high, size)]

    return draw


def polynomials_of_negative(
    near_integers: bool, low: float, high: float, degrees: int = 13
) -> Sampler:
    """Polynomials whose third parameter is negative, and nearly an integer above the end."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        degree, b = rng.integers(0, degrees, size).astype("f8"), rng.uniform(-10, 10, size)
        c = rng.uniform(-15, 0, size)
        near = np.exp(rng.uniform(-28, -5, size)) * rng.choice([-1, 1], size)
        c = near - rng.integers(0, degrees, size) if near_integers else c
        return [-degree, b, c, rng.uniform(low, high, size)]

    return draw


def all_magnitudes(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Parameters and arguments by the logarithm, small and large ones together."""

    def log_uniform(low: float, high: float) -> np.ndarray:
        return np.exp(rng.uniform(np.log(low), np.log(high), size))

    signs = rng.choice([-1, 1], (2, size))
    a, b = (sign * log_uniform(1e-3, 40) for sign in signs)
    z = np.where(rng.uniform(size=size) < 0.5, 1 - log_uniform(1e-8, 1), -log_uniform(1e-3, 1e6))
    return [a, b, log_uniform(1e-3, 100), z]


REGIONS = [
    box((0.1, 5), (0.1, 5), (-1, 0.9)),
    box((0.1, 5), (0.1, 5), (0.9, 1)),
    box((0.1, 5), (0.1, 5), (-1e9, -50)),
    box((-5, 5), (0.1, 5), (-5, 0.99)),
    box((-5, 5), (-5, 0), (-5, 0.9)),
    box((-20, 20), (-20, 0), (-8, 0.9), 20 * BOUND),
    box((-5, 5), (-5, 0), (-1e9, -50), 20 * BOUND),
    box((0.1, 20), (0.1, 20), (-1, 0.99)),
    box((-20, 20), (0.1, 20), (-10, 0.99), 100 * BOUND),
    box((0.1, 50), (50, 100), (-1, 1)),
    Region("a, b ±0.001 … ±40, c 0.001 … 100, z -1e6 … 1", all_magnitudes, FLOAT64, 100 * BOUND),
    Region("integers a, b, c 1 … 7, z -3 … 0.99", integers, BOTH, BOUND),
    Region("integer c - a - b 0 … 3, z next to 1", next_to_one("integers"), FLOAT64, BOUND),
    Region("c - a - b near 0 … 3, z next to 1", next_to_one("others"), FLOAT64, BOUND),
    Region("degrees 0 … 14, z -5 … 0", polynomials(-5, 0), BOTH, BOUND),
    Region("degrees 0 … 14, z 1 … 5", polynomials(1, 5), BOTH, BOUND),
    Region("degrees 0 … 30, z 1 … 5", polynomials(1, 5, 31), FLOAT64, BOUND),
    Region(
        "degrees 0 … 12, c -15 … 0, z -5 … 5",
        polynomials_of_negative(False, -5, 5),
        FLOAT64,
        BOUND,
    ),
    Region(
        "degrees 0 … 12, c near integers 0 … -12, z -5 … 5",
        polynomials_of_negative(True, -5, 5),
        FLOAT64,
        BOUND,
    ),
    Region(
        "degrees 0 … 40, c near integers 0 … -40, z -1000 … 0",
        polynomials_of_negative(True, -1000, 0, 41),
        FLOAT64,
        BOUND,
    ),
]


OPERATIONS = [
    special(Accuracy(psm.Hyp2F1, mp.hyp2f1, REGIONS, scipy.special.hyp2f1, 40), is_slow=True)
]
