"""Lower scalar Ops: a table of the Ops with an ONNX operator, a function for each other Op.

The lowerings serve `Elemwise` as well, which calls them with tensors. Operands are cast to the
dtype of the result first, as PyTensor's own implementations do, unless a lowering says otherwise.
"""

from functools import reduce

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar import basic as ps
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.math import MulWithoutZeros

import pytensor_onnx.functions.special  # noqa: F401  (registers the definitions)
from pytensor_onnx.dispatch.elementwise.integer_arithmetic import (
    floor_divide,
    floor_modulo,
    integer_power,
)
from pytensor_onnx.dispatch.elementwise.scalar_operators import LOGICAL_AND_BITWISE, OPERATORS
from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.registry.function import call_definition
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.functions.registry import definition_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.ops.special.portable import HalfPowerOfTwo
from pytensor_onnx.ops.special.precise import PreciseLog


def _is_bool(variable: Variable) -> bool:
    return variable.type.dtype == "bool"


def _is_discrete(variable: Variable) -> bool:
    return variable.type.dtype in ps.discrete_dtypes


def _cast_all(node: Apply, build: Builder, inputs: tuple[ir.Value, ...]) -> list[ir.Value]:
    return [build.cast(x, node.outputs[0].type.dtype) for x in inputs]


