"""Record of the derivatives of the logarithm of the gamma function."""

import mpmath as mp
import numpy as np
import scipy.special
from pytensor.scalar import math as psm

from tests.operations.record import special
from tests.operations.regions import BOTH, FLOAT64, Accuracy, Region

inf, nan = np.inf, np.nan


def region(orders, numbers, dtypes=BOTH, *, sign=1.0, bound=4.0) -> Region:
    """Draw orders and, on a logarithmic scale, numbers."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        x = np.exp(rng.uniform(*np.log(numbers), size))
        return [rng.integers(orders[0], orders[1] + 1, size), sign * x]

    low, high = (f"{sign * x:g}" for x in numbers)
    label = f"n {orders[0]} … {orders[1]}, x {low} … {high}"
    return Region(label, draw, dtypes, bound)


def halfway(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
    """Draw numbers halfway between poles, next to which even orders have roots."""
    return [rng.integers(1, 12, size), -rng.integers(0, 30, size) - 0.5]


OPERATIONS = [
    special(
        Accuracy(
            psm.PolyGamma,
            lambda n, x: mp.psi(int(n), x),
            [
                region((0, 4), (0.1, 20), bound=8),
                region((1, 4), (20, 1e8), bound=8),
                region((1, 4), (1e-5, 0.1), bound=8),
                region((5, 80), (0.5, 100), FLOAT64, bound=8),
                # Powers of these numbers underflow, and their products with factorials do not.
                region((80, 170), (0.5, 7000), FLOAT64, bound=8),
                region((1, 6), (1e3, 1e300), FLOAT64, bound=8),
                # Next to the roots of even orders terms cancel.
                region((1, 20), (0.3, 30), FLOAT64, sign=-1.0, bound=450),
                Region("n 1 … 11, x -0.5, -1.5 … -29.5", halfway, BOTH, 8),
            ],
            scipy.special.polygamma,
        ),
        is_slow=True,
    )
]
