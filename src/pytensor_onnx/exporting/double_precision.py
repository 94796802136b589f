"""Rebuild graphs in float64, to distinguish rounding errors from other errors."""

from collections.abc import Sequence
from functools import singledispatch

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.scalar.basic import Cast, ScalarType
from pytensor.scalar.basic import cast as cast_scalar
from pytensor.scan.op import Scan
from pytensor.tensor.basic import cast
from pytensor.tensor.elemwise import CAReduce, Elemwise

from pytensor_onnx.rewriting.loops.inner_graphs import loop_like

NARROW = ("float16", "float32")


def in_double(fgraph: FunctionGraph | FrozenFunctionGraph) -> FunctionGraph:
    """Return a graph that computes in float64 in place of narrower floats.

    Operations with a single dtype, such as random draws, keep it.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x", dtype="float32")
    >>> doubled = in_double(FunctionGraph([x], [pt.exp(x).sum()], clone=False))
    >>> doubled.inputs[0].type.dtype, doubled.outputs[0].type.dtype
    ('float64', 'float64')
    """
    inputs = [_double(v.type)(name=v.name) for v in fgraph.inputs]
    return FunctionGraph(inputs, _rebuilt(fgraph, inputs), clone=False)


def is_narrow(type_: Type) -> bool:
    """Return whether values of a type are floats narrower than float64."""
    return getattr(type_, "dtype", None) in NARROW


def _rebuilt(
    fgraph: FunctionGraph | FrozenFunctionGraph, inputs: Sequence[Variable]
) -> list[Variable]:
    doubles = dict(zip(fgraph.inputs, inputs, strict=True))
    for node in fgraph.toposort():
        operands = [_operand(v, doubles) for v in node.inputs]
        doubles.update(zip(node.outputs, _rebuilt_node(node, operands), strict=True))
    return [_operand(v, doubles) for v in fgraph.outputs]


def _operand(variable: Variable, doubles: dict[Variable, Variable]) -> Variable:
    if not isinstance(variable, Constant):
        return doubles[variable]
    if not is_narrow(variable.type):
        return variable
    type_ = _double(variable.type)
    return type_.constant_type(type=type_, data=variable.data.astype("float64"))


def _rebuilt_node(node: Apply, operands: list[Variable]) -> list[Variable]:
    wanted = [_double(v.type) for v in node.outputs]
    try:
        outputs = rebuild(node.op, node, operands)
        if [_kind(v.type) for v in outputs] == [_kind(t) for t in wanted]:
            return outputs
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        # The operation supports its own dtypes only.
        pass
    narrow = [_cast(x, v.type) for x, v in zip(operands, node.inputs, strict=True)]
    computed = node.op.make_node(*narrow).outputs
    return [_cast(v, t) for v, t in zip(computed, wanted, strict=True)]


@singledispatch
def rebuild(op: Op, node: Apply, operands: list[Variable]) -> list[Variable]:
    """Return the outputs of an operation on float64 operands."""
    if getattr(op, "__props__", None) == ("dtype",) and op.dtype in NARROW:
        op = type(op)("float64")
    return list(op.make_node(*operands).outputs)


@rebuild.register(Elemwise)
@rebuild.register(Cast)
def rebuild_elemwise(op: Op, node: Apply, operands: list[Variable]) -> list[Variable]:
    """Drop casts that round, and recompute other operations."""
    if isinstance(getattr(op, "scalar_op", op), Cast) and is_narrow(node.outputs[0].type):
        return [_cast(operands[0], _double(node.outputs[0].type))]
    return list(op.make_node(*operands).outputs)


@rebuild.register(CAReduce)
def rebuild_reduction(op: CAReduce, node: Apply, operands: list[Variable]) -> list[Variable]:
    """Accumulate in float64."""
    dtypes = {
        name: "float64" for name in ("dtype", "acc_dtype") if getattr(op, name, None) in NARROW
    }
    return list((op.clone(**dtypes) if dtypes else op).make_node(*operands).outputs)


@rebuild.register(OpFromGraph)
def rebuild_function(op: OpFromGraph, node: Apply, operands: list[Variable]) -> list[Variable]:
    """Inline the graph of a function."""
    return _rebuilt(op.fgraph, operands)


@rebuild.register(Scan)
def rebuild_scan(op: Scan, node: Apply, operands: list[Variable]) -> list[Variable]:
    """Rebuild the graph of a step."""
    inner = in_double(op.fgraph)
    return list(loop_like(op, inner.inputs, inner.outputs).make_node(*operands).outputs)


def _double(type_: Type) -> Type:
    if not is_narrow(type_):
        return type_
    if isinstance(type_, ScalarType):
        return ScalarType("float64")
    return type_.clone(dtype="float64")


def _kind(type_: Type) -> tuple:
    return type(type_), getattr(type_, "dtype", None), getattr(type_, "ndim", None)


def _cast(variable: Variable, type_: Type) -> Variable:
    dtype = getattr(type_, "dtype", None)
    if dtype is None or dtype == variable.type.dtype:
        return variable
    return cast_scalar(variable, dtype) if isinstance(type_, ScalarType) else cast(variable, dtype)
