"""Arithmetic in double-float numbers, and float64 for float32.

The Where of ONNX Runtime turns a -0.0 of its first branch into +0.0 and keeps that of its second.
The definitions therefore select the branch that holds around zero by the condition being false.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import zip_longest
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import mapped
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


Expression = Callable[..., TensorVariable]
_IS_NARROW = ContextVar("is_narrow", default=False)


@contextmanager
def narrow(is_narrow: bool = True) -> Iterator[None]:
    """Let `widened` expressions be evaluated in float32, for files without float64."""
    token = _IS_NARROW.set(is_narrow)
    try:
        yield
    finally:
        _IS_NARROW.reset(token)


def is_narrow() -> bool:
    """Return whether expressions of float32 are evaluated in float32, within `narrow`."""
    return _IS_NARROW.get()


def widened(expression: Expression) -> Expression:
    """Evaluate an expression `in_float64`, or within `narrow` in the dtype of its operands."""
    wide = in_float64(expression)

    @wraps(expression)
    def evaluated(*operands: TensorVariable) -> TensorVariable:
        if not is_narrow():
            return wide(*operands)
        return expression(*(x.astype(operands[-1].dtype) for x in operands))

    return evaluated


def in_float64(expression: Expression) -> Expression:
    """Evaluate an expression of float operands in float64, and round to their dtype.

    The gamma and Bessel functions amplify errors of intermediate results, of the logarithm above
    all, which ONNX Runtime computes within 2.7 ulp only in float32.
    """

    @wraps(expression)
    def evaluated(*operands: TensorVariable) -> TensorVariable:
        dtype = operands[-1].dtype
        return expression(*(x.astype("float64") for x in operands)).astype(dtype)

    return evaluated


def with_an_axis(expression: Expression) -> Expression:
    """Evaluate an expression of scalars for vectors of one element.

    Then parts of it can be computed at once, along that axis.
    """

    @wraps(expression)
    def evaluated(*operands: TensorVariable) -> TensorVariable:
        if operands[0].ndim:
            return expression(*operands)
        return pt.squeeze(expression(*(x[None] for x in operands)), axis=0)

    return evaluated


def on_pair(
    function: Callable[[TensorVariable], Sequence[TensorVariable]],
    x: TensorVariable,
    y: TensorVariable,
) -> tuple[Sequence[TensorVariable], Sequence[TensorVariable]]:
    """Return the results of a function for two operands: at once for vectors of one element."""
    if not is_short(x):
        return function(x), function(y)
    results = function(pt.concatenate([x, y]))
    pairs = [pt.split(result, [1, 1], n_splits=2, axis=0) for result in results]
    return [first for first, _ in pairs], [second for _, second in pairs]


def where_any(
    condition: TensorVariable, value: TensorVariable, otherwise: TensorVariable
) -> TensorVariable:
    """Select by a condition, and compute ``value`` only if the condition holds anywhere.

    Within `narrow` both are computed: few runtimes have branches.
    """
    if is_narrow():
        return pt.switch(condition, value, otherwise)
    anywhere = pt.squeeze(condition) if is_short(condition) else pt.any(condition)
    return ifelse(anywhere, pt.switch(condition, value, otherwise), otherwise)


def if_any_of_few(
    condition: TensorVariable,
    function: Callable[..., TensorVariable],
    value: TensorVariable,
    operands: Sequence[TensorVariable],
) -> TensorVariable:
    """Replace a value as `of_few` does, and compute nothing where the condition holds nowhere."""
    [replaced] = of_few(condition, lambda *of: [function(*of)], [value], operands)
    return ifelse(pt.any(condition), replaced, value)


def of_few(
    condition: TensorVariable,
    function: Callable[..., Sequence[TensorVariable]],
    values: Sequence[TensorVariable],
    operands: Sequence[Any],
    *,
    as_rows: bool = False,
) -> list[TensorVariable]:
    """Replace values where a condition holds by a function of the values and operands.

    The function receives vectors, or with ``as_rows`` matrices of one row, which it can join
    along the first axis and split again without adding or dropping axes. Operands are variables, or
    named tuples of these.
    """
    places = pt.nonzero(condition.flatten())[0]
    chosen = places[None] if as_rows else places
    flat = [x.flatten() for x in values]
    picked = (mapped(lambda x: x.flatten()[chosen], part) for part in operands)
    found = function(*(x[chosen] for x in flat), *picked)
    if as_rows:
        found = [pt.squeeze(x, axis=0) for x in found]
    replaced = [x[places].set(y) for x, y in zip(flat, found, strict=True)]
    shape, ndim = condition.shape, condition.ndim
    return replaced if ndim == 1 else [x.reshape(shape, ndim=ndim) for x in replaced]
