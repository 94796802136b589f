"""Arithmetic, moduli and square roots of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.operation import operation
from pytensor_onnx.functions.special.arithmetic import constant

PairOfParts = tuple[TensorVariable, TensorVariable]
"""Real and imaginary part."""


def paired(real: TensorVariable, imag: TensorVariable) -> TensorVariable:
    """Return the pairs of parts of equal shapes."""
    return pt.stack([real, imag], axis=-1)


def times(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the products of complex numbers.

    Examples
    --------
    >>> times(pt.constant([[1.0, 2.0]]), pt.constant([[0.0, 3.0]])).eval()
    array([[-6.,  3.]])
    """
    a, b, c, d = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    return paired(a * c - b * d, a * d + b * c)


def conjugate(pairs: TensorVariable) -> TensorVariable:
    """Return the conjugates of complex numbers."""
    return paired(pairs[..., 0], -pairs[..., 1])


@dataclass(frozen=True)
class Parts:
    """Real and imaginary part, which broadcast against each other.

    Examples
    --------
    >>> z = Parts(pt.constant([1.0, 2.0]), pt.constant([0.0, 3.0]))
    >>> [part.eval().tolist() for part in z * z.conj()]
    [[1.0, 13.0], [0.0, 0.0]]
    """

    real: TensorVariable
    imag: TensorVariable

    def __iter__(self) -> Iterator[TensorVariable]:
        """Return the parts, one after the other."""
        return iter((self.real, self.imag))

    def __getitem__(self, index: Any) -> Parts:
        """Return elements of both parts."""
        return Parts(self.real[index], self.imag[index])

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Parts) -> Parts:
        return Parts(self.real - other.real, self.imag - other.imag)

    def __neg__(self) -> Parts:
        return Parts(-self.real, -self.imag)

    def __mul__(self, other: Parts) -> Parts:
        return Parts(
            self.real * other.real - self.imag * other.imag,
            self.real * other.imag + self.imag * other.real,
        )

    def __matmul__(self, other: Parts) -> Parts:
        return Parts(
            pt.matmul(self.real, other.real) - pt.matmul(self.imag, other.imag),
            pt.matmul(self.real, other.imag) + pt.matmul(self.imag, other.real),
        )

    def scaled(self, by: TensorVariable) -> Parts:
        """Return products with real numbers."""
        return Parts(self.real * by, self.imag * by)

    def conj(self) -> Parts:
        """Return conjugates."""
        return Parts(self.real, -self.imag)

    def adjoint(self) -> Parts:
        """Return conjugates of transposed matrices."""
        return Parts(self.real.mT, -self.imag.mT)


type Numbers = TensorVariable | Parts
"""Real arrays, or complex ones by their parts, for algorithms of both."""


def listed(*numbers: Numbers) -> list[TensorVariable]:
    """Return the parts of numbers, one after the other; a real array is its own part."""
    return [x for z in numbers for x in (z if isinstance(z, Parts) else [z])]


def grouped(parts: Sequence[TensorVariable], width: int) -> list[Numbers]:
    """Return the numbers that `listed` gave the parts of: of one part each, or of two."""
    if width == 1:
        return list(parts)
    return [Parts(*parts[i : i + 2]) for i in range(0, len(parts), 2)]


def each(function: Callable[..., TensorVariable], *numbers: Numbers) -> Numbers:
    """Return the numbers whose parts are those of a function of the parts of others.

    Examples
    --------
    >>> z = Parts(pt.constant([1.0, 2.0]), pt.constant([0.0, 3.0]))
    >>> [part.eval().item() for part in each(pt.sum, z)]
    [3.0, 3.0]
    >>> each(pt.sum, z.real).eval().item()
    3.0
    """
    parts = [function(*x) for x in zip(*map(listed, numbers), strict=True)]
    return grouped(parts, len(parts))[0]


def chosen(condition: TensorVariable, x: Numbers, y: Numbers) -> Numbers:
    """Return the first numbers where a condition holds, and else the second ones."""
    return each(lambda x, y: pt.switch(condition, x, y), x, y)


def extent(z: Numbers) -> TensorVariable:
    """Return the sums of the magnitudes of all parts."""
    first, *others = map(pt.abs, listed(z))
    return first + others[0] if others else first


def quotient(x: Parts, y: Parts) -> Parts:
    """Return quotients of finite numbers; a quotient by zero is zero.

    Examples
    --------
    >>> one, z = (Parts(*map(pt.constant, parts)) for parts in ([1.0, 0.0], [0.0, 2.0]))
    >>> [float(part.eval()) for part in quotient(one, z)]
    [0.0, -0.5]
    """
    larger = extent(y)
    inverse = pt.switch(pt.eq(larger, 0.0), 0.0, 1.0 / pt.switch(pt.eq(larger, 0.0), 1.0, larger))
    y = y.scaled(inverse)
    square = y.real * y.real + y.imag * y.imag
    product = (x * y.conj()).scaled(inverse)
    return product.scaled(1.0 / pt.switch(pt.eq(square, 0.0), 1.0, square))


