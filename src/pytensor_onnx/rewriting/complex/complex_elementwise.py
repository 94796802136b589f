"""The parts of complex numbers, and elementwise operations by formulas of them."""

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar import basic as ps
from pytensor.scalar.math import Erf, Gamma, Log1mexp, Psi
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.complex_numbers import REAL, ComplexNumbers
from pytensor_onnx.encodings.registry import Tensors, registered
from pytensor_onnx.functions.complex import complex_arithmetic, complex_special, elementary
from pytensor_onnx.functions.complex.complex_arithmetic import Parts, chosen
from pytensor_onnx.ops import complex as ops

ENCODING = registered(ComplexNumbers)


def is_complex(variable: Variable) -> bool:
    """Return whether the values of a variable are complex."""
    return ENCODING.serves(variable.type)


def real_dtype(*variables: Variable) -> str:
    """Return the dtype of the parts of the widest complex variable."""
    return max(REAL[v.type.dtype] for v in variables if is_complex(v))


def joined(parts: Parts) -> TensorVariable:
    """Return the pairs of parts, which `parts_of` takes apart without a node.

    Examples
    --------
    >>> parts_of(joined(Parts(pt.vector("x"), pt.vector("y"))))
    Parts(real=x, imag=y)
    """
    real, imag = parts.real, parts.imag
    if real.type.broadcastable != imag.type.broadcastable:
        real, imag = pt.broadcast_arrays(real, imag)
    return pt.join(-1, _with_last_axis(real), _with_last_axis(imag))


def parts_of(pairs: TensorVariable) -> Parts:
    """Return the parts of pairs."""
    known = known_parts(pairs)
    return known or Parts(pairs[..., 0], pairs[..., 1])


def known_parts(pairs: TensorVariable) -> Parts | None:
    """Return the parts that pairs were joined from, or None if no join made the pairs."""
    node = pairs.owner
    if node is None or not isinstance(node.op, Join) or len(node.inputs) != 2:
        return None
    if not all(map(_has_new_last_axis, node.inputs)):
        return None
    return Parts(*(side.owner.inputs[0] for side in node.inputs))


def operand(variable: Variable, tensors: Tensors, dtype: str) -> Parts:
    """Return the parts of an operand in a dtype; the imaginary part of a real operand is zero."""
    if is_complex(variable):
        return Parts(*(pt.cast(part, dtype) for part in parts_of(tensors[0])))
    return Parts(pt.cast(tensors[0], dtype), pt.zeros((), dtype))


def operands(inputs: Sequence[Variable], tensors: Sequence[Tensors], dtype: str) -> list[Parts]:
    """Return the parts of all operands in a dtype."""
    return [operand(v, group, dtype) for v, group in zip(inputs, tensors, strict=True)]


def _with_last_axis(x: TensorVariable) -> TensorVariable:
    return x.dimshuffle(*range(x.type.ndim), "x")


def _has_new_last_axis(x: TensorVariable) -> bool:
    node = x.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return False
    return tuple(node.op.new_order) == (*range(node.inputs[0].type.ndim), "x")


type Formula = Callable[..., Parts | TensorVariable]


