"""Arithmetic of complex arrays by their real and imaginary parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


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
