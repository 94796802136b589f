"""Differences of arrays, and the tolerances of dtypes."""

from typing import Any

import numpy as np

RELATIVE_TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2}


def disagreement(found: np.ndarray, expected: np.ndarray, slack: float = 0.0) -> str:
    """Describe how two arrays differ beyond rounding; empty if they agree.

    Parameters
    ----------
    found, expected
        The arrays.
    slack
        Difference that is allowed beyond the tolerance of the dtype.

    Examples
    --------
    >>> disagreement(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    ''
    >>> disagreement(np.array([1.0]), np.array([1.5]))
    'largest difference 0.5 (found 1.0, expected 1.5 at [0])'
    >>> disagreement(np.array([1.0, np.nan]), np.array([1.5, 2.0]))
    'found nan, expected 2.0 at [1]'
    """
    if found.dtype != expected.dtype:
        return f"dtype {found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    if not found.size:
        return ""
    if found.dtype.kind != "f":
        differs = found != expected
        if not differs.any():
            return ""
    else:
        with np.errstate(all="ignore"):
            relative = RELATIVE_TOLERANCE[str(found.dtype)]
            finite = np.abs(expected[np.isfinite(expected)])
            scale = float(finite.max()) if finite.size else 0.0
            close = np.isclose(
                found, expected, rtol=relative, atol=relative * scale + slack, equal_nan=True
            )
        if close.all():
            return ""
        differs = ~close
    with np.errstate(all="ignore"):
        distances = np.where(differs, np.abs(found.astype("f8") - expected.astype("f8")), 0.0)
    has_no_distance = np.isnan(distances)
    shown = has_no_distance if has_no_distance.any() else differs
    position = np.unravel_index(np.argmax(shown), found.shape)
    at = f"found {found[position]}, expected {expected[position]} at {[int(i) for i in position]}"
    return at if shown is has_no_distance else f"largest difference {distances.max():.3g} ({at})"


def relative_error(found: Any, exact: Any) -> float:
    """Return the largest error among finite elements, relative to the largest magnitude."""
    found, exact = np.asarray(found), np.asarray(exact)
    if exact.dtype.kind != "f" or found.shape != exact.shape:
        return 0.0
    known = np.isfinite(exact)
    scale = np.max(np.abs(exact), where=known, initial=0.0)
    with np.errstate(all="ignore"):
        errors = np.abs(found.astype("float64") - exact)
    largest = float(np.max(np.where(np.isnan(errors), np.inf, errors), where=known, initial=0.0))
    return largest / float(scale) if scale else largest


def errors_of(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the absolute difference of each element, infinite if only one element is finite.

    PyTensor's solution of a singular system is a square matrix of NaN, whatever its shape was.
    """
    if found.shape != exact.shape:
        return np.full(exact.size, np.inf)
    found, exact = found.ravel(), exact.ravel()
    if exact.dtype.kind != "f":
        return (found != exact).astype("float64")
    with np.errstate(all="ignore"):
        errors = np.abs(found.astype("float64") - exact)
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    errors[same] = 0.0
    errors[np.isnan(errors)] = np.inf
    return errors