@ENCODING.rewrites(Elemwise)
def compute(op: Elemwise, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Compute by the formula of the scalar operation, or return None if it has no formula."""
    return _computed(op.scalar_op, node, inputs)


@ENCODING.rewrites(ps.ScalarOp)
def compute_scalar(op: ps.ScalarOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Compute with a scalar type as with 0-d tensors."""
    tensors = [
        [pt.tensor_from_scalar(x) if isinstance(x.type, ps.ScalarType) else x for x in group]
        for group in inputs
    ]
    results = _computed(op, node, tensors)
    if results is None:
        return None
    return [
        group if is_complex(output) else [pt.scalar_from_tensor(group[0])]
        for output, group in zip(node.outputs, results, strict=True)
    ]


def _computed(op: ps.ScalarOp, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return the tensors of each result of a scalar operation on arrays."""
    if isinstance(op, ps.ScalarInnerGraphOp):
        return _composed(op, inputs)
    if isinstance(op, ps.Switch):
        return _select(node, inputs)
    formula = _FORMULAS.get(type(op))
    if formula is None:
        return None
    dtype = real_dtype(*node.inputs, *node.outputs)
    result = formula(*operands(node.inputs, inputs, dtype))
    (output,) = node.outputs
    if isinstance(result, Parts) and isinstance(op, ps.Second) and not is_complex(output):
        result = result.real
    if isinstance(result, Parts):
        if not is_complex(output):
            return None
        dtype = real_dtype(output)
        return [[joined(Parts(*(pt.cast(part, dtype) for part in result)))]]
    return [[pt.cast(result, output.type.dtype)]]


def _composed(op: ps.ScalarInnerGraphOp, inputs: Sequence[Tensors]) -> list[Tensors] | None:
    """Return the results of several operations that PyTensor has fused into one."""
    known: dict[Variable, Tensors] = dict(zip(op.fgraph.inputs, inputs, strict=True))

    def tensors_of(variable: Variable) -> Tensors:
        if isinstance(variable, Constant):
            whole = is_complex(variable)
            arrays = ENCODING.encode(variable.type, variable.data) if whole else [variable.data]
            return [pt.constant(np.asarray(array)) for array in arrays]
        return known[variable]

    for node in op.fgraph.toposort():
        given = [tensors_of(variable) for variable in node.inputs]
        if any(map(is_complex, (*node.inputs, *node.outputs))):
            results = _computed(node.op, node, given)
            if results is None:
                return None
        else:
            results = [[x] for x in Elemwise(node.op).make_node(*(x for (x,) in given)).outputs]
        known.update(zip(node.outputs, results, strict=True))
    return [tensors_of(variable) for variable in op.fgraph.outputs]


def _select(node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    (condition,), *_ = inputs
    if is_complex(node.inputs[0]):
        real, imag = parts_of(condition)
        condition = pt.neq(real, 0) | pt.neq(imag, 0)
    x, y = operands(node.inputs[1:], inputs[1:], real_dtype(*node.outputs))
    parts = [pt.switch(condition, a, b) for a, b in zip(x, y, strict=True)]
    return [[joined(Parts(*parts))]]


def _function(elementwise: Elemwise) -> Formula:
    """Return the formula of a scalar operation on real and imaginary parts."""

    def formula(*numbers: Parts) -> Parts:
        return Parts(*elementwise(*(part for number in numbers for part in number)))

    return formula


def _add(x: Parts, y: Parts) -> Parts:
    return Parts(ops.part_sum(x.real, y.real), ops.part_sum(x.imag, y.imag))


def _subtract(x: Parts, y: Parts) -> Parts:
    return Parts(ops.part_difference(x.real, y.real), ops.part_difference(x.imag, y.imag))


def _multiply(x: Parts, y: Parts) -> Parts:
    return Parts(ops.product_real(*x, *y), ops.product_imag(*x, *y))


def _chained(formula: Formula) -> Formula:
    return lambda *numbers: reduce(formula, numbers)


def _square(z: Parts) -> Parts:
    return _multiply(z, z)


def _power(x: Parts, y: Parts) -> Parts:
    """Multiply for the exponents 1, 2 and 3, as NumPy does."""
    exponent = _constant(y)
    if exponent in (1, 2, 3):
        square = x if exponent == 1 else _square(x)
        return _multiply(x, square) if exponent == 3 else square
    return Parts(*elementary.power(*x, *y))


def _constant(z: Parts) -> complex | None:
    """Return the number that all elements equal, or None if unknown."""
    values = []
    for part in z:
        x = part
        while x.owner is not None and len(x.owner.inputs) == 1:
            x = x.owner.inputs[0]
        if not isinstance(x, Constant) or np.size(x.data) != 1:
            return None
        values.append(float(np.ravel(x.data)[0]))
    return complex(*values)


def _turned(formula: Formula) -> Formula:
    """Return ``-i f(i z)`` for a function ``f``, such as the sine of the hyperbolic sine."""

    def turned(z: Parts) -> Parts:
        real, imag = formula(Parts(-z.imag, z.real))
        return Parts(imag, -real)

    return turned


def _cosine(z: Parts) -> Parts:
    return Parts(*elementary.cosh(-z.imag, z.real))


def _scaled_log(factor: float) -> Formula:
    def formula(z: Parts) -> Parts:
        real, imag = elementary.log(*z)
        by = np.asarray(factor, real.type.dtype)
        return Parts(real * by, imag * by)

    return formula


def _second(x: Parts, y: Parts) -> Parts:
    return Parts(*(pt.second(x.real, part) for part in y))


def _equal(x: Parts, y: Parts) -> TensorVariable:
    return pt.eq(x.real, y.real) & pt.eq(x.imag, y.imag)


def _ordered(compare: Callable[..., TensorVariable]) -> Formula:
    """Return a comparison by the real part, then the imaginary one; false for NaN in any part."""
    strict = {pt.lt: pt.lt, pt.le: pt.lt, pt.gt: pt.gt, pt.ge: pt.gt}[compare]

    def comparison(x: Parts, y: Parts) -> TensorVariable:
        differs = strict(x.real, y.real) & ~(pt.isnan(x.imag) | pt.isnan(y.imag))
        return differs | (pt.eq(x.real, y.real) & compare(x.imag, y.imag))

    return comparison


def _extreme(compare: Callable[..., TensorVariable]) -> Formula:
    """Return a function that selects from two numbers: the first NaN, otherwise by an order."""
    ordered = _ordered(compare)

    def extreme(x: Parts, y: Parts) -> Parts:
        return chosen(pt.isnan(x.real) | pt.isnan(x.imag) | ordered(x, y), x, y)

    return extreme


def _log1mexp(z: Parts) -> Parts:
    """Return ``log(-expm1(z))``, or ``log1p(-exp(z))`` below ``-log(2)``."""
    limit, zero = (pt.constant(x, dtype=z.real.type.dtype) for x in (-math.log(2), 0.0))
    is_far = _ordered(pt.lt)(z, Parts(limit, zero))
    near = elementary.log(*(-part for part in elementary.expm1(*z)))
    far = elementary.log1p(*(-part for part in elementary.exp(*z)))
    return Parts(*(pt.switch(is_far, x, y) for x, y in zip(far, near, strict=True)))


_FORMULAS: dict[type[ps.ScalarOp], Formula] = {
    ps.Abs: lambda z: complex_arithmetic.hypotenuse(*z),
    ps.Add: _chained(_add),
    ps.ArcCos: _function(elementary.arccos),
    ps.ArcCosh: _function(elementary.arccosh),
    ps.ArcSin: _turned(_function(elementary.arcsinh)),
    ps.ArcSinh: _function(elementary.arcsinh),
    ps.ArcTan: _turned(_function(elementary.arctanh)),
    ps.ArcTanh: _function(elementary.arctanh),
    ps.Cast: lambda z: z,
    ps.Complex: lambda x, y: Parts(x.real, y.real),
    ps.Conj: lambda z: Parts(z.real, -z.imag),
    ps.Cos: _cosine,
    ps.Cosh: _function(elementary.cosh),
    ps.EQ: _equal,
    Erf: _function(complex_special.erf),
    ps.Exp: _function(elementary.exp),
    ps.Exp2: _function(elementary.exp2),
    ps.Expm1: _function(elementary.expm1),
    ps.GE: _ordered(pt.ge),
    ps.GT: _ordered(pt.gt),
    Gamma: _function(complex_special.gamma),
    ps.Identity: lambda z: z,
    ps.Imag: lambda z: z.imag,
    ps.IsInf: lambda z: pt.isinf(z.real) | pt.isinf(z.imag),
    ps.IsNan: lambda z: pt.isnan(z.real) | pt.isnan(z.imag),
    ps.LE: _ordered(pt.le),
    ps.LT: _ordered(pt.lt),
    ps.Log: _function(elementary.log),
    ps.Log10: _scaled_log(1 / math.log(10)),
    ps.Log1p: _function(elementary.log1p),
    Log1mexp: _log1mexp,
    ps.Log2: _scaled_log(1 / math.log(2)),
    ps.Maximum: _chained(_extreme(pt.ge)),
    ps.Minimum: _chained(_extreme(pt.le)),
    ps.Mul: _chained(_multiply),
    ps.NEQ: lambda x, y: ~_equal(x, y),
    ps.Neg: lambda z: Parts(-z.real, -z.imag),
    ps.Pow: _power,
    Psi: _function(complex_special.psi),
    ps.Real: lambda z: z.real,
    ps.Reciprocal: _function(elementary.reciprocal),
    ps.Second: _second,
    ps.Sign: _function(complex_arithmetic.sign),
    ps.Sin: _turned(_function(elementary.sinh)),
    ps.Sinh: _function(elementary.sinh),
    ps.Sqr: _square,
    ps.Sqrt: _function(complex_arithmetic.sqrt),
    ps.Sub: _subtract,
    ps.Tan: _turned(_function(elementary.tanh)),
    ps.Tanh: _function(elementary.tanh),
    ps.TrueDiv: _function(elementary.quotient),
}
