"""Rebuild graphs in another float dtype: wider to tell rounding errors, or narrower to export."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Self

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

from pytensor_onnx.encodings.array_constants import tensor_constant
from pytensor_onnx.exporting.verification.random_rounding import RoundAtRandom
from pytensor_onnx.ops.networks.kept_operator import KeptOperator
from pytensor_onnx.rewriting.loops.changed_scan import loop_like

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
