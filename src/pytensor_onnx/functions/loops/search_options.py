"""Options of SciPy's optimisers, and types of searches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

_WITHOUT_EFFECT = ("disp", "full_output")


class Refused(Exception):  # noqa: N818  (no error, but the reason for a lowering to raise one)
    """A call of an optimizer that cannot be written as a loop, with advice.

    Parameters
    ----------
    reason
        Reason of the refusal, whose subject is the Op.
    instead
        Advice on another way.
    """

    def __init__(self, reason: str, instead: str) -> None:
        super().__init__(reason)
        self.reason, self.instead = reason, instead


class Options:
    """The keyword arguments of a call of SciPy; a search has to read each of them.

    Parameters
    ----------
    arguments
        The keyword arguments; those under ``"options"`` count as their own.

    Examples
    --------
    >>> options = Options({"tol": 1e-3, "options": {"maxiter": 7}})
    >>> options.take(1e-8, "xtol", "tol"), options.take(50, "maxiter")
    (0.001, 7)
    >>> options.check_all_taken()
    >>> Options({"bounds": [(0, 1)]}).check_all_taken()
    Traceback (most recent call last):
    ...
    pytensor_onnx.functions.loops.search_options.Refused: its option 'bounds'
    has no counterpart
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        given = dict(arguments)
        given.update(given.pop("options", None) or {})
        self._left = {key: value for key, value in given.items() if key not in _WITHOUT_EFFECT}

    def take(self, default: Any, *names: str) -> Any:
        """Return the option given by one of the names, or the default; the first name counts."""
        given = [self._left.pop(name, None) for name in names]
        return next((value for value in given if value is not None), default)

    def check_all_taken(self) -> None:
        """Raise if an option is left.

        Raises
        ------
        Refused
            With the names of the options.
        """
        names = ", ".join(repr(key) for key, value in self._left.items() if value is not None)
        if names:
            raise Refused(f"its option {names} has no counterpart", "leave it out")


type Function = Callable[..., TensorVariable]


class Found(NamedTuple):
    """A point in float64, and whether the search converged to it."""

    point: TensorVariable
    converged: TensorVariable


@dataclass(frozen=True)
class Stop:
    """Tolerances at which a search ends.

    Attributes
    ----------
    absolute, relative
        Largest error of the point, and largest error relative to it.
    steps
        Largest number of steps.
    """

    absolute: float
    relative: float
    steps: int

    def tolerance(self, x: TensorVariable) -> TensorVariable:
        """Return the largest error of a point."""
        return self.absolute + self.relative * pt.abs(x)

    def are_close(self, x: TensorVariable, y: TensorVariable) -> TensorVariable:
        """Return whether a point is within the tolerance of another."""
        return pt.le(pt.abs(x - y), self.tolerance(y))


class Point(NamedTuple):
    """A number, and the value of the function there."""

    x: TensorVariable
    value: TensorVariable


def choose(condition: TensorVariable, yes: Point, no: Point) -> Point:
    """Select the point `yes` where a condition holds and `no` elsewhere.

    Examples
    --------
    >>> point = choose(pt.gt(pt.constant(3.0), 1), Point(1.0, 2.0), Point(5.0, 6.0))
    >>> point.x.eval(mode="FAST_COMPILE"), point.value.eval(mode="FAST_COMPILE")
    (array(1., dtype=float32), array(2., dtype=float32))
    """
    return Point(*(pt.switch(condition, a, b) for a, b in zip(yes, no, strict=True)))


def swap(condition: TensorVariable, first: Point, second: Point) -> tuple[Point, Point]:
    """Return two points, exchanged where a condition holds.

    Examples
    --------
    >>> first, _ = swap(pt.constant(True), Point(1.0, 2.0), Point(5.0, 6.0))
    >>> first.x.eval(mode="FAST_COMPILE")
    array(5., dtype=float32)
    """
    return choose(condition, second, first), choose(condition, first, second)
