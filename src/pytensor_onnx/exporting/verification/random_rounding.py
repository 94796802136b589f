"""Round float64 numbers to a dtype as another implementation of the operations might."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op

UNITS = 4
"""Largest error of a rounded number, in units in the last place."""

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)


class RoundAtRandom(Op):
    """Move the results of an operation by up to four units in the last place of a dtype.

    Numbers that the operation did not round are kept: those of the operands, with any sign, and
    those of the dtype, or of float32 in place of float64, as small whole numbers are. Equal numbers
    move equally, so that differences of equal results stay zero (stochastic arithmetic: Vignes,
    *A stochastic arithmetic for reliable scientific computation*, 1993).

    Parameters
    ----------
    dtype
        The dtype, which the results are numbers of.
    seed
        Seed of the moves.
    """

    __props__ = ("dtype", "seed")

    def __init__(self, dtype: str, seed: int) -> None:
        self.dtype = dtype
        self.seed = seed

    def make_node(self, x: Variable, *operands: Variable) -> Apply:
        """Make the node of a result and the operands of its operation."""
        return Apply(self, [x, *operands], [x.type()])

    def perform(self, node: Apply, inputs: list[Any], outputs: list[list[Any]]) -> None:
        """Move the numbers that the operation rounded."""
        numbers, *operands = (np.asarray(value) for value in inputs)
        found = moved(numbers, self.dtype, self.seed)
        if operands:
            known = np.concatenate([np.abs(operand).ravel() for operand in operands])
            found = np.where(np.isin(np.abs(numbers), known), numbers, found)
        outputs[0][0] = found


def moved(numbers: np.ndarray, dtype: str, seed: int) -> np.ndarray:
    """Perturb float64 numbers by random roundings in a dtype; exact numbers stay.

    Examples
    --------
    >>> moved(np.array([0.5, 0.1]), "float16", seed=0)
    array([0.5      , 0.1003418])
    """
    with np.errstate(all="ignore"):
        exact = numbers.astype("float32" if dtype == "float64" else dtype).astype("float64")
        factors = 1 + UNITS * np.finfo(dtype).eps * _between_minus_one_and_one(numbers, seed)
        others = (numbers * factors).astype(dtype).astype("float64")
    return np.where(np.isfinite(numbers) & (numbers != exact), others, numbers)


def _between_minus_one_and_one(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Return a hash of each number and the seed, scaled to the numbers between -1 and 1."""
    bits = np.ascontiguousarray(numbers).reshape(numbers.shape).view("uint64")
    bits = bits + np.uint64((seed + 1) * _MULTIPLIERS[1] % 2**64)
    for multiplier in _MULTIPLIERS:
        bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(multiplier)
    return bits.astype("float64") / 2**63 - 1
