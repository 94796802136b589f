"""Operations that a random graph is made of: each returns the code that applies it, or None."""

from tests.fuzz.operations import (
    elementwise,
    failing,
    indices,
    inner,
    leaves,
    loops,
    products,
    reductions,
    searching,
    shapes,
)
from tests.fuzz.operations.registry import OPERATIONS

__all__ = [
    "OPERATIONS",
    "elementwise",
    "failing",
    "indices",
    "inner",
    "leaves",
    "loops",
    "products",
    "reductions",
    "searching",
    "shapes",
]
