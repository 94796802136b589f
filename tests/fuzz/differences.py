"""In what arrays differ."""

import numpy as np

UNDERFLOW = 2**6
"""Largest factor by which a result of a number that underflows is multiplied on."""


def difference(
    found: np.ndarray, expected: np.ndarray, tolerance: float | np.ndarray, smallest: float = 0.0
) -> str:
    """Return in what two arrays differ by more than rounding, an empty text if in nothing."""
    if found.shape != expected.shape:
        return f"has shape {found.shape} instead of {expected.shape}"
    same = is_same(found, expected, tolerance, smallest)
    if np.all(same):
        return ""
    position = np.unravel_index(np.argmin(same), same.shape)
    where = f" at {[int(i) for i in position]}" if position else ""
    return f"is {found[position]!r} instead of {expected[position]!r}{where}"


def is_same(
    found: np.ndarray, expected: np.ndarray, tolerance: float | np.ndarray, smallest: float = 0.0
) -> np.ndarray:
    """Return for each element whether two arrays of one dtype differ by rounding only.

    Where the tolerance is NaN, any element will do; errors smaller than the smallest are none, nor
    are those of an underflow between a result and its operands.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.kind != "f":
        return np.asarray(found == expected)
    smallest = max(smallest, UNDERFLOW * float(np.finfo(found.dtype).tiny))
    with np.errstate(all="ignore"):
        same = np.isclose(
            found.astype("f8"), expected.astype("f8"), rtol=tolerance, atol=smallest, equal_nan=True
        )
    return np.asarray(same | np.isnan(tolerance))
