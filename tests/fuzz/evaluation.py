"""Values of a graph by PyTensor's own Python implementations, and what rounding does to them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as ps
from pytensor.scan.op import Scan
from pytensor.tensor import basic, blas, extra_ops, math, subtensor
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.sort import SortOp
from pytensor.tensor.type import TensorType

COPIES = 3
AS_WRITTEN = Mode("py", None)
COMPILED = (Scan, IfElse, LazyIfElse)
"""Ops whose Python implementation works in compiled functions only."""

PRECISIONS = ("float16", "float32", "float64")
TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 5e-2}
"""Relative tolerance of a comparison, by the narrowest float that a value depends on."""

LARGEST_DEVIATION = {dtype: tolerance / 20 for dtype, tolerance in TOLERANCE.items()}
"""How far rounding may move a value that is compared; graphs where it does more are not made."""

_GRID = {"float64": (2.0**-8, 2.0**40), "float32": (2.0**-6, 2.0**14), "float16": (0.25, 2.0**6)}

# Results that are operands or zeros and ones: nothing is rounded.
SELECTING: tuple[type[Op], ...] = (
    *(ps.Identity, ps.Neg, ps.Abs, ps.Maximum, ps.Minimum, ps.Switch, ps.Second, ps.Clip),
    *(ps.Conj, ps.Real, ps.Imag, ps.Sign, ps.UnaryBitOp, ps.BinaryBitOp, ps.LogicalComparison),
    *(ps.IsNan, ps.IsInf),
    *(DimShuffle, Reshape, SpecifyShape, JoinDims, SplitDims),
    *(basic.Join, basic.Split, basic.Alloc, basic.AllocDiag, basic.ExtractDiag, basic.Eye),
    *(basic.MakeVector, basic.ScalarFromTensor, basic.TensorFromScalar, basic.Choose),
    *(basic.PermuteRowElements, subtensor.Subtensor, subtensor.AdvancedSubtensor, SortOp),
    *(extra_ops.Repeat, extra_ops.Unique, extra_ops.FillDiagonal, extra_ops.FillDiagonalOffset),
    *(CheckAndRaise, extra_ops.CpuContiguous),
)
# Results that are exact where they and all between are small multiples of a power of two.
ARITHMETIC: tuple[type[Op], ...] = (
    *(ps.Add, ps.Sub, ps.Mul, ps.Sqr, ps.Mod, ps.IntDiv, ps.Floor, ps.Ceil, ps.Trunc, ps.Cast),
    *(ps.RoundHalfToEven, ps.RoundHalfAwayFromZero, math.MulWithoutZeros),
    *(math.Dot, blas.BatchedDot, extra_ops.CumOp, basic.ARange),
    *(subtensor.IncSubtensor, subtensor.AdvancedIncSubtensor),
)


class NoReferenceError(ValueError):
    """PyTensor's result is none to compare with.

    Either rounding errors decide it, so that two right implementations may differ, or it does not
    have the type that the Op promises, or PyTensor cannot compile the Op to compute it.
    """


@dataclass
class Evaluation:
    """Values of variables, computed node by node as the graph is written.

    Beside the value itself, copies are kept in which every rounding went another way. Where they
    disagree, the value says nothing about an implementation.

    Attributes
    ----------
    values
        The value of each variable, then its copies.
    exact
        The variables whose value every right implementation computes to the last bit.
    precision
        The narrowest float dtype that each variable depends on, as an index of `PRECISIONS`.
    not_finite
        The variables that are, or are computed from, something infinite or NaN.
    """

    values: dict[Variable, list[Any]] = field(default_factory=dict)
    exact: set[Variable] = field(default_factory=set)
    precision: dict[Variable, int] = field(default_factory=dict)
    not_finite: set[Variable] = field(default_factory=set)
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def give(self, variable: Variable, value: Any) -> None:
        """Set the value of an input or a constant."""
        self.values[variable] = [value] * (1 + COPIES)
        self.exact.add(variable)
        self.precision[variable] = _own_precision(variable)
        if not _is_finite(value):
            self.not_finite.add(variable)

    def value(self, variable: Variable) -> Any:
        """Return the value of a variable."""
        return self.values[variable][0]

    def evaluate(self, variables: Iterable[Variable]) -> None:
        """Compute variables that depend on those known."""
        variables = list(variables)
        with np.errstate(all="ignore"):
            for node in toposort(variables, blockers=self.values):
                if any(v not in self.values for v in node.outputs):
                    self._evaluate_node(node)
            for variable in variables:
                self._know(variable)

    def rounding(self, variable: Variable) -> float:
        """Return by how much rounding moves a value, relative to the tolerance for it.

        Above one, the value is not to be compared; infinite where discrete values differ.
        """
        if variable.type.dtype.startswith("float"):
            limit = LARGEST_DEVIATION[PRECISIONS[self.precision[variable]]]
            value, *copies = (np.asarray(v) for v in self.values[variable])
            return max(_deviation(value, copy) for copy in copies) / limit
        value, *copies = self.values[variable]
        return 0.0 if all(np.array_equal(value, copy) for copy in copies) else np.inf

    def _know(self, variable: Variable) -> None:
        if isinstance(variable, Constant) and variable not in self.values:
            self.give(variable, variable.data)

    def _evaluate_node(self, node: Apply) -> None:
        for variable in node.inputs:
            self._know(variable)
        if isinstance(node.op, OpFromGraph):
            self._evaluate_inner(node)
            return
        inputs = [self.values[v] for v in node.inputs]
        perform = _implementation(node)
        determined = all(v in self.exact for v in node.inputs)
        results = [perform(*_copied(v[0] for v in inputs))]
        is_exact = [
            determined and _is_exact(node.op, v, value)
            for v, value in zip(node.outputs, results[0], strict=True)
        ]
        for copy in range(1, 1 + COPIES):
            arguments = _copied(v[copy] for v in inputs)
            if all(is_exact) or (determined and not accumulates(node)):
                results.append(results[0])
            elif accumulates(node):
                # A sum in another order is the sum of numbers a little different.
                moved = zip(node.inputs, arguments, strict=True)
                results.append(perform(*(self._moved(a, self._scale(v)) for v, a in moved)))
            else:
                results.append(perform(*arguments))
        if any(
            np.shape(a) != np.shape(b) or np.asarray(a).dtype != np.asarray(b).dtype
            for other in results[1:]
            for a, b in zip(results[0], other, strict=True)
        ):
            raise NoReferenceError(str(node.op))
        precision = min([self.precision[v] for v in node.inputs], default=len(PRECISIONS) - 1)
        for i, variable in enumerate(node.outputs):
            copies = [result[i] for result in results]
            self.precision[variable] = min(precision, _own_precision(variable))
            if is_exact[i]:
                self.exact.add(variable)
            elif rounds(node.op):
                copies[1:] = [self._moved(copy, self._scale(variable)) for copy in copies[1:]]
            self.values[variable] = copies
            if not _is_finite(copies[0]) or not self.not_finite.isdisjoint(node.inputs):
                self.not_finite.add(variable)

    def _evaluate_inner(self, node: Apply) -> None:
        inner = Evaluation(_rng=self._rng)
        for variable, argument in zip(node.op.fgraph.inputs, node.inputs, strict=True):
            inner.values[variable] = self.values[argument]
            inner.precision[variable] = self.precision[argument]
            if argument in self.exact:
                inner.exact.add(variable)
            if argument in self.not_finite:
                inner.not_finite.add(variable)
        inner.evaluate(node.op.fgraph.outputs)
        for variable, result in zip(node.outputs, node.op.fgraph.outputs, strict=True):
            self.values[variable] = inner.values[result]
            self.precision[variable] = inner.precision[result]
            if result in inner.exact:
                self.exact.add(variable)
            if result in inner.not_finite:
                self.not_finite.add(variable)

    def _scale(self, variable: Variable) -> float:
        return float(np.finfo(PRECISIONS[self.precision[variable]]).eps)

    def _moved(self, value: Any, scale: float) -> Any:
        """Return floats each of which is rounded another way; other values as they are."""
        array = np.asarray(value)
        if array.dtype.kind != "f":
            return value
        factor = 1 + 2 * scale * self._rng.uniform(-1, 1, size=array.shape)
        return np.asarray(array * factor, dtype=array.dtype)


def rounds(op: Op) -> bool:
    """Return whether an Op computes floats that it has to round."""
    return not issubclass(type(_core(op)), SELECTING)


def accumulates(node: Apply) -> bool:
    """Return whether a node adds floats up, in an order that is open."""
    is_sum = isinstance(node.op, CAReduce) and isinstance(node.op.scalar_op, ps.Add)
    others = (math.Dot, blas.BatchedDot, extra_ops.CumOp)
    return getattr(node.outputs[0].type, "dtype", "").startswith("float") and (
        is_sum or isinstance(_core(node.op), others)
    )


def _core(op: Op) -> Op:
    if isinstance(op, Elemwise | CAReduce):
        return op.scalar_op
    return op.core_op if isinstance(op, Blockwise) else op


def _is_exact(op: Op, variable: Variable, value: Any) -> bool:
    dtype = getattr(variable.type, "dtype", "")
    if not dtype.startswith("float") or not rounds(op):
        return True
    if not issubclass(type(_core(op)), ARITHMETIC):
        return False
    step, largest = _GRID[dtype]
    array = np.asarray(value, dtype="float64")
    finite = array[np.isfinite(array)]
    return bool(np.all(np.abs(finite) < largest) and np.all(finite % step == 0))


def _is_finite(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _own_precision(variable: Variable) -> int:
    dtype = getattr(variable.type, "dtype", "")
    return PRECISIONS.index(dtype) if dtype in PRECISIONS else len(PRECISIONS) - 1


def _copied(values: Iterable[Any]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def _deviation(value: np.ndarray, other: np.ndarray) -> float:
    """Return the largest relative difference of two arrays of one shape."""
    value, other = value.astype("float64"), other.astype("float64")
    same = (value == other) | (np.isnan(value) & np.isnan(other))
    if np.all(same):
        return 0.0
    with np.errstate(all="ignore"):
        relative = np.abs(other - value) / np.abs(value)
    return float(np.max(np.where(same, 0.0, np.where(np.isnan(relative), np.inf, relative))))


def _implementation(node: Apply) -> Callable[..., list[Any]]:
    """Return PyTensor's Python implementation of a node."""
    if isinstance(node.op, COMPILED):
        symbols = [v.type() for v in node.inputs]
        try:
            outputs = node.op(*symbols, return_list=True)
            return pytensor.function(symbols, outputs, mode=AS_WRITTEN, on_unused_input="ignore")
        except Exception as error:
            raise NoReferenceError(f"PyTensor cannot compile {node.op}") from error
    node.op.prepare_node(node, None, None, "py")

    def perform(*arguments: Any) -> list[Any]:
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        node.op.perform(node, list(arguments), storage)
        try:
            return [
                v.type.filter(cell[0]) if isinstance(v.type, TensorType) else cell[0]
                for v, cell in zip(node.outputs, storage, strict=True)
            ]
        except TypeError as error:
            raise NoReferenceError(str(error)) from error

    return perform
