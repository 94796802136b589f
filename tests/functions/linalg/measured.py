"""A factorisation or a solver whose backward errors are measured beside LAPACK's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytensor.tensor as pt

from pytensor_onnx import compile_onnx
from tests.functions.linalg.matrices import FACTOR, Matrices, generator, relative
from tests.functions.linalg.spectra import wide

Arrays = Sequence[np.ndarray]


def two_columns(a: np.ndarray) -> np.ndarray:
    """Return two right-hand sides for a matrix."""
    return generator(len(a)).normal(size=(len(a), 2))


@dataclass(frozen=True, eq=False)
class Measured:
    """A factorisation or a solver.

    Attributes
    ----------
    name
        First cell of its rows.
    classes
        Matrices by the names of their classes.
    graph
        Results in PyTensor, of a matrix and a second operand.
    lapack
        The same results by LAPACK.
    errors
        Backward errors and losses of orthogonality of results; the largest one counts.
    second
        The second operand for a matrix, two right-hand sides by default.
    largest
        Largest size that is measured; iterations of larger matrices take minutes for all classes.
    per_row
        Whether one rounding error for each row is allowed where LAPACK is exact by chance.
    """

    name: str
    classes: dict[str, Matrices]
    graph: Callable[..., Sequence[pt.TensorVariable]]
    lapack: Callable[..., Arrays]
    errors: Callable[..., Sequence[float]]
    second: Callable[[np.ndarray], np.ndarray] = two_columns
    largest: int = 300
    per_row: bool = False

    @cache  # noqa: B019  (a list of a module holds all of them)
    def compiled(self) -> Callable[..., list[np.ndarray]]:
        """Return the function of a file of dynamic sizes."""
        a, b = pt.matrix("a"), pt.matrix("b")
        return compile_onnx([a, b], list(self.graph(a, b)), verify=False)

    def measure(self, name: str, n: int) -> tuple[float, float]:
        """Return the error of the file, and LAPACK's, for a class of matrices and a size."""
        a = np.asarray(self.classes[name](n), "float64")
        b = self.second(a)
        found, expected = self.compiled()(a, b), self.lapack(a, b)
        # Unlike `max`, this returns NaN wherever it stands.
        ours, lapacks = (
            float(np.max(self.errors(a, b, *results))) for results in (found, expected)
        )
        return ours, lapacks

    def bound(self, lapacks: float, n: int) -> float:
        """Return the largest error that is allowed beside LAPACK's, for a size."""
        eps = float(np.finfo("float64").eps)
        return max(FACTOR * max(lapacks, eps), n * eps * self.per_row)


def of_product(a: np.ndarray, *factors: np.ndarray) -> float:
    """Return the error of factors of a matrix."""
    first, *others = wide(*factors)
    for factor in others:
        first = first @ factor
    return relative(first - a, a)


def of_solution(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> list[float]:
    """Return the residual of a system."""
    matrix, solution, sides = (array.astype("longdouble") for array in (a, x, b))
    return [relative(matrix @ solution - sides, a, x)]
