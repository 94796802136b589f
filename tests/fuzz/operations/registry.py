"""The list of operations that a random graph is made of."""

from collections.abc import Callable

from tests.dispatch.values import FLOATS
from tests.fuzz.graphs import Graph

Operation = Callable[[Graph], str | None]
OPERATIONS: list[Operation] = []

WIDE = ("float64", "float32")
MATRIX = range(1, 5)
INDEX_DTYPES = ("int64", "int32", "int8", "uint8")


def operation(function: Operation) -> Operation:
    """Let graphs contain an operation."""
    OPERATIONS.append(function)
    return function


def floats(g: Graph) -> tuple[str, ...]:
    """Return the dtypes of floats that an operation takes: at times with float16."""
    return FLOATS if g.choices.one_in(6) else WIDE
