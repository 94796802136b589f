"""Evaluation in float64, and of branches that no element needs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import pytensor.tensor as pt
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import mapped
from pytensor_onnx.functions.special.arithmetic import is_short

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