def root(z: Parts) -> Parts:
    """Return square roots of finite numbers of a moderate size, with positive real parts.

    Examples
    --------
    >>> [float(part.eval()) for part in root(Parts(pt.constant(3.0), pt.constant(-4.0)))]
    [2.0, -1.0]
    """
    size = pt.sqrt(z.real * z.real + z.imag * z.imag)
    longer = pt.sqrt(0.5 * (size + pt.abs(z.real)))
    shorter = 0.5 * pt.abs(z.imag) / pt.switch(pt.eq(longer, 0.0), 1.0, longer)
    is_left = pt.lt(z.real, 0.0)
    imag = pt.switch(is_left, longer, shorter)
    return Parts(pt.switch(is_left, shorter, longer), pt.switch(pt.lt(z.imag, 0.0), -imag, imag))


def of_complex(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return `operation` for the parts of a function of complex numbers.

    Parameters
    ----------
    function
        The function of NumPy or SciPy.
    name
        Name of the class.
    """

    def reference(*parts: Any) -> tuple[Any, Any]:
        # Parts may be infinite, which a sum with ``1j`` would mix.
        pairs = zip(parts[::2], parts[1::2], strict=True)
        numbers = [np.array(pair, "float64").view("complex128")[0] for pair in pairs]
        with np.errstate(all="ignore"):
            result = function(*numbers)
        return result.real, result.imag

    return operation(reference=reference, results=2, name=name)


@operation(reference=np.hypot)
def hypotenuse(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Return the square root of ``a**2 + b**2`` without overflow.

    C. B. Moler and D. Morrison, "Replacing square roots by Pythagorean sums", IBM J. Res. Dev. 27
    (1983), divide by the larger number. An infinite part gives infinity, even beside a NaN.

    Examples
    --------
    >>> hypotenuse(pt.constant(3e200), pt.constant(4e200)).eval()
    array(5.e+200)
    """
    a, b = pt.abs(a), pt.abs(b)
    large, small = pt.maximum(a, b), pt.minimum(a, b)
    one = constant(a, 1.0)
    ratio = small / pt.switch(pt.eq(large, constant(a, 0.0)), one, large)
    result = large * pt.sqrt(one + ratio * ratio)
    return pt.switch(pt.isinf(a) | pt.isinf(b), constant(a, float("inf")), result)


@of_complex(np.sign, "ComplexSign")
def sign(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the number over its absolute value, zero for zero.

    The sign of a number with one infinite part is that of the part; two give NaN, as in NumPy.

    Examples
    --------
    >>> [round(part.eval().item(), 6) for part in sign(pt.constant(3.0), pt.constant(-4.0))]
    [0.6, -0.8]
    """
    zero, one = constant(a, 0.0), constant(a, 1.0)
    size = hypotenuse.expression(a, b)
    divisor = pt.switch(pt.eq(size, zero), one, size)

    def part(x: TensorVariable, other: TensorVariable) -> TensorVariable:
        limit = pt.switch(pt.isinf(x), pt.sign(x), zero)
        limit = pt.switch(pt.isinf(x) & pt.isinf(other), constant(x, float("nan")), limit)
        return pt.switch(pt.isinf(size) | pt.eq(size, zero), limit, x / divisor)

    return part(a, b), part(b, a)


@of_complex(np.sqrt, "ComplexSqrt")
def sqrt(a: TensorVariable, b: TensorVariable) -> PairOfParts:
    """Return the square root with a real part that is not negative.

    Notes
    -----
    W. Kahan, "Branch cuts for complex elementary functions", in The State of the Art in Numerical
    Analysis (1987): the larger part is a root of a sum of positive numbers, here divided by the
    larger of ``|a|`` and ``|b|``, and the other part a quotient.

    Examples
    --------
    >>> [round(x.eval().item(), 6) for x in sqrt(pt.constant(-3.0), pt.constant(-4.0))]
    [1.0, -2.0]
    """
    zero, half, one = constant(a, 0.0), constant(a, 0.5), constant(a, 1.0)
    x, y, infinity = pt.abs(a), pt.abs(b), constant(a, math.inf)
    large = pt.maximum(x, y)
    divisor = pt.switch(pt.eq(large, zero), one, large)
    p = pt.switch(pt.isinf(a), one, x / divisor)
    q = pt.switch(pt.isinf(a), zero, y / divisor)
    root = pt.sqrt(large) * pt.sqrt(half * (p + pt.sqrt(p * p + q * q)))
    root = pt.switch(pt.isinf(a), infinity, root)
    other = half * (b / pt.switch(pt.eq(root, zero), one, root))
    is_left = a < zero
    real = pt.switch(is_left, pt.abs(other), root)
    imag = pt.switch(is_left, with_sign(root, b), other)
    return pt.switch(pt.isinf(b), infinity, real), pt.switch(pt.isinf(b), b, imag)


# Selections that keep the signs of zeros, which tell the sides of branch cuts apart.
#
# The Where of ONNX Runtime makes +0.0 of a -0.0 in its first branch, and its optimizer swaps the
# branches of a negated condition. The definitions here have the value that may be -0.0 second,
# behind a condition that is no negation, or give the sign to the selected size.


def sign_of(x: TensorVariable) -> TensorVariable:
    """Return -1 for negative numbers and -0.0, else 1.

    Examples
    --------
    >>> sign_of(pt.constant([-2.0, 3.0])).eval()
    array([-1.,  1.])
    """
    one = constant(x, 1.0)
    return pt.switch(x + one / x < constant(x, 0.0), -one, one)


def with_sign(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return a number that is not negative with the sign of another, which may be zero."""
    return x * sign_of(y)


def select(condition: TensorVariable, x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Select `x` where a condition holds and `y` elsewhere, keeping the signs of zeros."""
    size = pt.switch(condition, pt.abs(x), pt.abs(y))
    return size * pt.switch(condition, sign_of(x), sign_of(y))


def is_finite(x: TensorVariable) -> TensorVariable:
    """Return whether numbers are neither infinite nor NaN."""
    return ~(pt.isinf(x) | pt.isnan(x))


def _products(pairs: np.ndarray) -> np.ndarray:
    """Return the cumulative products, by NumPy."""
    numbers = np.ascontiguousarray(pairs, "float64").view("complex128")
    return numbers.cumprod(axis=-2).view("float64")


def _product(pairs: np.ndarray) -> np.ndarray:
    numbers = np.ascontiguousarray(pairs, "float64").view("complex128")
    return numbers.prod(axis=-2).view("float64")


@operation("(n,2)->(2)", reference=_product, name="ComplexProd")
def prod(pairs: TensorVariable) -> TensorVariable:
    """Return the products, of halves of the numbers until one is left.

    Examples
    --------
    >>> pairs = pt.matrix("pairs")
    >>> prod(pairs).eval({pairs: [[0.0, 1.0], [0.0, 1.0], [3.0, 0.0]]})
    array([-3.,  0.])
    """
    shape = (*(pairs.shape[axis] for axis in range(pairs.type.ndim - 2)), 1)
    one, zero = pt.ones(shape, pairs.type.dtype), pt.zeros(shape, pairs.type.dtype)
    start = pt.concatenate([pairs, paired(one, zero)], axis=-2)

    def step(numbers: TensorVariable) -> list[TensorVariable]:
        # One number is left over where their count is odd.
        half = numbers.shape[-2] // 2
        product = times(numbers[..., :half, :], numbers[..., half : 2 * half, :])
        return [pt.concatenate([product, numbers[..., 2 * half :, :]], axis=-2)]

    [last] = iterate(step, [start], n_steps=_bits(start.shape[-2]))
    return last[..., 0, :]


@operation("(n,2)->(n,2)", reference=_products, name="ComplexCumProd")
def cumprod(pairs: TensorVariable) -> TensorVariable:
    """Return the cumulative products, over twice as many numbers in each step.

    W. D. Hillis and G. L. Steele, "Data parallel algorithms", Commun. ACM 29 (1986).

    Examples
    --------
    >>> cumprod(pt.constant([[0.0, 1.0], [0.0, 1.0], [3.0, 0.0]])).eval()
    array([[ 0.,  1.],
           [-1.,  0.],
           [-3.,  0.]])
    """

    def step(numbers: TensorVariable, count: TensorVariable) -> list[TensorVariable]:
        later = times(numbers[..., count:, :], numbers[..., : numbers.shape[-2] - count, :])
        return [pt.concatenate([numbers[..., :count, :], later], axis=-2), 2 * count]

    start = [pairs, pt.constant(1, dtype="int64")]
    return iterate(step, start, n_steps=_bits(pairs.shape[-2]))[0]


def _bits(n: TensorVariable) -> TensorVariable:
    """Return the number of halvings that reduce n to one, but at least 1."""
    return pt.cast(pt.ceil(pt.log2(pt.cast(pt.maximum(n, 2), "float64"))), "int64")
