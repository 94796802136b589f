"""Columns as arrays of the dtype and the sizes that a file takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pytensor_onnx_scoring.interface import Dim, Tensor

NULLS = "has nulls: fill or drop these rows"


class Problem(ValueError):  # noqa: N818  (collected, and raised together)
    """The reason why one column does not fit the file."""


def converted(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return values in another dtype, where no number changes but for the rounding of floats.

    Raises
    ------
    Problem
        If a number would change.

    Examples
    --------
    >>> converted(np.array([1, 2]), np.dtype("float32"))
    array([1., 2.], dtype=float32)
    >>> converted(np.array([2**24 + 1]), np.dtype("float32"))
    Traceback (most recent call last):
    pytensor_onnx_scoring.columns.Problem: has integers with more digits than float32 has
    """
    given = values.dtype
    if dtype.kind == "O":
        return _strings(values)
    if given == dtype:
        return values
    if given.kind == "O":
        values, given = _typed(values)
    kinds = given.kind + dtype.kind
    if np.can_cast(given, dtype):
        return values.astype(dtype)
    if kinds == "ff":
        return _rounded(values, dtype)
    if given.kind in "iu" and dtype.kind in "iuf":
        return _exact(values, dtype)
    raise Problem(f"is of {given}, the file takes {dtype}")


def _strings(values: np.ndarray) -> np.ndarray:
    """Return strings as Python objects; ONNX Runtime takes the text of any object for one."""
    if values.dtype.kind in "UT":
        return values.astype(object)
    if values.dtype.kind != "O":
        raise Problem(f"is of {values.dtype}, the file takes strings")
    if any(value is None for value in values.flat):
        raise Problem(NULLS)
    if not all(isinstance(value, str) for value in values.flat):
        raise Problem("has values that are no strings")
    return values


def _typed(values: np.ndarray) -> tuple[np.ndarray, np.dtype]:
    """Return an array of Python objects as one of numbers."""
    if any(value is None for value in values.flat):
        raise Problem(NULLS)
    try:
        array = np.array(values.tolist() or np.zeros(values.shape))
    except ValueError:
        raise Problem("has arrays of different sizes") from None
    if array.dtype.kind not in "biuf":
        raise Problem(f"is of {array.dtype}, and not of numbers")
    return array, array.dtype


def _rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    try:
        with np.errstate(over="raise"):
            return values.astype(dtype)
    except FloatingPointError:
        raise Problem(f"has numbers beyond the range of {dtype}") from None


def _exact(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return integers as other integers or floats, if all are the same numbers."""
    if dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            floats = values.astype(dtype)
            is_same = np.isfinite(floats) & (floats.astype(values.dtype) == values)
            is_same &= floats < np.iinfo(values.dtype).max
        if not np.all(is_same):
            raise Problem(f"has integers with more digits than {dtype} has")
        return floats
    bounds = np.iinfo(dtype)
    if values.size and (int(values.min()) < bounds.min or int(values.max()) > bounds.max):
        raise Problem(f"has integers beyond the range of {dtype}")
    return values.astype(dtype)


def check_shape(shape: Sequence[int], wanted: Sequence[Dim], sizes: dict[str, int]) -> None:
    """Raise if sizes do not fit; sizes of named axes are noted, and are equal wherever they occur.

    Raises
    ------
    Problem
        With the sizes that are wanted.

    Examples
    --------
    >>> check_shape((3, 2), ("n", 4), {})
    Traceback (most recent call last):
    pytensor_onnx_scoring.columns.Problem: has the shape [3, 2], the file takes [n = 3, 4]
    """
    fits = len(shape) == len(wanted) and all(
        dim is None or size == (dim if isinstance(dim, int) else sizes.setdefault(dim, size))
        for size, dim in zip(shape, wanted, strict=False)
    )
    if not fits:
        known = ["?" if dim is None else _named(dim, sizes) for dim in wanted]
        raise Problem(f"has the shape {list(shape)}, the file takes [{', '.join(known)}]")


def _named(dim: int | str, sizes: Mapping[str, int]) -> str:
    return f"{dim} = {sizes[dim]}" if isinstance(dim, str) and dim in sizes else str(dim)


def constant(value: Any, tensor: Tensor) -> np.ndarray:
    """Return the value of an input without rows; one number may have any rank.

    Raises
    ------
    Problem
        If dtype or shape do not fit.
    """
    array = np.asarray(value)
    if array.size == 1 and all(dim in (1, None) or isinstance(dim, str) for dim in tensor.shape):
        array = array.reshape((1,) * len(tensor.shape))
    check_shape(array.shape, tensor.shape, {})
    return converted(array, tensor.dtype)
