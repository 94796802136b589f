"""Lowerings of elementwise operations."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar import basic as ps
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import MulWithoutZeros

import pytensor_onnx.functions.special  # noqa: F401  (registers the definitions)
from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.registry.definition_instance import (
    COMPARISONS,
    LOGICAL_AND_BITWISE,
    OPERATORS,
)
from pytensor_onnx.dispatch.registry.function import call_definition
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.functions.registry import definition_of
from pytensor_onnx.graph.bounds import never_negative
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.operators.dims import Dim, dims_of
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.ops.elementwise import BitsAs
from pytensor_onnx.ops.special.portable import HalfPowerOfTwo
from pytensor_onnx.ops.special.precise import PreciseLog

_FIRST_OPSET_WITH_BIT_CAST = 26


@onnx_funcify.register(Elemwise)
def lower_elemwise(op: Elemwise, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Lower the scalar op on tensors, which ONNX broadcasts.

    PyTensor broadcasts an axis only if its type has a size of one; ONNX broadcasts any size of one.
    Axes of inputs that must be equal get one name, and every call compares their sizes; sizes of
    intermediate values are not compared.
    """
    dims = _elementwise_dims(node, build, inputs) if build.shaped else None
    lowered = onnx_funcify(op.scalar_op, node, build, *inputs)
    values = [lowered] if isinstance(lowered, ir.Value) else list(lowered)
    if dims is not None:
        for value in values:
            if value.producer() is not None:
                value.shape = ir.Shape(dims)
    return values


@onnx_funcify.register(BitsAs)
def lower_bits_as(op: BitsAs, node: Apply, build: Builder, x: ir.Value) -> Lowered:
    """Emit BitCast of opset 26, or between integers a Cast, which keeps their bits."""
    dtypes = {np.dtype(op.dtype).kind, np.dtype(node.inputs[0].type.dtype).kind}
    target = ir.DataType.from_numpy(np.dtype(op.dtype))
    if dtypes <= {"i", "u"}:
        return build.Cast(x, to=target)
    if build.scope.opset_version < _FIRST_OPSET_WITH_BIT_CAST:
        raise UnsupportedCase(
            "the opset has no BitCast", f"choose opset_version={_FIRST_OPSET_WITH_BIT_CAST}"
        )
    return build.BitCast(x, to=target)


def _elementwise_dims(node: Apply, build: Builder, inputs: Sequence[ir.Value]) -> list[Dim]:
    """Return the dimensions of the result."""
    dims: list[Dim] = []
    for axis, static in enumerate(node.outputs[0].type.shape):
        sizes: list[Dim] = [static]
        for variable, value in zip(node.inputs, inputs, strict=True):
            known = dims_of(value)
            if known is not None and variable.type.shape[axis] != 1:
                sizes.append(known[axis])
        equal = [size for size in sizes if size is not None]
        known_size = next((d for d in equal if isinstance(d, int)), None)
        may_broadcast = any(build.scope.dims.are_computed_apart(equal[0], d) for d in equal[1:])
        first = equal[0] if equal and not may_broadcast else None
        dims.append(first if known_size is None else known_size)
    return dims


