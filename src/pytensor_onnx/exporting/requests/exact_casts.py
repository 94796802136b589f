"""Convert arrays to another dtype where no number changes."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDER = {"float64": (), "float32": ("float64",), "float16": ("float64", "float32")}
"""Dtypes that each precision replaces."""


def exactly(values: Any, dtype: str) -> np.ndarray | None:
    """Return numbers converted to a dtype, or None if the dtype cannot represent all of them.

    NaN stays NaN. Values that are no numbers are returned as they are.

    Examples
    --------
    >>> exactly(np.array([0.5, np.nan]), "float32")
    array([0.5, nan], dtype=float32)
    >>> exactly(np.array([0.1]), "float32") is None, exactly(np.array([3.0]), "int8")
    (True, array([3], dtype=int8))
    """
    given, wanted = np.asarray(values), np.dtype(dtype)
    if given.dtype == wanted or given.dtype.kind not in "biuf":
        return given
    with np.errstate(all="ignore"):
        converted = given.astype(wanted)
    return converted if not np.any(changed(given, converted)) else None


def first_changed(values: Any, dtype: str) -> str:
    """Return the first number that is not one of a dtype, empty if there is none."""
    given = np.asarray(values)
    if given.dtype.kind not in "biuf":
        return ""
    with np.errstate(all="ignore"):
        lost = given[changed(given, given.astype(dtype))]
    return str(lost.flat[0]) if lost.size else ""


def changed(given: np.ndarray, converted: np.ndarray) -> np.ndarray:
    """Return a mask of the numbers that a conversion changes."""
    with np.errstate(all="ignore"):
        # Back again, as a comparison of int64 with floats rounds the integers.
        differs = converted.astype(given.dtype) != given
        for numbers, other in ((given, converted), (converted, given)):
            # A float beyond the integers may be converted to the last of them.
            if numbers.dtype.kind == "f" and other.dtype.kind in "iu":
                differs |= numbers >= 2.0 ** (
                    np.iinfo(other.dtype).bits - (other.dtype.kind == "i")
                )
    if given.dtype.kind == "f":
        is_nan = np.isnan(given)
        differs = np.where(is_nan, converted.dtype.kind != "f", differs)
    return differs
