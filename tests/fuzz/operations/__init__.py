"""Operations that a random graph is made of: each returns the code that applies it, or None."""

from tests.fuzz.operations import (
    constants,
    elementwise,
    failing,
    generators,
    indices,
    inner,
    leaves,
    loops,
    losses,
    networks,
    products,
    reductions,
    searching,
    shapes,
)
from tests.fuzz.operations.registry import OPERATIONS

__all__ = [
    "OPERATIONS",
    "constants",
    "elementwise",
    "failing",
    "generators",
    "indices",
    "inner",
    "leaves",
    "loops",
    "losses",
    "networks",
    "products",
    "reductions",
    "searching",
    "shapes",
]
