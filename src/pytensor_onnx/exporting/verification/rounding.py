"""Rounding told from error, by float64 and moved roundings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.random.op import RandomVariable

from pytensor_onnx.changes import Change
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.requests.signature import WIDER
from pytensor_onnx.exporting.verification.array_differences import (
    RELATIVE_TOLERANCE,
    errors_of,
    relative_error,
)
from pytensor_onnx.exporting.verification.float_conversion import UNITS, FloatConversion, in_double
from pytensor_onnx.exporting.verification.results import (
    OWN_INPUTS,
    Verification,
    evaluate_all,
    results_of,
)
from pytensor_onnx.ops.random.draws import Draw
from pytensor_onnx.rewriting.engine.walkers import KeepOrigins, inner_nodes
from pytensor_onnx.user_code import user_line

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


_SHOWN = 5
_NOTABLE = 4


@dataclass(frozen=True)
class Narrowing:
    """The reference graph in its own dtypes and in narrower floats.

    Attributes
    ----------
    precision
        Dtype of the floats.
    written, narrow
        Both graphs.
    variables
        Variables of the narrow graph, by those of the written one.
    """

    precision: str
    written: FunctionGraph
    narrow: FunctionGraph
    variables: dict[Variable, Variable]

    def losses(
        self,
        arrays: Sequence[np.ndarray],
        names: Sequence[str],
        narrow: Mapping[Variable, Any] | None = None,
    ) -> list[Change]:
        """Describe the errors of outputs, and the operations that add most to them.

        Parameters
        ----------
        arrays
            Inputs of the narrow graph.
        names
            Names of the outputs.
        narrow
            Values of the variables of the narrow graph for these inputs; evaluated unless given.
        """
        nodes = self.written.apply_nodes
        within = (inner for node in nodes for inner in inner_nodes(node.op))
        if any(isinstance(node.op, Draw | RandomVariable) for node in (*nodes, *within)):
            text = f"random numbers drawn in {self.precision} are others than in float64"
            return [Change(text)]
        exact = evaluate_all(self.written, arrays_in_double(arrays))
        narrow = evaluate_all(self.narrow, arrays) if narrow is None else narrow

        def error(variable: Variable) -> float:
            new = self.variables.get(variable)
            if new not in narrow or variable not in exact:
                return 0.0
            return relative_error(narrow[new], exact[variable])

        found = [
            Change(f"{name}: error {error(v):.1e} of the largest value", error=error(v))
            for name, v in zip(names, self.written.outputs, strict=True)
        ]
        unit = float(np.finfo(self.precision).eps)
        losses = []
        for node in self.written.toposort():
            before = max([unit, *map(error, node.inputs)])
            after = max(map(error, node.outputs))
            if after > _NOTABLE * before:
                losses.append((after / before, node))
        losses.sort(key=lambda entry: -entry[0])
        for factor, node in losses[:_SHOWN]:
            result = node.outputs[0]
            called = f" ({result.name})" if result.name else ""
            text = f"{node.op}{called} multiplies the error by {factor:.0f}"
            found.append(Change(text, error=factor, line=user_line(result)))
        return found


def narrowed_for(
    fgraph: FunctionGraph, precision: str | None, default: str | None
) -> tuple[Narrowing | None, list[Change]]:
    """Return a graph in the floats that an export asks for or its target has, and what to report.

    Parameters
    ----------
    fgraph
        The graph.
    precision
        Dtype that the export asks for.
    default
        Widest dtype of the target, for a graph whose inputs and outputs have none but wider floats.
    """
    if precision is not None:
        return (None if precision == "float64" else narrowed(fgraph, precision)), []
    dtypes = {getattr(v.type, "dtype", "") for v in (*fgraph.inputs, *fgraph.outputs)}
    # The dtype of a typed list is a type.
    floats = {dtype for dtype in dtypes if isinstance(dtype, str) and dtype.startswith("float")}
    # Whoever mixes dtypes has chosen them; sums of float32 accumulate in float64.
    if default is None or not floats or not floats <= set(WIDER[default]):
        return None, []
    note = f'floats of {default} in place of wider ones: precision="float64" keeps these'
    return narrowed(fgraph, default), [Change(note)]


def narrowed(fgraph: FunctionGraph, precision: str) -> Narrowing:
    """Return a graph with all wider floats replaced by floats of a precision.

    Integers that meet floats are cast to them, sums of float16 are accumulated in float32, and
    random numbers are drawn in the new dtype: they are other numbers than in float64.

    Raises
    ------
    ArgumentError
        If there is no such precision.
    PyTensorONNXError
        If constants overflow in the new dtype or become zero; the message names all of them.
    """
    if precision not in WIDER:
        known = ", ".join(map(repr, WIDER))
        raise ArgumentError(f"precision is one of {known}, not {precision!r}")
    conversion = FloatConversion(WIDER[precision], precision)
    graph = conversion.of_graph(fgraph)
    if conversion.lost:
        listing = "\n".join(
            f"- {_described(constant.data)} {(user and user_line(user.outputs[0])) or ''}".rstrip()
            for constant, user in conversion.lost.items()
        )
        raise PyTensorONNXError(
            f"constants have no value in {precision}: write others, or export with "
            f'precision="float64"\n{listing}'
        )
    graph.attach_feature(KeepOrigins())
    return Narrowing(precision, fgraph, graph, conversion.variables)


def _described(data: Any) -> str:
    numbers = np.asarray(data)
    return f"{numbers.item()!r}" if numbers.size == 1 else f"an array up to {np.abs(numbers).max()}"


_ILL_CONDITIONED_SAMPLES = 3
_AS_WRITTEN = "the graph as written"
_REWRITTEN = "PyTensor's rewritten graph"


@dataclass
class Evidence:
    """Outcomes of comparisons.

    Attributes
    ----------
    names
        Names of the outputs.
    unseen
        Positions of the outputs without a finite value so far.
    equal
        Samples on which results are equal.
    uncertain
        PyTensor's own rounding error on the other samples, with their description.
    completed
        Positions of the outputs where the rewritten graph is the reference of some elements.
    by_rewritten
        Whether it is the only reference.
    largest
        Largest relative error.
    is_run
        Whether any results were compared.
    error
        The first error of PyTensor.
    refusal, failure
        The first error of the runtime on sampled inputs; the same where PyTensor has results.
    """

    names: list[str]
    unseen: set[int]
    equal: dict[str, None] = field(default_factory=dict)
    uncertain: list[tuple[float, str]] = field(default_factory=list)
    completed: set[int] = field(default_factory=set)
    by_rewritten: bool = False
    largest: float = 0.0
    is_run: bool = False
    error: Exception | None = None
    refusal: str = ""
    failure: str = ""

    def is_complete(self, sizes: int = 0) -> bool:
        """Whether every output was compared, and well-conditioned inputs were found or given up.

        Parameters
        ----------
        sizes
            Number of further samples that may be ill-conditioned.
        """
        settled = bool(self.equal) or len(self.uncertain) >= _ILL_CONDITIONED_SAMPLES + sizes
        return self.is_run and not self.unseen and settled

    def omitted(self) -> str:
        """Describe the outputs and inputs that were not compared; empty if all were.

        Raises
        ------
        VerificationError
            If the program ran on no inputs, but PyTensor did.
        """
        if not self.is_run and self.refusal:
            raise VerificationError(f"{self.refusal}\n{OWN_INPUTS}") from self.error
        if not self.is_run:
            return f"not compared, as PyTensor fails on all sampled inputs ({self.reason})"
        names = ", ".join(self.names[i] for i in sorted(self.unseen))
        if names:
            return f"not compared: {names}, without a finite value on any of the inputs"
        if self.uncertain and not self.equal:
            return "compared within rounding only, as the graph is ill-conditioned on all inputs"
        return f"{_first_line(self.failure)}; PyTensor does not" if self.failure else ""

    @property
    def reason(self) -> str:
        """The first line of the first error of PyTensor."""
        return _first_line(str(self.error))

    def result(self, omitted: str) -> Verification:
        """Return the result of the comparison."""
        result = Verification(
            "equal" if self.equal else "within rounding" if self.uncertain else "not compared",
            omitted=omitted,
            largest_error=self.largest,
        )
        if result.verdict == "not compared":
            return result
        return replace(
            result,
            reference=self._reference(),
            samples=tuple(self.equal),
            ill_conditioned=min(self.uncertain)[1] if self.uncertain else "",
        )

    def _reference(self) -> str:
        """Name the reference that was taken."""
        if self.by_rewritten:
            return f"{_REWRITTEN}, as the graph as written fails ({self.reason})"
        if not self.completed:
            return _AS_WRITTEN
        names = ", ".join(self.names[i] for i in sorted(self.completed))
        return f"{_AS_WRITTEN} and, where that is not finite ({names}), with {_REWRITTEN}"


def _first_line(text: str) -> str:
    return text.splitlines()[0]
