"""The parts of a random graph: its variables with their values, lines of code, and choices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable

from tests.dispatch.values import FLOATS


@dataclass(eq=False)
class Term:
    """A variable of a graph, its name in the code, its value and how an input lies in memory.

    A loss, or its gradient, may be infinite or badly computed as the graph is written.
    """

    name: str
    variable: Variable
    value: np.ndarray
    exact: bool
    layout: str = ""
    is_loss: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of the variable."""
        return self.variable.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The rank."""
        return self.value.ndim

    @property
    def static(self) -> tuple[int | None, ...]:
        """The sizes that the type knows."""
        return self.variable.type.shape

    @property
    def is_float(self) -> bool:
        """Whether the dtype is a float."""
        return self.dtype in FLOATS

    def broadcasts_to(self, other: "Term") -> bool:
        """Return whether PyTensor broadcasts two terms: only sizes known to be one may differ."""
        return all(
            m == n or 1 in (a, b)
            for m, n, a, b in zip(
                reversed(self.shape),
                reversed(other.shape),
                reversed(self.static),
                reversed(other.static),
                strict=False,
            )
        )

    def __str__(self) -> str:
        return self.name


@dataclass
class Line:
    """A line of code: the names that it assigns and the expression."""

    names: list[str]
    code: str
    is_list: bool = False
    is_loss: bool = False

    def __str__(self) -> str:
        targets = ", ".join(self.names)
        return f"[{targets}] = {self.code}" if self.is_list else f"{targets} = {self.code}"


class Choices:
    """Numbers that decide everything; where they end, every choice is the first one."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._numbers = iter(numbers)

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        return next(self._numbers, 0) % n

    def of[T](self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.below(len(options))]

    def one_in(self, n: int) -> bool:
        """Return True once in n times, False when in doubt."""
        return self.below(n) == n - 1

    def some[T](self, options: Sequence[T]) -> list[T]:
        """Return some of the options, at least one, in order."""
        chosen = [option for option in options if self.below(2)]
        return chosen or [self.of(options)]
