"""Graphs in another float dtype, or with roundings moved."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, Self

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.type import Type
from pytensor.scalar.basic import Cast, Composite, ScalarOp, ScalarType, cast as cast_scalar
from pytensor.scan.op import Scan
from pytensor.tensor.basic import cast
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType

from pytensor_onnx.encodings.registry import tensor_constant
from pytensor_onnx.ops.networks.kept_operator import KeptOperator
from pytensor_onnx.ops.random.draws import StandardGraph
from pytensor_onnx.rewriting.loops.inner_loops import loop_like

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


NARROW = ("float16", "float32")
_PROMOTING = frozenset(("int32", "int64", "uint32", "uint64"))


@dataclass
class FloatConversion:
    """Rebuilding of graphs in another float dtype.

    Attributes
    ----------
    of
        Dtypes that are replaced.
    to
        Dtype that replaces them.
    variables
        New variables of the converted graphs, by the old ones.
    lost
        Constants that have no finite value in the new dtype, or become zero, with a node that
        uses each.
    seed
        Seed of the moves of results by roundings in their dtypes; without it nothing is moved.
    """

    of: tuple[str, ...]
    to: str
    variables: dict[Variable, Variable] = field(default_factory=dict)
    lost: dict[Constant, Apply | None] = field(default_factory=dict)
    seed: int | None = None

    @property
    def narrows(self) -> bool:
        """Whether the new dtype has fewer digits than the old ones."""
        return np.finfo(self.to).bits < min(np.finfo(dtype).bits for dtype in self.of)

    def within(self) -> Self:
        """Return the conversion of an inner graph, which may share its inputs with other graphs."""
        return replace(self, variables={})

    def concerns(self, type_: Type) -> bool:
        """Return whether values of a type are floats of a dtype that is replaced."""
        return getattr(type_, "dtype", None) in self.of

    def of_type(self, type_: Type) -> Type:
        """Return the new type of a value."""
        if not self.concerns(type_):
            return type_
        if isinstance(type_, ScalarType):
            return ScalarType(self.to)
        return type_.clone(dtype=self.to)

    def of_graph(self, fgraph: FunctionGraph | FrozenFunctionGraph) -> FunctionGraph:
        """Return the new graph of a graph."""
        inputs = [self.of_type(v.type)(name=v.name) for v in fgraph.inputs]
        for old, new in zip(fgraph.inputs, inputs, strict=True):
            copy_stack_trace(old, new)
        return FunctionGraph(inputs, self.of_outputs(fgraph, inputs), clone=False)

    def of_outputs(
        self, fgraph: FunctionGraph | FrozenFunctionGraph, inputs: Sequence[Variable]
    ) -> list[Variable]:
        """Return the outputs of a graph, computed from new inputs."""
        self.variables.update(zip(fgraph.inputs, inputs, strict=True))
        for node in fgraph.toposort():
            operands = [self._operand(v, node) for v in node.inputs]
            for old, new in zip(node.outputs, _rebuilt(node, operands, self), strict=True):
                new.name = new.name or old.name
                copy_stack_trace(old, new)
                self.variables[old] = self._rounded(new, old.type, node.op, operands)
        return [self._operand(v, None) for v in fgraph.outputs]

    def _rounded(
        self, variable: Variable, old: Type, op: Op, operands: Sequence[Variable]
    ) -> Variable:
        if self.seed is None or isinstance(op, Scan) or not _is_float_tensor(old):
            return variable
        floats = [v for v in operands if _is_float_tensor(v.type)] if old.dtype == self.to else []
        return RoundAtRandom(old.dtype, self.seed)(variable, *floats)

    def _operand(self, variable: Variable, user: Apply | None) -> Variable:
        if not isinstance(variable, Constant):
            return self.variables[variable]
        if not self.concerns(variable.type):
            return variable
        type_ = self.of_type(variable.type)
        with np.errstate(all="ignore"):
            data = np.asarray(variable.data).astype(self.to)
        if np.any(
            np.isfinite(variable.data)
            & (~np.isfinite(data) | ((data == 0) != (variable.data == 0)))
        ):
            self.lost.setdefault(variable, user)
        return tensor_constant(type_, data, variable.name)


def in_double(
    fgraph: FunctionGraph | FrozenFunctionGraph, seed: int | None = None
) -> FunctionGraph:
    """Return a graph that computes in float64 in place of narrower floats.

    Operations with a single dtype, such as random draws, keep it. With a seed, results are moved by
    a few roundings in the graph's own dtypes.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x", dtype="float32")
    >>> doubled = in_double(FunctionGraph([x], [pt.exp(x).sum()], clone=False))
    >>> doubled.inputs[0].type.dtype, doubled.outputs[0].type.dtype
    ('float64', 'float64')
    """
    return FloatConversion(NARROW, "float64", seed=seed).of_graph(fgraph)


def _rebuilt(node: Apply, operands: list[Variable], conversion: FloatConversion) -> list[Variable]:
    wanted = [conversion.of_type(v.type) for v in node.outputs]
    try:
        outputs = rebuild(node.op, node, operands, conversion)
        if [_kind(v.type) for v in outputs] == [_kind(t) for t in wanted]:
            return outputs
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        # The operation supports its own dtypes only.
        pass
    own = [_cast(x, v.type) for x, v in zip(operands, node.inputs, strict=True)]
    computed = node.op.make_node(*own).outputs
    return [_cast(v, t) for v, t in zip(computed, wanted, strict=True)]


@singledispatch
def rebuild(
    op: Op, node: Apply, operands: list[Variable], conversion: FloatConversion
) -> list[Variable]:
    """Return the outputs of an operation on operands of the new dtype."""
    if getattr(op, "__props__", None) == ("dtype",) and op.dtype in conversion.of:
        op = type(op)(conversion.to)
    return list(op.make_node(*operands).outputs)


@rebuild.register(Elemwise)
@rebuild.register(ScalarOp)
def rebuild_elemwise(
    op: Op, node: Apply, operands: list[Variable], conversion: FloatConversion
) -> list[Variable]:
    """Drop casts to the old dtype, and recompute other operations.

    PyTensor computes with int64 in float64, beside float32 as well: integers are cast where the
    new dtype is narrower.
    """
    scalar_op = getattr(op, "scalar_op", op)
    if isinstance(scalar_op, Composite):
        inner = conversion.within().of_graph(scalar_op.fgraph)
        scalar_op = Composite(inner.inputs, inner.outputs)
        op = Elemwise(scalar_op) if isinstance(op, Elemwise) else scalar_op
    elif isinstance(scalar_op, Cast):
        type_ = node.outputs[0].type
        if conversion.concerns(type_):
            return [_cast(operands[0], conversion.of_type(type_))]
    elif conversion.narrows and any(map(conversion.concerns, _types(node))):
        operands = [
            _cast(x, x.type.clone(dtype=conversion.to)) if x.type.dtype in _PROMOTING else x
            for x in operands
        ]
    return list(op.make_node(*operands).outputs)


def _types(node: Apply) -> list[Type]:
    return [v.type for v in (*node.inputs, *node.outputs)]


@rebuild.register(CAReduce)
def rebuild_reduction(
    op: CAReduce, node: Apply, operands: list[Variable], conversion: FloatConversion
) -> list[Variable]:
    """Accumulate in the new dtype, or float32 in place of float16."""
    dtypes = {}
    for name in ("dtype", "acc_dtype"):
        if getattr(op, name, None) in conversion.of:
            is_sum_of_half = name == "acc_dtype" and conversion.to == "float16"
            dtypes[name] = "float32" if is_sum_of_half else conversion.to
    return list((op.clone(**dtypes) if dtypes else op).make_node(*operands).outputs)


@rebuild.register(RandomVariable)
def rebuild_draw(
    op: RandomVariable, node: Apply, operands: list[Variable], conversion: FloatConversion
) -> list[Variable]:
    """Draw in the new dtype if it is narrower; in a wider one, other numbers would be drawn."""
    if conversion.narrows and op.dtype in conversion.of:
        op = copy(op)
        op.dtype = conversion.to
    return list(op.make_node(*operands).outputs)


@rebuild.register(OpFromGraph)
def rebuild_function(
    op: OpFromGraph, node: Apply, operands: list[Variable], conversion: FloatConversion
) -> list[Variable]:
    """Inline the graph of a function; keep the function where the graph is to be exported.

    An operator of an imported model stays if it has other dtypes, and has its expression otherwise.
    """
    inner = conversion.within()
    is_operator = isinstance(op, KeptOperator)
    if conversion.narrows and is_operator and not any(map(conversion.concerns, _types(node))):
        return list(op.make_node(*operands).outputs)
    if is_operator or not conversion.narrows:
        return inner.of_outputs(op.fgraph, operands)
    new = op.clone_with_inner_graph(inner.of_graph(op.fgraph))
    return list(new.make_node(*operands).outputs)


@rebuild.register(StandardGraph)
def rebuild_standard_graph(
    op: StandardGraph, node: Apply, operands: list[Variable], conversion: FloatConversion
) -> list[Variable]:
    """Take the form of float32; in wider floats, other numbers would be drawn."""
    if op.narrow is None or not conversion.narrows:
        return list(op.make_node(*operands).outputs)
    return list(op.narrow().make_node(*operands).outputs)


@rebuild.register(Scan)
def rebuild_scan(
    op: Scan, node: Apply, operands: list[Variable], conversion: FloatConversion
) -> list[Variable]:
    """Rebuild the graph of a step."""
    inner = conversion.within().of_graph(op.fgraph)
    return list(loop_like(op, inner.inputs, inner.outputs).make_node(*operands).outputs)


def _is_float_tensor(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.dtype.startswith("float")


def _kind(type_: Type) -> tuple:
    return type(type_), getattr(type_, "dtype", None), getattr(type_, "ndim", None)


def _cast(variable: Variable, type_: Type) -> Variable:
    dtype = getattr(type_, "dtype", None)
    if dtype is None or dtype == variable.type.dtype:
        return variable
    return cast_scalar(variable, dtype) if isinstance(type_, ScalarType) else cast(variable, dtype)
