"""Constants in the dtype of a variable, polynomials, and a few tricks with zeros and roundings.

The Where of ONNX Runtime turns a -0.0 of its first branch into +0.0 and keeps that of its second.
The definitions therefore select the branch that holds around zero by the condition being false.
"""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.coefficients import Coefficients


def constant(x: TensorVariable, value: float, float32: float | None = None) -> TensorVariable:
    """Make a constant in the dtype of ``x``.

    PyTensor would promote float32 to float64 when it meets a Python number that float32 cannot
    hold, so that no expression here combines a variable with a bare number.

    Parameters
    ----------
    x
        The variable that the constant will meet.
    value
        The number, rounded to the dtype.
    float32
        The number to take instead in float32.
    """
    if float32 is not None and x.dtype == "float32":
        value = float32
    return pt.constant(np.asarray(value, dtype=x.dtype))


def polynomial(x: TensorVariable, coefficients: Coefficients, start: int = 0) -> TensorVariable:
    """Evaluate by Horner's rule the polynomial given for the dtype of ``x``.

    With ``start``, that many of the lowest terms are left out, and ``x`` divided out as often.
    """
    return horner(x, [constant(x, coefficient) for coefficient in row(x, coefficients)[start:]])


def row(x: TensorVariable, coefficients: Coefficients) -> tuple[float, ...]:
    """Return the coefficients for the dtype of ``x``, those of float64 where it has none."""
    return coefficients.get(x.dtype, coefficients["float64"])


def horner(x: TensorVariable, coefficients: Sequence[TensorVariable]) -> TensorVariable:
    """Evaluate the polynomial with given coefficients, the lowest degree first."""
    *lower, value = coefficients
    for coefficient in reversed(lower):
        value = value * x + coefficient
    return value


def sum_of_powers(x: TensorVariable, coefficients: Coefficients, start: int = 0) -> TensorVariable:
    """Evaluate a `polynomial` of a short vector in three operations, by all powers at once."""
    factors = np.array(row(x, coefficients)[start:])[:, None]
    powers = pt.pow(x, pt.constant(np.arange(len(factors), dtype=x.dtype)[:, None]))
    return pt.sum(powers * pt.constant(factors.astype(x.dtype)), axis=0)


def is_short(x: TensorVariable) -> bool:
    """Return whether x is a vector of static length, which definitions make of scalars only."""
    return x.ndim == 1 and x.type.shape[0] is not None


def polynomials(
    points: Sequence[TensorVariable], rows: Sequence[Sequence[float]]
) -> list[TensorVariable]:
    """Evaluate several polynomials, each at points of its own.

    Those of few elements are evaluated at once, along the only axis. That takes a small call half
    the time, which is that of the runtime for each node; arrays would leave the cache.
    """
    x = points[0]
    if not is_short(x):
        pairs = zip(points, rows, strict=True)
        return [horner(point, [constant(x, value) for value in row]) for point, row in pairs]
    columns = zip_longest(*rows, fillvalue=0.0)
    coefficients = [pt.constant(np.array(column, dtype=x.dtype)) for column in columns]
    values = horner(pt.concatenate(points), coefficients)
    return pt.split(values, [1] * len(rows), n_splits=len(rows), axis=0)


def split_rows(x: TensorVariable, count: int) -> list[TensorVariable]:
    """Return the parts of ``x`` along its first axis, which has so many elements.

    It is one operator, which the runtime makes of several indices when a session is created.
    """
    return [pt.squeeze(part, axis=0) for part in rows_of(x, count)]


def rows_of(x: TensorVariable, count: int) -> list[TensorVariable]:
    """Return the parts of `split_rows` with their first axis, of one element each."""
    return pt.split(x, [1] * count, n_splits=count, axis=0)


def stacked(x: TensorVariable, values: Sequence[float] | np.ndarray) -> TensorVariable:
    """Make a constant of numbers along a new first axis before the axes of ``x``."""
    shape = (len(values), *[1] * x.ndim)
    return pt.constant(np.reshape(np.asarray(values, dtype=x.dtype), shape))


def add_with_error(x: TensorVariable, y: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Add, and give the rounding error of that.

    D. E. Knuth, The Art of Computer Programming 2, section 4.2.2, theorem B.
    """
    total = x + y
    added = total - x
    return total, (x - (total - added)) + (y - added)


def upper_half(x: TensorVariable) -> TensorVariable:
    """Round float64 numbers to 26 bits, so that products of two are exact.

    T. J. Dekker, Numer. Math. 18 (1971) 224-242.
    """
    scaled = x * constant(x, 2.0**27 + 1)
    return scaled - (scaled - x)


def square_with_error(x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Square ``x``, and give the rounding error of that.

    ``x`` is split at a fixed binary place so that the square of its upper part is exact; the
    rest is ``(x - upper) * (x + upper)``.

    Returns
    -------
    square, error
        ``x**2 = square + error`` to about twice the working precision, for ``|x| < 32``.
    """
    place = constant(x, 2.0**21, float32=2.0**7)
    unit = constant(x, 2.0**-21, float32=2.0**-7)
    upper = pt.round(x * place) * unit
    square = x * x
    return square, (upper * upper - square) + (x - upper) * (x + upper)


def is_positive(x: TensorVariable) -> TensorVariable:
    """Tell +0.0 and positive numbers from -0.0 and negative ones."""
    return x + constant(x, 1.0) / x > constant(x, 0.0)
