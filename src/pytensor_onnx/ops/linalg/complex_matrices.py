"""Factorisations of complex matrices, as real and imaginary parts."""

from collections.abc import Sequence
from types import new_class
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar import upcast
from pytensor.tensor.linalg.decomposition.eigen import Eig
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor
from pytensor.tensor.linalg.decomposition.qr import QR
from pytensor.tensor.linalg.decomposition.schur import QZ, Schur
from pytensor.tensor.linalg.decomposition.svd import SVD
from pytensor.tensor.linalg.solvers.linear_control import TRSYL
from pytensor.tensor.linalg.solvers.tridiagonal import LUFactorTridiagonal, SolveLUFactorTridiagonal
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

_COMPLEX = {"float32": "complex64", "float64": "complex128"}


class OfParts(Op):
    """An Op of PyTensor on complex arrays, by the parts of the operands and of the results.

    A complex operand or result becomes two, its real and its imaginary part.

    Attributes
    ----------
    core
        The Op, whose attributes this one has too.
    integers
        Places of operands that are not complex.
    """

    __props__ = ("core",)
    integers: tuple[int, ...] = ()

    def __init__(self, core: Op) -> None:
        self.core = core
        for name in core.__props__:
            setattr(self, name, getattr(core, name))
        operands, results = core.gufunc_signature.split("->")
        given, axes = (
            [part if part.endswith(")") else f"{part})" for part in side.split("),")]
            for side in (operands, results)
        )
        self._counts = [1 if i in self.integers else 2 for i in range(len(given))]
        parts = [
            part for part, count in zip(given, self._counts, strict=True) for _ in range(count)
        ]
        ranks = [part.count(",") + 1 for part in given]
        made = core.make_node(*self._operands("float64", [(None,) * rank for rank in ranks]))
        found = [
            part
            for part, output in zip(axes, made.outputs, strict=True)
            for _ in range(_count(output))
        ]
        self.gufunc_signature = f"{','.join(parts)}->{','.join(found)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return of_parts, (self.core,)

    def make_node(self, *parts: TensorVariable) -> Apply:
        """Return the application to the parts of operands."""
        dtype = parts[0].type.dtype
        shapes = [group[0].type.shape for group in self._grouped(parts)]
        made = self.core.make_node(*self._operands(dtype, shapes))
        outputs = []
        for output in made.outputs:
            kind = dtype if np.dtype(output.type.dtype).kind in "cf" else output.type.dtype
            outputs += [tensor(dtype=kind, shape=output.type.shape) for _ in range(_count(output))]
        return Apply(self, list(parts), outputs)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the results by PyTensor."""
        dtype = inputs[0].dtype.name
        values = [
            (group[0] + 1j * group[1]).astype(_COMPLEX[dtype]) if len(group) == 2 else group[0]
            for group in self._grouped(inputs)
        ]
        made = self.core.make_node(*self._operands(dtype, [(None,) * x.ndim for x in values]))
        found: list[list[Any]] = [[None] for _ in made.outputs]
        self.core.perform(made, values, found)
        parts = []
        for output, (value,) in zip(made.outputs, found, strict=True):
            parts += [value.real, value.imag] if _count(output) == 2 else [value]
        for storage, output, part in zip(output_storage, node.outputs, parts, strict=True):
            storage[0] = np.ascontiguousarray(part, output.type.dtype).reshape(np.shape(part))

    def _grouped(self, parts: Sequence[Any]) -> list[list[Any]]:
        """Return the parts of each operand."""
        rest = iter(parts)
        return [[next(rest) for _ in range(count)] for count in self._counts]

    def _operands(self, dtype: str, shapes: Sequence[Any]) -> list[TensorVariable]:
        """Return operands of the Op for parts of a dtype."""
        kinds = ["int32" if i in self.integers else _COMPLEX[dtype] for i in range(len(shapes))]
        return [tensor(dtype=kind, shape=s) for kind, s in zip(kinds, shapes, strict=True)]


def _count(output: TensorVariable) -> int:
    return 2 if output.type.dtype.startswith("complex") else 1


NEARLY_LARGEST = 1 - 1e-8
"""Squares of elements that count as equal to the largest one, relative to it."""


class EigOfParts(OfParts):
    """Eigenvalues and eigenvectors of complex matrices.

    Eigenvalues have ascending real parts. Eigenvectors have the length one, and the first of their
    largest elements is real and positive.
    """

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the parts by NumPy."""
        real, imag = inputs
        values, vectors = np.linalg.eig((real + 1j * imag).astype(_COMPLEX[real.dtype.name]))
        order = np.argsort(values.real, kind="stable")
        values, vectors = values[order], _real_at_largest(vectors[:, order])
        parts = (values.real, values.imag, vectors.real, vectors.imag)
        for storage, part in zip(output_storage, parts, strict=True):
            storage[0] = np.ascontiguousarray(part, real.dtype)


