"""Decide by float64 whether differences from PyTensor's results are rounding errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.exporting.verification.array_differences import RELATIVE_TOLERANCE, errors_of
from pytensor_onnx.exporting.verification.float_conversion import in_double
from pytensor_onnx.exporting.verification.random_rounding import UNITS
from pytensor_onnx.exporting.verification.references import results_of

FACTOR = 10.0
"""Allowed ratio of the error of a result to PyTensor's own rounding error."""

CHANCE = 0.1
"""Share of the elements whose own rounding may be smaller by chance.

The ratio of two normal numbers is above ten in 6 % of cases.
"""

ONE_DIGIT = 0.1
"""Share of a number that a rounding error exceeds where it leaves no digit."""

_PERTURBATIONS = 3


class UndeterminedError(Exception):
    """PyTensor fails wherever numbers are rounded differently, as for a singular matrix."""


@dataclass(frozen=True)
class Distance:
    """Largest differences from the float64 result, and whether rounding explains them.

    Attributes
    ----------
    found
        Difference of the compared result.
    own
        Difference of PyTensor's result, or of results that are rounded differently. Where it leaves
        no digit of most elements, as in the inverse of a singular matrix, NaN is accepted.
    is_rounding
        Whether rounding explains the difference in all elements.
    """

    found: float
    own: float
    is_rounding: bool

    def __str__(self) -> str:
        """Describe both differences."""
        return f"ONNX Runtime is {self.found:.3g} and PyTensor's own rounding {self.own:.3g} away"


def distances_from_double(
    graphs: Sequence[FunctionGraph],
    arrays: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    positions: Sequence[int],
) -> dict[int, Distance]:
    """Compare results with the results of a graph in float64.

    Parameters
    ----------
    graphs
        The graph, and one that gives the results where it is not finite.
    arrays
        Their inputs.
    found
        Results to compare.
    expected
        Results of PyTensor in the dtypes of the graph.
    positions
        Positions of the results to compare.

    Returns
    -------
    dict of int to Distance
        One for each position. PyTensor's rounding error is that of its result. If that does not
        explain the difference, it is also measured in float64 for inputs and intermediate results
        moved by a few units in the last place, since one result may be accurate by chance.

    Raises
    ------
    UndeterminedError
        If PyTensor fails for all such moves, so that the results say nothing.
    """
    exact = results_of(map(in_double, graphs), arrays_in_double(arrays), found)
    rounded, failures = [expected], []
    for seed in range(_PERTURBATIONS + 1):
        distances = {
            i: _distance(found[i], exact[i], [results[i] for results in rounded]) for i in positions
        }
        if seed == _PERTURBATIONS or all(d.is_rounding for d in distances.values()):
            break
        try:
            moved = [in_double(graph, seed) for graph in graphs]
            rounded.append(results_of(moved, arrays_in_double(arrays, seed), found))
        except Exception as error:
            failures.append(error)
    if len(failures) == _PERTURBATIONS:
        raise UndeterminedError(failures[0]) from failures[0]
    return distances


def arrays_in_double(arrays: Sequence[np.ndarray], seed: int | None = None) -> list[np.ndarray]:
    """Convert floats to float64, optionally moved at random by a few units in the last place.

    Parameters
    ----------
    arrays
        The arrays.
    seed
        Seed of the moves; without it the values are unchanged.

    Examples
    --------
    >>> arrays_in_double([np.float32([0.5]), np.int32([1])])
    [array([0.5]), array([1], dtype=int32)]
    """
    rng = np.random.default_rng(seed)
    moved = []
    for array in arrays:
        if array.dtype.kind != "f":
            moved.append(array)
            continue
        double = array.astype("float64")
        if seed is not None:
            unit = np.finfo(array.dtype).eps
            double *= 1 + UNITS * unit * rng.uniform(-1, 1, size=array.shape)
            double = double.astype(array.dtype).astype("float64")
        moved.append(double)
    return moved


def _distance(found: np.ndarray, exact: np.ndarray, rounded: Sequence[np.ndarray]) -> Distance:
    kinds = {(a.shape, a.dtype.kind) for a in (found, exact, rounded[0])}
    if len(kinds) > 1:
        return Distance(np.inf, 0.0, is_rounding=False)
    errors = errors_of(found, exact)
    own = np.max([errors_of(a, exact) for a in rounded], axis=0)
    if not errors.size:
        return Distance(0.0, 0.0, is_rounding=True)
    tolerances = _tolerances(found, exact)
    lost = np.isinf(errors)
    if lost.any():
        has_no_digit = own > np.fmax(ONE_DIGIT * np.abs(exact.ravel()), tolerances)
        if 2 * (has_no_digit & lost).sum() > lost.sum():
            errors[lost] = own[lost]
    differs = errors > tolerances
    unexplained = differs & (errors > FACTOR * own)
    largest, largest_own = float(errors.max()), float(own.max())
    is_rounding = largest <= FACTOR * largest_own and unexplained.sum() <= CHANCE * differs.sum()
    return Distance(largest, largest_own, is_rounding=bool(is_rounding))


def _tolerances(found: np.ndarray, exact: np.ndarray) -> np.ndarray | float:
    if exact.dtype.kind != "f":
        return 0.0
    magnitudes = np.abs(exact.ravel())
    finite = magnitudes[np.isfinite(magnitudes)]
    scale = finite.max() if finite.size else 0.0
    return RELATIVE_TOLERANCE[str(found.dtype)] * (magnitudes + scale)
