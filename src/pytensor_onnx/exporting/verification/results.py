"""Results of the file and of the references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
import pytensor
from pytensor.compile.mode import OPT_FAST_RUN, Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.link.basic import PerformLinker
from pytensor.scalar.basic import Add, Mul
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.changes import Change
from pytensor_onnx.rewriting.engine.walkers import inner_nodes, with_inner_graph
from pytensor_onnx.rewriting.linalg.matrix_forms import give_signs

type Verdict = Literal[
    "not verified", "equal", "within rounding", "not compared", "different", "run only"
]
OWN_INPUTS = "give example_inputs to compare on inputs of your own"


@dataclass(frozen=True)
class ValueDifference:
    """How far a value within a model is from PyTensor's.

    Attributes
    ----------
    name
        Name of the value in the model.
    computes
        The PyTensor operation that computes it.
    largest
        Largest absolute difference; infinite where only one number is finite, or shapes differ.
    relative
        The same, relative to the largest magnitude.
    line
        Line of the user's code that made it, empty if unknown.
    problem
        How it differs beyond rounding, empty if it agrees.
    """

    name: str
    computes: str
    largest: float
    relative: float
    line: str = ""
    problem: str = ""

    def __str__(self) -> str:
        """Describe the difference in one line."""
        made = f", made at {self.line}" if self.line else ""
        difference = self.problem or f"largest difference {self.largest:.3g}"
        return f"{self.name!r}, which computes {self.computes}{made}: {difference}"


@dataclass(frozen=True)
class Verification:
    """Result of a verification: the verdict, the compared samples and the largest error.

    ``str(verification)`` describes the result in one sentence.

    Attributes
    ----------
    verdict
        ``"equal"`` to PyTensor on some samples, ``"within rounding"`` on all that were compared,
        ``"not compared"``, ``"different"`` (in a `VerificationError`), ``"run only"`` for a loaded
        file, or ``"not verified"``.
    reference
        The graph that the results agree with.
    samples
        The inputs on which results are equal but for the dtype's tolerance.
    part
        Part of a predictor's draws and rows of data that were compared, as in ``"8 of 1,000 draws
        and 500 of 500 rows, by a file of these draws"``; empty for other models.
    ill_conditioned
        The inputs on which results differ by no more than rounding in PyTensor, with the
        differences.
    omitted
        Outputs and inputs that were not compared, with the reason.
    largest_error
        Largest difference of an output from PyTensor's on all samples, relative to the output's
        largest magnitude.
    losses
        Errors that a lower precision brings.
    values
        Differences by value, in the order of computation, where they were asked for, or where
        results differ.
    message
        How the results differ.
    note
        A part of the model that other programs may refuse, with the reason.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.vector("x")
    >>> verification = export_onnx([x], pt.exp(x)).verification
    >>> verification.verdict, verification.samples, verification.largest_error < 1e-15
    ('equal', ('sampled inputs (x [3])',), True)
    >>> print(verification)  # doctest: +NORMALIZE_WHITESPACE
    checked, loaded and equal to PyTensor on sampled inputs (x [3]); agrees with the graph as
    written
    """

    verdict: Verdict = "not verified"
    reference: str = ""
    samples: tuple[str, ...] = ()
    part: str = ""
    ill_conditioned: str = ""
    omitted: str = ""
    largest_error: float = 0.0
    losses: tuple[Change, ...] = ()
    values: tuple[ValueDifference, ...] = ()
    message: str = ""
    note: str = ""

    @property
    def first_difference(self) -> ValueDifference | None:
        """The first value, in the order of computation, that differs beyond rounding."""
        return next((value for value in self.values if value.problem), None)

    @property
    def node(self) -> str:
        """The name of the first value that differs, empty if none does."""
        return self.first_difference.name if self.first_difference else ""

    @property
    def line(self) -> str:
        """The line of the user's code that made it, empty if unknown."""
        return self.first_difference.line if self.first_difference else ""

    def __str__(self) -> str:
        """Describe the verification in one sentence."""
        note = f"; {self.note}" if self.note else ""
        match self.verdict:
            case "not verified":
                return self.verdict
            case "different":
                return self.message
            case "not compared":
                return f"checked and loaded, but {self.omitted}; {OWN_INPUTS}"
            case "run only":
                samples = " and ".join(self.samples)
                return (
                    f"checked, loaded and run on {samples}; not compared, as {self.omitted}{note}"
                )
        parts = []
        if self.samples:
            parts.append(f"equal to PyTensor on {' and '.join(self.samples)}")
        if self.ill_conditioned:
            parts.append(f"as near to float64 as rounding in PyTensor on {self.ill_conditioned}")
        if self.part:
            parts.append(f"compared in {self.part}")
        missing = f"; {self.omitted}; {OWN_INPUTS}" if self.omitted else ""
        agreement = f"agrees with {self.reference}{missing}{note}"
        return f"checked, loaded and {'; '.join(parts)}; {agreement}"