@onnx_funcify.register(ps.LogicalComparison)
def lower_comparison(
    op: ps.LogicalComparison, node: Apply, build: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Compare in the common dtype of both operands; uint64 and signed integers exactly."""
    if _mixes_uint64_and_signed(node):
        return _compare_with_uint64(op, node, build, x, y)
    dtype = ps.upcast(*(variable.type.dtype for variable in node.inputs))
    x, y = build.cast(x, dtype), build.cast(y, dtype)
    if dtype == "bool" and not isinstance(op, ps.EQ | ps.NEQ):
        x, y = build.cast(x, "uint8"), build.cast(y, "uint8")
    return _compare(op, build, x, y)


def _compare(op: ps.LogicalComparison, build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    if isinstance(op, ps.NEQ):
        return build.Not(build.Equal(x, y))
    return build.op(COMPARISONS[type(op)], x, y)


def _mixes_uint64_and_signed(node: Apply) -> bool:
    dtypes = {variable.type.dtype for variable in node.inputs}
    return "uint64" in dtypes and any(dtype.startswith("int") for dtype in dtypes)


def _compare_with_uint64(
    op: ps.LogicalComparison, node: Apply, build: Builder, x: ir.Value, y: ir.Value
) -> ir.Value:
    """Compare as uint64 unless the signed operand is negative, since no dtype holds both."""
    signed = y if node.inputs[0].type.dtype == "uint64" else x
    order = op.impl(1, -1) if signed is y else op.impl(-1, 1)
    is_negative = build.Less(signed, 0)
    compared = _compare(op, build, build.cast(x, "uint64"), build.cast(y, "uint64"))
    if order:
        return build.Or(is_negative, compared)
    return build.And(build.Not(is_negative), compared)


# Lower scalar Ops: a table of the Ops with an ONNX operator, a function for each other Op.
#
# The lowerings serve `Elemwise` as well, which calls them with tensors. Operands are cast to the
# dtype of the result first, as PyTensor's own implementations do, unless a lowering says otherwise.


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
    negated = inputs[0].producer() if operator == "Not" else None
    if negated is not None and negated.op_type == "Not" and negated.inputs[0] is not None:
        return negated.inputs[0]
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


# Define division, remainder and power with NumPy's rules for all operands.
#
# ONNX leaves integer division by zero undefined and truncates; a runtime may end the process for it
# and for the most negative number divided by minus one. No operand reaches such a division here.


def floor_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return ``x // y`` of two values of one dtype; an integer divided by zero is zero."""
    if x.dtype == ir.DataType.BOOL:
        return build.cast(_unsigned_divide(build, *_as_uint8(build, x, y)), "bool")
    if x.dtype is not None and x.dtype.is_floating_point():
        return build.call("FloorDivide", _float_floor_divide, x, y)
    if _is_safe_divisor(y):
        shift = _shift(x, y)
        if shift is not None:
            return build.BitShift(x, shift, direction="RIGHT")
        return _floor_quotient(build, x, y)
    return build.call("FloorDivide", _integer_floor_divide, x, y)


def floor_modulo(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return ``x % y`` of two values of one dtype; an integer modulo zero is zero."""
    if x.dtype == ir.DataType.BOOL:
        x, y = _as_uint8(build, x, y)
        return build.cast(build.call("FloorModulo", _integer_floor_modulo, x, y), "bool")
    if x.dtype is not None and x.dtype.is_floating_point():
        return build.call("FloorModulo", _float_floor_modulo, x, y)
    if _is_safe_divisor(y):
        return build.Mod(x, y)
    return build.call("FloorModulo", _integer_floor_modulo, x, y)


def integer_power(build: Builder, base: ir.Value, exponent: ir.Value) -> ir.Value:
    """Return an integer power, modulo the range of the dtype.

    A negative exponent, which NumPy refuses, gives the exact quotient rounded towards zero.
    """
    return build.call("Power", _integer_power, base, exponent)


def _as_uint8(build: Builder, *values: ir.Value) -> list[ir.Value]:
    return [build.cast(value, "uint8") for value in values]


def _is_safe_divisor(y: ir.Value) -> bool:
    if y.const_value is None:
        return False
    divisor = y.const_value.numpy()
    return bool(divisor.size and np.all(divisor != 0) and not np.any(divisor == -1))


def _shift(x: ir.Value, y: ir.Value) -> np.ndarray | None:
    """Return n if the constant divisor is 2**n, so that a shift can divide; otherwise None."""
    if x.dtype not in (ir.DataType.UINT8, ir.DataType.UINT32, ir.DataType.UINT64):
        return None
    divisor = y.const_value
    if divisor is None or divisor.size != 1:
        return None
    number = int(divisor.numpy().item())
    if number.bit_count() != 1:
        return None
    return np.full(divisor.numpy().shape, number.bit_length() - 1, dtype_of(x).numpy())


def _is_signed(x: ir.Value) -> bool:
    return x.dtype is not None and x.dtype.is_signed()


def _floor_quotient(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    quotient = build.Div(x, y)
    if not _is_signed(x) or never_negative(x, y):
        return quotient
    remainder = build.Sub(x, build.Mul(quotient, y))
    return build.Sub(quotient, build.cast(_signs_differ(build, remainder, y), dtype_of(x)))


def _unsigned_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    return build.call("FloorDivide", _integer_floor_divide, x, y)


def _safe_divisor(build: Builder, y: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value | None]:
    """Replace the divisors 0 and -1; return masks of both too."""
    is_zero = build.Equal(y, 0)
    if not _is_signed(y):
        return build.Where(is_zero, 1, y), is_zero, None
    is_minus_one = build.Equal(y, -1)
    return build.Where(build.Or(is_zero, is_minus_one), 1, y), is_zero, is_minus_one


def _integer_floor_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    divisor, is_zero, is_minus_one = _safe_divisor(build, y)
    quotient = _floor_quotient(build, x, divisor)
    if is_minus_one is not None:
        quotient = build.Where(is_minus_one, build.Sub(0, x), quotient)
    return build.Where(is_zero, 0, quotient)


def _integer_floor_modulo(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    divisor, is_zero, _ = _safe_divisor(build, y)
    return build.Where(is_zero, 0, build.Mod(x, divisor))


def _float_floor_modulo(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return the remainder of C's ``fmod`` with the sign of the divisor, also for zero."""
    remainder = build.Mod(x, y, fmod=1)
    moved = build.Where(_signs_differ(build, remainder, y), build.Add(remainder, y), remainder)
    size = build.Abs(remainder)
    return build.Where(build.Greater(size, 0), moved, build.Mul(size, build.Sign(y)))


def _float_floor_divide(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Divide ``x`` without its remainder, and round as NumPy does.

    A zero has the sign of ``x / y``, which is the result for ``y`` of zero.
    """
    remainder = build.Mod(x, y, fmod=1)
    exact = build.Div(build.Sub(x, remainder), y)
    below = build.cast(_signs_differ(build, remainder, y), dtype_of(y))
    exact = build.Sub(exact, below)
    floor = build.Floor(exact)
    up = build.cast(build.Greater(build.Sub(exact, floor), 0.5), dtype_of(y))
    quotient = build.Div(x, y)
    signed_zero = build.Mul(quotient, 0)
    rounded = build.Where(build.Greater(build.Abs(exact), 0), build.Add(floor, up), signed_zero)
    return build.Where(build.Equal(y, 0), quotient, rounded)


def _signs_differ(build: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    if y.const_value is not None and np.all(y.const_value.numpy() > 0):
        return build.Less(x, 0)
    return build.Less(build.Mul(build.Sign(x), build.Sign(y)), 0)


def _integer_power(build: Builder, base: ir.Value, exponent: ir.Value) -> ir.Value:
    shape = build.Shape(build.Add(base, exponent))
    one = build.Expand(build.constant(np.ones((), dtype_of(base).numpy())), shape)
    remaining = build.Expand(exponent, shape)
    if _is_signed(exponent):
        remaining = build.Max(remaining, 0)
    result = _square_and_multiply(build, one, build.Expand(base, shape), remaining)
    if not _is_signed(exponent):
        return result
    odd = build.Not(build.Equal(build.BitwiseAnd(exponent, 1), 0))
    sign = build.Where(odd, base, build.Mul(base, base))
    unit = build.Equal(build.Abs(base), 1)
    return build.Where(build.Less(exponent, 0), build.Where(unit, sign, 0), result)


def _square_and_multiply(
    build: Builder, one: ir.Value, base: ir.Value, exponent: ir.Value
) -> ir.Value:
    """Multiply the squares of the base that the bits of the exponent select."""

    def step(
        loop: Builder, i: ir.Value, result: ir.Value, power: ir.Value, rest: ir.Value
    ) -> list[ir.Value]:
        half = loop.Div(rest, 2)
        odd = loop.Sub(rest, loop.Mul(half, 2))
        product = loop.Where(loop.Equal(odd, 0), result, loop.Mul(result, power))
        return [_any_above_zero(loop, half), product, loop.Mul(power, power), half]

    return build.loop(None, _any_above_zero(build, exponent), [one, base, exponent], step)[0]


def _any_above_zero(build: Builder, x: ir.Value) -> ir.Value:
    largest = build.ReduceMax(build.cast(build.Greater(x, 0), "int32"), keepdims=0)
    return build.Greater(largest, 0)