@onnx_funcify.register(ScalarOp)
def lower_scalar_op(op: ScalarOp, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Emit the operator in the table, or call the function that defines the op."""
    operator = OPERATORS.get(type(op))
    if operator is not None:
        return build.op(operator, *_cast_all(node, build, inputs))
    definition = definition_of(type(op))
    if definition is not None:
        return call_definition(definition, op, node, build, _cast_all(node, build, inputs))
    raise build.unsupported(
        f"no lowering is registered for the scalar operation {type(op).__name__}",
        "write it with supported operations, or register a lowering with "
        f"@pytensor_onnx.onnx_funcify.register({type(op).__name__})",
    )


@onnx_funcify.register(PreciseLog)
def lower_precise_log(op: PreciseLog, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Take the logarithm of sums of one element, which is computed element by element."""
    x = build.cast(x, node.outputs[0].type.dtype)
    if build.scope.is_portable:
        return build.Log(x)
    return build.ReduceLogSum(build.Unsqueeze(x, [-1]), [-1], keepdims=0)


@onnx_funcify.register(HalfPowerOfTwo)
def lower_half_power_of_two(
    op: HalfPowerOfTwo, node: Apply, build: Builder, exponents: ir.Value
) -> ir.Value:
    """Look it up; indices of NaN are bounded.

    The table is a constant. If a session made it of few operators, the runtime's optimizer would go
    through large definitions a second time, which takes a fifth of the time of the session.
    """
    info = np.finfo(node.outputs[0].type.dtype)
    one, first = info.dtype.type(1), info.minexp - info.nmant - 1
    # Negative indices count from the end, so that the one of exponent 0 comes first.
    halves = np.concatenate([np.arange(-1, info.maxexp + 1), np.arange(first, -1)])
    with np.errstate(over="ignore"):
        table = build.constant(np.ldexp(one, halves))
    ends = np.int32(first + 1), np.int32(info.maxexp + 1)
    places = build.Clip(build.cast(exponents, "int32"), *ends)
    if build.scope.is_portable:
        return build.Gather(table, places, axis=0)
    # Numbers of the graph may be arrays when it runs.
    if node.outputs[0].type.ndim == 1:
        return build.GatherElements(table, places, axis=0)
    found = build.GatherElements(table, build.Reshape(places, build.ints([-1])), axis=0)
    return build.Reshape(found, build.Shape(exponents), allowzero=1)


@onnx_funcify.register(ps.IsNan)
@onnx_funcify.register(ps.IsInf)
def lower_is_nan_or_inf(op: ScalarOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Test floats; no integer is NaN or infinite."""
    if _is_discrete(node.inputs[0]):
        return build.Not(build.Equal(x, x))
    return build.IsNaN(x) if isinstance(op, ps.IsNan) else build.IsInf(x)


@onnx_funcify.register(ps.Switch)
def lower_switch(
    op: ps.Switch, node: Apply, build: Builder, condition: ir.Value, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Select; any number except zero is true."""
    x, y = _cast_all(node, build, (x, y))
    return build.Where(build.cast(condition, "bool"), x, y)


@onnx_funcify.register(ps.UnaryBitOp)
@onnx_funcify.register(ps.BinaryBitOp)
def lower_bit_op(op: ScalarOp, node: Apply, build: Builder, *inputs: ir.Value) -> ir.Value:
    """Use the logical operator for bool and the bitwise one for integers."""
    if not _is_discrete(node.outputs[0]):
        raise build.unsupported(
            "no dtype has the bits of uint64 and of a signed integer", "cast one of them first"
        )
    logical, bitwise = LOGICAL_AND_BITWISE[type(op)]
    operator = logical if _is_bool(node.outputs[0]) else bitwise
    return build.op(operator, *_cast_all(node, build, inputs))


@onnx_funcify.register(ps.Add)
@onnx_funcify.register(ps.Mul)
@onnx_funcify.register(ps.Maximum)
@onnx_funcify.register(ps.Minimum)
def lower_associative(op: ScalarOp, node: Apply, build: Builder, *inputs: ir.Value) -> ir.Value:
    """Chain the binary operator from the left; for bool, add is Or and multiply is And.

    A maximum with zero is a Relu. A constant is added to a matrix product first, as its bias,
    before other terms: PyTensor merges a layer and its residual connection into one sum.
    """
    if isinstance(op, ps.Maximum) and (x := _other_than_zero(node, inputs)) is not None:
        return build.Relu(x)
    if _is_bool(node.outputs[0]):
        operator = "Or" if isinstance(op, ps.Add | ps.Maximum) else "And"
    else:
        operator = {ps.Add: "Add", ps.Mul: "Mul", ps.Maximum: "Max", ps.Minimum: "Min"}[type(op)]
    terms = _cast_all(node, build, inputs)
    if operator == "Add":
        terms = _bias_beside_product(terms)
    return reduce(lambda x, y: build.op(operator, x, y), terms)


def _bias_beside_product(terms: list[ir.Value]) -> list[ir.Value]:
    """Return terms with the only product first and the only constant array second."""
    makers, constants = [x.producer() for x in terms], [x.const_value for x in terms]
    products = [i for i, node in enumerate(makers) if node and node.op_type == "MatMul"]
    biases = [i for i, array in enumerate(constants) if array is not None and array.size > 1]
    if len(terms) < 3 or len(products) != 1 or len(biases) != 1:
        return terms
    first = [products[0], biases[0]]
    return [terms[i] for i in [*first, *(i for i in range(len(terms)) if i not in first)]]


def _other_than_zero(node: Apply, inputs: tuple[ir.Value, ...]) -> ir.Value | None:
    """Return the other operand of a constant float zero of no higher rank."""
    if len(inputs) != 2 or node.outputs[0].type.dtype not in ("float16", "float32", "float64"):
        return None
    ranks = [getattr(variable.type, "ndim", 0) for variable in node.inputs]
    for zero, x in ((0, 1), (1, 0)):
        variable = node.inputs[zero]
        if (
            isinstance(variable, Constant)
            and np.size(variable.data) == 1
            and np.all(variable.data == 0)
            and ranks[zero] <= ranks[x]
            and node.inputs[x].type.dtype == node.outputs[0].type.dtype
        ):
            return inputs[x]
    return None


@onnx_funcify.register(MulWithoutZeros)
def lower_mul_without_zeros(
    op: MulWithoutZeros, node: Apply, build: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Multiply, with zeros replaced by one."""
    x, y = _cast_all(node, build, (x, y))
    product = build.Where(build.Equal(y, 0), x, build.Mul(x, y))
    return build.Where(build.Equal(x, 0), y, product)


@onnx_funcify.register(ps.Sqr)
def lower_sqr(op: ps.Sqr, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Multiply by itself."""
    (x,) = _cast_all(node, build, (x,))
    return build.And(x, x) if _is_bool(node.outputs[0]) else build.Mul(x, x)


@onnx_funcify.register(ps.Neg)
def lower_neg(op: ps.Neg, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Negate; unsigned integers wrap around."""
    if node.outputs[0].type.dtype.startswith("uint"):
        return build.Sub(0, x)
    return build.Neg(x)


@onnx_funcify.register(ps.Abs)
def lower_abs(op: ps.Abs, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the absolute value; a bool stays as it is."""
    return x if _is_bool(node.inputs[0]) else build.Abs(x)


@onnx_funcify.register(ps.Identity)
@onnx_funcify.register(ps.Conj)
@onnx_funcify.register(ps.Real)
def lower_same(op: ScalarOp, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return the operand, which is the conjugate and the real part of a real number."""
    return build.cast(x, node.outputs[0].type.dtype)


@onnx_funcify.register(ps.Imag)
def lower_imag(op: ps.Imag, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Return zeros: the operand is real."""
    zero = build.constant(np.zeros((), node.outputs[0].type.dtype))
    return build.Expand(zero, build.shape(x))


@onnx_funcify.register(ps.Cast)
def lower_cast(op: ps.Cast, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Convert to the dtype of the result.

    The result of a float out of the range of an integer dtype depends on the machine, as in NumPy.
    """
    return build.cast(x, node.outputs[0].type.dtype)


@onnx_funcify.register(ps.Second)
def lower_second(
    op: ps.Second, node: Apply, build: Builder, shape_like: ir.Value, x: ir.Value
) -> ir.Value:
    """Broadcast the second operand against the shape of the first."""
    return build.Expand(build.cast(x, node.outputs[0].type.dtype), build.shape(shape_like))


@onnx_funcify.register(ps.Clip)
def lower_clip(
    op: ps.Clip, node: Apply, build: Builder, x: ir.Value, low: ir.Value, high: ir.Value
) -> ir.Value:
    """Clip as PyTensor does: NaN bounds are ignored, and the lower bound takes precedence."""
    x, low, high = _cast_all(node, build, (x, low, high))
    bounds = [v.data for v in node.inputs[1:] if isinstance(v, Constant)]
    if len(bounds) == 2 and all(np.size(b) == 1 for b in bounds) and bounds[0] <= bounds[1]:
        scalars = [
            build.constant(np.asarray(b, dtype=node.outputs[0].type.dtype).reshape(()))
            for b in bounds
        ]
        ranks = [getattr(v.type, "ndim", 0) for v in node.inputs]
        if max(ranks) == ranks[0]:
            return build.Clip(x, *scalars)
    capped = build.Where(build.Greater(x, high), high, x)
    return build.Where(build.Less(x, low), low, capped)


@onnx_funcify.register(ps.Trunc)
def lower_trunc(op: ps.Trunc, node: Apply, build: Builder, x: ir.Value) -> ir.Value:
    """Round towards zero and keep the sign of zero."""
    (x,) = _cast_all(node, build, (x,))
    return build.Where(build.Greater(x, 0), build.Floor(x), build.Ceil(x))


@onnx_funcify.register(ps.RoundHalfAwayFromZero)
def lower_round_half_away_from_zero(
    op: ps.RoundHalfAwayFromZero, node: Apply, build: Builder, x: ir.Value
) -> ir.Value:
    """Round towards zero, and add one if at least a half is left: ``x + 0.5`` may be rounded."""
    whole = build.Where(build.Greater(x, 0), build.Floor(x), build.Ceil(x))
    is_up = build.GreaterOrEqual(build.Abs(build.Sub(x, whole)), 0.5)
    return build.Where(is_up, build.Add(whole, build.Sign(x)), whole)


@onnx_funcify.register(ps.IntDiv)
def lower_int_div(op: ps.IntDiv, node: Apply, build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Divide and round down; integer division by zero is zero, as in NumPy."""
    x, y = _cast_all(node, build, (x, y))
    return floor_divide(build, x, y)


@onnx_funcify.register(ps.Mod)
def lower_mod(op: ps.Mod, node: Apply, build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return the remainder with the sign of the divisor; zero for an integer modulo zero."""
    x, y = _cast_all(node, build, (x, y))
    return floor_modulo(build, x, y)


@onnx_funcify.register(ps.Pow)
def lower_pow(op: ps.Pow, node: Apply, build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Raise to a power; integers by repeated squaring, exact and wrapping around."""
    x, y = _cast_all(node, build, (x, y))
    return integer_power(build, x, y) if _is_discrete(node.outputs[0]) else build.Pow(x, y)


@onnx_funcify.register(ps.Composite)
def lower_composite(
    op: ps.Composite, node: Apply, build: Builder, *inputs: ir.Value
) -> list[ir.Value]:
    """Emit the scalar graph operator by operator."""
    values = convert_inner(op.fgraph, build, inputs, typed=False)
    return [
        build.cast(value, variable.type.dtype)
        for value, variable in zip(values, node.outputs, strict=True)
    ]
