"""Convert arrays to another dtype where no number changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

NUMBERS = "biuf"
"""Kinds of dtypes whose values are numbers."""


def exactly(values: Any, dtype: str | np.dtype) -> np.ndarray | None:
    """Return numbers converted to a dtype, or None if the dtype cannot represent all of them.

    NaN stays NaN. Python's numbers may be in an array of objects. Values that are no numbers are
    returned as they are.

    Examples
    --------
    >>> exactly(np.array([0.5, np.nan]), "float32")
    array([0.5, nan], dtype=float32)
    >>> exactly(np.array([0.1]), "float32") is None, exactly(np.array([3.0]), "int8")
    (True, array([3], dtype=int8))
    >>> exactly([2**53 + 1], "float64") is None
    True
    """
    given, wanted = of_objects(values), np.dtype(dtype)
    if given.dtype == wanted or given.dtype.kind not in NUMBERS + "O":
        return given
    if _has_all(wanted, given):
        return given.astype(wanted)
    try:
        with np.errstate(all="ignore"):
            converted = given.astype(wanted)
    # Objects that are no numbers, or beyond the dtype.
    except (OverflowError, TypeError, ValueError):
        return None
    return None if np.any(changed(given, converted)) else converted


def first_changed(values: Any, dtype: str | np.dtype) -> tuple[tuple[int, ...], Any] | None:
    """Return index and value of the first number that a dtype does not have, None without one.

    Examples
    --------
    >>> first_changed([1, 2**24 + 1], "float32")
    ((1,), np.int64(16777217))
    """
    given, wanted = of_objects(values), np.dtype(dtype)
    if given.dtype.kind == "O":
        return next(((i, x) for i, x in np.ndenumerate(given) if exactly(x, wanted) is None), None)
    if given.dtype.kind not in NUMBERS:
        return None
    with np.errstate(all="ignore"):
        places = np.argwhere(changed(given, given.astype(wanted)))
    index = tuple(map(int, places[0])) if len(places) else None
    return None if index is None else (index, given[index])


def of_objects(values: Any) -> np.ndarray:
    """Return an array; integers that NumPy would round beside floats remain Python's own.

    Examples
    --------
    >>> of_objects([1, 0.5]), of_objects([2**53 + 1, 0.5])
    (array([1. , 0.5]), array([9007199254740993, 0.5], dtype=object))
    """
    array = np.asarray(values)
    if array.dtype.kind == "O":
        return _of_python(array)
    if array.dtype.kind == "f" and not hasattr(values, "dtype") and _has_large(array):
        objects = _of_python(np.asarray(values, object))
        return objects if changed(objects, array).any() else array
    return array


def no_sequence(values: Any) -> str | None:
    """Return how to give an iterable that NumPy takes for a single object, None for other values.

    Such are generators, sets, mappings, the views of dicts, and sparse matrices.

    Examples
    --------
    >>> no_sequence({1.0, 2.0}), no_sequence([1.0, 2.0])
    ('a set: give a sequence or an array', None)
    """
    if isinstance(values, np.ndarray | Sequence) or not isinstance(values, Iterable):
        return None
    array = np.asarray(values)
    is_object = array.ndim == 0 and array.dtype.kind == "O"
    return f"a {type(values).__name__}: give a sequence or an array" if is_object else None


def _of_python(objects: np.ndarray) -> np.ndarray:
    """Return objects with Python's numbers for NumPy's, which round integers beside floats."""
    plain = np.empty_like(objects)
    plain.flat = [x.item() if isinstance(x, np.integer) else x for x in objects.flat]
    return plain


def _has_large(array: np.ndarray) -> bool:
    """Return whether an array has numbers from which float64 does not have all integers."""
    return bool(np.any(np.abs(array) >= 2**53))


def changed(given: np.ndarray, converted: np.ndarray) -> np.ndarray:
    """Return a mask of the numbers that a conversion changes."""
    if given.dtype.kind == "O":
        # Python compares numbers of different types exactly.
        is_nan = (given != given) & (converted != converted)  # noqa: PLR0124
        return np.asarray((given != converted.astype(object)) & ~is_nan, bool)
    with np.errstate(all="ignore"):
        # Back again, as a comparison of int64 with floats rounds the integers.
        differs = converted.astype(given.dtype) != given
        for numbers, other in ((given, converted), (converted, given)):
            # A float beyond the integers may be converted to the last of them.
            if numbers.dtype.kind == "f" and other.dtype.kind in "iu":
                differs |= np.isinf(numbers) | (
                    numbers >= 2.0 ** (np.iinfo(other.dtype).bits - (other.dtype.kind == "i"))
                )
    if given.dtype.kind in "iu" and converted.dtype.kind in "iu":
        # Integers with and without signs share their bits.
        differs |= (given < 0) != (converted < 0)
    if given.dtype.kind == "f":
        is_nan = np.isnan(given)
        differs = np.where(is_nan, converted.dtype.kind != "f", differs)
    return differs


def _has_all(wanted: np.dtype, given: np.ndarray) -> bool:
    """Return whether a dtype has all numbers of an array, as far as that is seen quickly."""
    if given.dtype.kind not in "iu" or wanted.kind not in "iuf":
        return given.dtype.kind != "O" and np.can_cast(given.dtype, wanted)
    if given.size == 0:
        return True
    if wanted.kind == "f":
        least, most = -(2 ** (np.finfo(wanted).nmant + 1)), 2 ** (np.finfo(wanted).nmant + 1)
    else:
        least, most = np.iinfo(wanted).min, np.iinfo(wanted).max
    own = np.iinfo(given.dtype)
    if least <= own.min and own.max <= most:
        return True
    return bool(least <= int(given.min()) and int(given.max()) <= most)