_PYTENSOR = Mode("py", OPT_FAST_RUN.excluding("inplace", "fusion", "BlasOpt"))


def rewritten_by_pytensor(graph: FunctionGraph) -> FunctionGraph:
    """Return a copy of a graph after PyTensor's default rewrites, without this package's rewrites.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.dvector("x")
    >>> graph = FunctionGraph([x], [pt.log(pt.exp(x))], clone=False)
    >>> rewritten = rewritten_by_pytensor(graph)
    >>> evaluate(graph, [np.array([1000.0])]), evaluate(rewritten, [np.array([1000.0])])
    ([array([inf])], [array([1000.])])
    """
    copy = graph.clone(check_integrity=False)
    with np.errstate(all="ignore"):  # of constants that are folded
        _PYTENSOR.optimizer.rewrite(copy)
    return copy


def results_of(
    graphs: Iterable[FunctionGraph], arrays: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return the results of a graph, and where they are not finite, the results of further graphs.

    Parameters
    ----------
    graphs
        Graphs of the same results, the most trusted first.
    arrays
        Their inputs.
    found
        Results to compare. An element that the first graph gives too is not taken from others: NaN
        is right where the graph as written is NaN.
    """
    first, *others = graphs
    expected = evaluate(first, arrays)
    for graph in others:
        expected = completed(expected, evaluate(graph, arrays), found)
    return expected


def completed(
    expected: Sequence[np.ndarray], others: Sequence[np.ndarray], found: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Replace elements that are not finite, unless they are found, by other ones that are not NaN.

    Examples
    --------
    >>> nan, three = np.array([np.nan, np.nan, 1.0]), np.array([1.0, 2.0, 3.0])
    >>> completed([nan], [three], found=[np.array([9.0, np.nan, 9.0])])
    [array([ 1., nan,  1.])]
    """
    return [
        _completed(a, b, c) if a.shape == b.shape == c.shape and a.dtype.kind == "f" else a
        for a, b, c in zip(expected, others, found, strict=True)
    ]


def _completed(expected: np.ndarray, other: np.ndarray, found: np.ndarray) -> np.ndarray:
    is_found = (expected == found) | (np.isnan(expected) & np.isnan(found))
    return np.where(np.isfinite(expected) | is_found | np.isnan(other), expected, other)


def evaluate(fgraph: FunctionGraph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluate a graph as written, with PyTensor's own Python implementations."""
    storage = evaluate_all(fgraph, inputs)
    return [np.asarray(storage[variable]) for variable in fgraph.outputs]


def evaluate_all(fgraph: FunctionGraph, inputs: Sequence[np.ndarray]) -> dict[Variable, Any]:
    """Return the value of every variable of a graph."""
    graph, equivalent = fgraph.clone_get_equiv(check_integrity=False)
    for replaced in (give_signs(graph), TakeManyOperands().replace(graph)):
        equivalent = {v: replaced.get(w, w) for v, w in equivalent.items()}
    linker = PerformLinker(allow_gc=False).accept(graph)
    storage_in = [[np.array(array)] for array in inputs]
    # Otherwise inner graphs of Ops would be compiled in C.
    with pytensor.config.change_flags(cxx=""), np.errstate(all="ignore"):
        run, _, _, _, _ = linker.make_all(input_storage=storage_in)
        run()
    return {v: run.storage_map[w][0] for v, w in equivalent.items() if w in run.storage_map}


LARGEST = 32
"""Operands and results of a NumPy function."""

_IN_PAIRS: dict[type, Callable] = {Add: np.add, Mul: np.multiply}


class ElemwiseOfMany(Elemwise):
    """Elementwise operation of any number of operands, computed by the Op of its elements."""

    def prepare_node(self, node: Apply, storage_map: Any, compute_map: Any, impl: Any) -> None:
        """Do nothing, in place of building a NumPy function."""

    def perform(self, node: Apply, inputs: list[Any], output_storage: list[list[Any]]) -> None:
        """Combine the arrays in pairs if the operation has a NumPy function, else by element."""
        self._check_runtime_broadcast(node, inputs)
        in_pairs = _IN_PAIRS.get(type(self.scalar_op))
        with np.errstate(all="ignore"):
            if in_pairs is not None:
                dtype = node.outputs[0].type.dtype
                results = [reduce(in_pairs, [np.asarray(x, dtype) for x in inputs])]
            else:
                results = _by_element(self.scalar_op.impl, inputs, len(node.outputs))
        for i, (result, variable) in enumerate(zip(results, node.outputs, strict=True)):
            array = np.array(result, dtype=variable.type.dtype)
            if i in self.inplace_pattern:
                inputs[self.inplace_pattern[i]][...] = array
                array = inputs[self.inplace_pattern[i]]
            output_storage[i][0] = array


def _by_element(function: Callable, arrays: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """Return the results of a function of scalars on each element of broadcast arrays."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    columns = [np.broadcast_to(array, shape).ravel().tolist() for array in arrays]
    found = [function(*elements) for elements in zip(*columns, strict=True)]
    results = [np.empty(len(found), dtype=object) for _ in range(count)]
    for i, result in enumerate(found):
        for array, element in zip(results, (result,) if count == 1 else result, strict=True):
            array[i] = element
    return [array.reshape(shape) for array in results]


class TakeManyOperands(GraphRewriter):
    """Replace elementwise operations that PyTensor's Python mode refuses, in inner graphs as well.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> graph = FunctionGraph([x], [pt.add(*[x] * 40)], clone=False)
    >>> TakeManyOperands().rewrite(graph)
    >>> type(graph.outputs[0].owner.op).__name__
    'ElemwiseOfMany'
    """

    def apply(self, fgraph: FunctionGraph) -> None:
        """Replace the operations of a graph, in place."""
        self.replace(fgraph)

    def replace(self, fgraph: FunctionGraph) -> dict[Variable, Variable]:
        """Replace the operations of a graph, in place, and return the new results by the old."""
        replaced: dict[Variable, Variable] = {}
        for node in fgraph.toposort():
            if _has_too_many(node):
                new = ElemwiseOfMany(node.op.scalar_op, node.op.inplace_pattern)
            elif any(map(_has_too_many, inner_nodes(node.op))):
                new = with_inner_graph(node.op, self.apply)
            else:
                continue
            results = new.make_node(*node.inputs).outputs
            replaced.update(zip(node.outputs, results, strict=True))
            fgraph.replace_all(list(zip(node.outputs, results, strict=True)), import_missing=True)
        return replaced


def _has_too_many(node: Apply) -> bool:
    is_native = isinstance(node.op, Elemwise) and not isinstance(node.op, ElemwiseOfMany)
    return is_native and len(node.inputs) + len(node.outputs) > LARGEST
