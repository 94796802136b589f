"""Types that all searches share: functions, points, tolerances and results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

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
