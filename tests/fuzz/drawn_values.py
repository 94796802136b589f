"""Values of the inputs, constants and shared variables of random graphs."""

from collections.abc import Sequence

import numpy as np

from tests.dispatch.values import DISCRETE
from tests.fuzz.terms import Choices


def drawn_values(
    choices: Choices, dtype: str, shape: Sequence[int], *, finite: bool = False
) -> np.ndarray:
    """Return values of a dtype and a shape, some of them at the limits of the dtype."""
    kind = choices.below(10)
    size = int(np.prod(shape))
    if kind == 0:
        return (np.arange(size) % 5).reshape(shape)
    rng = np.random.default_rng(choices.below(256))
    if dtype in DISCRETE:
        limits = np.iinfo("uint8" if dtype == "bool" else dtype)
        low = -4 if limits.min else 0
        values = rng.integers(low, 5, size=shape)
        if kind == 9 and dtype != "bool":
            extremes = np.array([limits.min, limits.max, 1, 0], dtype=dtype)
            values = rng.choice(extremes, size=shape)
        return values
    values = rng.normal(size=shape)
    if kind < 4:
        values = rng.integers(-16, 17, size=shape) / 4
    elif kind == 6:
        values = values * 10.0 ** rng.integers(-3, 4, size=shape)
    elif kind == 7:
        values = np.abs(values)
    elif kind == 9 and not finite:
        special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], size=shape)
        values = np.where(rng.random(shape) < 0.2, special, values)
    return values
