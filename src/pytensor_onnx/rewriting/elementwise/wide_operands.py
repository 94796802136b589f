"""Cast operands to the dtype of the result before PyTensor rewrites their operation."""

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import (
    Add,
    Cast,
    Mul,
    Pow,
    Sub,
    TrueDiv,
    UnaryScalarOp,
)
from pytensor.tensor.basic import cast, constant
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [Elemwise],
    family="elementwise",
    purpose="correctness",
    identity="op(x, y) = op(cast(x, t), cast(y, t))",
    requires="t is the dtype of the result",
    ensures="PyTensor's rewrites neither wrap around nor round",
    measured="docs/project/upstream.md#a-float-minus-an-unsigned-integer-wraps-around",
)
def widen_operands(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Cast the operands of arithmetic, and the base of a power, to the dtype of the result.

    PyTensor's rewrites compute with uncast operands, which wrap around and round: they replace
    ``0.0 - x`` by the uint8 ``-x``, ``log(1.0 + x)`` by the float32 ``log1p(x)``, and a square by
    one of int16. Across a function of integers that returns floats they simplify operations that
    wrap around: ``1 / (2 * x)``.
    """
    dtype = node.outputs[0].type.dtype
    count = _number_of_operands(node, dtype)
    operands, rest = node.inputs[:count], node.inputs[count:]
    if all(x.type.dtype == dtype for x in operands):
        return None
    return [node.op(*(_widened(x, dtype) for x in operands), *rest)]


def _number_of_operands(node: Apply, dtype: str) -> int:
    """Return the number of leading operands that need the dtype of the result."""
    op = node.op.scalar_op
    if isinstance(op, Add | Mul | Sub | TrueDiv):
        return len(node.inputs)
    if isinstance(op, Pow):
        return 1
    is_function = isinstance(op, UnaryScalarOp) and not isinstance(op, Cast)
    of_integers = node.inputs[0].type.dtype.startswith(("int", "uint", "bool"))
    return 1 if is_function and of_integers and dtype.startswith("float") else 0


def _widened(x: Variable, dtype: str) -> Variable:
    if isinstance(x, Constant) and x.type.dtype != dtype:
        return constant(x.data.astype(dtype), name=x.name)
    return cast(x, dtype)