def _real_at_largest(vectors: np.ndarray) -> np.ndarray:
    """Return columns turned so that their largest element is real and positive."""
    squares = vectors.real**2 + vectors.imag**2
    is_largest = squares >= NEARLY_LARGEST * squares.max(axis=0, initial=0)
    firsts = np.take_along_axis(vectors, is_largest.argmax(axis=0)[None], axis=0)
    return np.asarray(vectors * (firsts.conj() / np.abs(firsts)))


class HermitianEigh(Op):
    """Eigenvalues and eigenvectors of Hermitian matrices, of the pair where a second one is given.

    PyTensor's Op has real eigenvectors, whatever the dtype of the matrices. The largest element of
    an eigenvector is real and positive here.

    Attributes
    ----------
    lower
        Whether the lower or the upper triangle is read.
    """

    __props__ = ("lower",)
    gufunc_signature = "(m,m)->(m),(m,m)"

    def __init__(self, lower: bool = True) -> None:
        self.lower = lower

    def make_node(self, a: TensorVariable, b: TensorVariable | None = None) -> Apply:
        """Return the application, with eigenvectors of the dtype of the matrices."""
        inputs = [a] if b is None else [a, b]
        dtype = upcast(*(x.type.dtype for x in inputs), "complex64")
        real = "float64" if dtype == "complex128" else "float32"
        n = a.type.shape[0]
        return Apply(
            self, inputs, [tensor(dtype=real, shape=(n,)), tensor(dtype=dtype, shape=(n, n))]
        )

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute both by SciPy."""
        import scipy.linalg  # type: ignore[import-untyped]

        values, vectors = scipy.linalg.eigh(*inputs, lower=self.lower)
        if vectors.size:
            vectors = _real_at_largest(vectors)
        for storage, output, x in zip(output_storage, node.outputs, (values, vectors), strict=True):
            storage[0] = np.ascontiguousarray(x, output.type.dtype)


class ComplexLstsq(Op):
    """Least squares of complex matrices; PyTensor's Op declares the solutions real."""

    __props__ = ()

    def make_node(self, x: TensorVariable, y: TensorVariable, rcond: TensorVariable) -> Apply:
        """Return the application to matrices, with results of their dtype."""
        dtype = upcast(x.type.dtype, y.type.dtype, "complex64")
        real = "float64" if dtype == "complex128" else "float32"
        types = [(dtype, (None, None)), (real, (None,)), ("int32", ()), (real, (None,))]
        return Apply(self, [x, y, rcond], [tensor(dtype=d, shape=shape) for d, shape in types])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute all by NumPy."""
        found = np.linalg.lstsq(*inputs)
        for storage, output, x in zip(output_storage, node.outputs, found, strict=True):
            storage[0] = np.asarray(x, output.type.dtype)


class EighOfParts(OfParts):
    """Eigenvalues and eigenvectors of Hermitian matrices, both of whose triangles are given."""


class SylvesterOfParts(OfParts):
    """Solutions of Sylvester's equation of complex triangular matrices."""

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the parts by PyTensor, which has no result for empty matrices."""
        if all(x.size for x in inputs):
            super().perform(node, inputs, output_storage)
        else:
            for storage in output_storage:
                storage[0] = np.zeros_like(inputs[4])


class SolveLUFactorTridiagonalOfParts(OfParts):
    """Solutions of systems with LU factors of complex tridiagonal matrices."""

    integers = (4,)


OF_PARTS: dict[type[Op], type[OfParts]] = {
    Eig: EigOfParts,
    HermitianEigh: EighOfParts,
    SolveLUFactorTridiagonal: SolveLUFactorTridiagonalOfParts,
    TRSYL: SylvesterOfParts,
}
"""Classes of the Ops on parts, for Ops on complex matrices."""

for _core in (Det, LU, LUFactor, LUFactorTridiagonal, QR, QZ, Schur, SLogDet, SVD):
    OF_PARTS[_core] = new_class(
        f"{_core.__name__}OfParts", (OfParts,), exec_body=lambda x: x.update(__module__=__name__)
    )


def of_parts(core: Op) -> OfParts:
    """Return the Op on the parts of complex matrices, for an Op on these."""
    return OF_PARTS[type(core)](core)
