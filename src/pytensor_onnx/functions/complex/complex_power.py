"""Powers of complex numbers."""

import math

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_exponential import exp
from pytensor_onnx.functions.complex.complex_logarithm import log
from pytensor_onnx.functions.complex.division import quotient
from pytensor_onnx.functions.complex.pairs import Parts
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.ops.complex import ComplexPower

# NumPy multiplies for whole exponents below 100.
_BITS = 7


@define(ComplexPower)
def power(a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable) -> Parts:
    """Return ``exp((c + d i) log(a + b i))``, by products for whole exponents below 100.

    The power of zero is one for an exponent of zero, zero for one with a positive real part, and
    NaN for others, as in NumPy.

    Examples
    --------
    >>> [x.eval().item() for x in power(*map(pt.constant, (1.0, 2.0, 3.0, 0.0)))]
    [-11.0, -2.0]
    """
    zero, one, nan = constant(a, 0.0), constant(a, 1.0), constant(a, math.nan)
    real, imag = exp(*_times(c, d, *log(a, b)))
    is_whole = pt.eq(d, zero) & pt.eq(c, pt.floor(c)) & (pt.abs(c) < constant(c, 100.0))
    by_products = _whole_power(a, b, pt.switch(is_whole, c, zero))
    real, imag = _select(~is_whole, (real, imag), by_products)
    is_zero = pt.eq(a, zero) & pt.eq(b, zero)
    limit = pt.switch(c > zero, zero, nan)
    real, imag = _select(is_zero, (limit, limit), (real, imag))
    is_one = pt.eq(c, zero) & pt.eq(d, zero)
    return _select(is_one, (one, zero), (real, imag))


def _whole_power(a: TensorVariable, b: TensorVariable, n: TensorVariable) -> Parts:
    """Return the power by squares and products, one for each bit of the exponent."""
    one, zero, half = constant(a, 1.0), constant(a, 0.0), constant(a, 0.5)
    rest = pt.abs(n)
    result, square = (one, zero), (a, b)
    for bit in range(_BITS):
        next_rest = pt.floor(rest * half)
        is_odd = pt.neq(rest, next_rest + next_rest)
        result = _select(~is_odd, result, _times(*result, *square) if bit else square)
        rest = next_rest
        square = _times(*square, *square)
    return _select(n >= zero, result, quotient(one, zero, *result))


def _times(a: TensorVariable, b: TensorVariable, c: TensorVariable, d: TensorVariable) -> Parts:
    return a * c - b * d, a * d + b * c


def _select(condition: TensorVariable, x: Parts, y: Parts) -> Parts:
    return pt.switch(condition, x[0], y[0]), pt.switch(condition, x[1], y[1])
