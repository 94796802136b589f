"""Columns as arrays of the dtype and the sizes that a file takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np

from pytensor_onnx_scoring.exact_casts import (
    NUMBERS,
    exactly,
    first_changed,
    no_sequence,
    of_objects,
)
from pytensor_onnx_scoring.interface import Dim, Tensor

NULLS = "has nulls: fill or drop these rows"
LENGTHS = "has lists of different lengths"

_EXACT_DECIMAL = 10**15
"""Integers up to which float64 has all decimals of as many digits."""
_EXACT_POWER = 22
"""Largest power of ten that float64 has exactly."""


class Problem(ValueError):  # noqa: N818  (collected, and raised together)
    """The reason why one column does not fit the file."""


def converted(values: np.ndarray, dtype: np.dtype, first: int = 0) -> np.ndarray:
    """Return values in another dtype, where no number changes but for the rounding of floats.

    Parameters
    ----------
    values, dtype
        The values, and the dtype.
    first
        Row of the table from which the values are, for messages.

    Raises
    ------
    Problem
        If a number would change; with the first one.

    Examples
    --------
    >>> converted(np.array([1, 2]), np.dtype("float32"))
    array([1., 2.], dtype=float32)
    >>> converted(np.array([2**24 + 1]), np.dtype("float32"))
    Traceback (most recent call last):
    pytensor_onnx_scoring.columns.Problem: has integers with more digits than float32 has: ...
    """
    if dtype.kind == "O":
        return _strings(values)
    if values.dtype == dtype:
        return values
    if values.dtype.kind == "O":
        values = _typed(values, dtype, first)
    if values.dtype.kind == dtype.kind == "f":
        return _rounded(values, dtype, first)
    if values.dtype.kind not in (*NUMBERS, "O"):
        raise Problem(f"is of {values.dtype}, the file takes {dtype}")
    found = exactly(values, dtype)
    if found is None:
        index, number = first_changed(values, dtype) or ((), "some")
        reason = f"has numbers that {dtype} does not have"
        if isinstance(number, Integral):
            longer = f"has integers with more digits than {dtype} has"
            reason = longer if dtype.kind == "f" else f"has integers beyond the range of {dtype}"
        raise Problem(f"{reason}: {number}{_row(index, first)}")
    return found


def _row(index: Sequence[int], first: int) -> str:
    return f" in row {first + index[0]}" if len(index) else ""


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


def _typed(values: np.ndarray, dtype: np.dtype, first: int) -> np.ndarray:
    """Return an array of Python objects as one of numbers; large integers remain objects."""
    if any(value is None for value in values.flat):
        raise Problem(NULLS)
    try:
        array = np.array(values.tolist() or np.zeros(values.shape))
    except ValueError:
        raise Problem("has arrays of different sizes") from None
    if array.dtype.kind == "f" and array.shape == values.shape:
        array = of_objects(values.tolist())
    if array.dtype.kind in NUMBERS:
        return array
    if array.dtype.kind != "O":
        raise Problem(f"is of {array.dtype}, and not of numbers")
    if others := {type(value) for value in array.flat if not isinstance(value, Real | Decimal)}:
        names = ", ".join(sorted(kind.__name__ for kind in others))
        raise Problem(f"has values of {names}, and not of numbers")
    if dtype.kind != "f" or all(isinstance(value, Integral) for value in array.flat):
        return array
    return _of_decimals(array, first)


def _of_decimals(values: np.ndarray, first: int) -> np.ndarray:
    """Return decimals as float64, if it has all of their digits."""
    floats = np.empty(values.shape)
    for index, value in np.ndenumerate(values):
        try:
            floats[index] = number = float(value)
        except OverflowError:
            number = inf
        # The text of a float has as many digits as tell it from others.
        if value not in (number, Decimal(repr(number))) and number == number:  # noqa: PLR0124
            text = f"{value}{_row(index, first)}"
            raise Problem(f"has numbers with more digits than float64 has: {text}")
    return floats


def scaled(integers: np.ndarray, scale: int) -> np.ndarray | None:
    """Return decimals of integers and their number of digits after the point, None if too long.

    Both operands of the division are exact, so that its result is the float next to the decimal.

    Examples
    --------
    >>> scaled(np.array([150, -25]), 2)
    array([ 1.5 , -0.25])
    """
    if scale == 0 or integers.size == 0:
        return integers
    is_short = integers.min() >= -_EXACT_DECIMAL and integers.max() <= _EXACT_DECIMAL
    if not is_short or not 0 < scale <= _EXACT_POWER:
        return None
    return integers / 10.0**scale


def _rounded(values: np.ndarray, dtype: np.dtype, first: int) -> np.ndarray:
    try:
        with np.errstate(over="raise"):
            return values.astype(dtype)
    except FloatingPointError:
        with np.errstate(over="ignore"):
            beyond = np.isinf(values.astype(dtype)) & np.isfinite(values)
        index = tuple(np.argwhere(beyond)[0])
        text = f"{values[index]}{_row(index, first)}"
        raise Problem(f"has numbers beyond the range of {dtype}: {text}") from None


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
    if kind := no_sequence(value):
        raise Problem(f"is {kind}")
    array = of_objects(value)
    if array.size == 1 and all(dim in (1, None) or isinstance(dim, str) for dim in tensor.shape):
        array = array.reshape((1,) * len(tensor.shape))
    check_shape(array.shape, tensor.shape, {})
    return converted(array, tensor.dtype)
