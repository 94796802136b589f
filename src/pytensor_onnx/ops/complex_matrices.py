"""Factorisations of complex matrices, as real and imaginary parts."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

_COMPLEX = {"float32": "complex64", "float64": "complex128"}


class OfParts(Op):
    """An Op of PyTensor on a complex matrix, by the parts of the matrix and of the results.

    A complex result becomes two, its real and its imaginary part.

    Attributes
    ----------
    core
        The Op, whose attributes this one has too.
    """

    __props__ = ("core",)

    def __init__(self, core: Op) -> None:
        self.core = core
        for name in core.__props__:
            setattr(self, name, getattr(core, name))
        made = core.make_node(tensor(dtype="complex128", shape=(None, None)))
        operand, results = core.gufunc_signature.split("->")
        axes = [part if part.endswith(")") else f"{part})" for part in results.split("),")]
        parts = [
            part
            for part, output in zip(axes, made.outputs, strict=True)
            for _ in range(_count(output))
        ]
        self.gufunc_signature = f"{operand},{operand}->{','.join(parts)}"

    def make_node(self, real: TensorVariable, imag: TensorVariable) -> Apply:
        """Return the application to the parts of a matrix."""
        dtype = real.type.dtype
        made = self.core.make_node(tensor(dtype=_COMPLEX[dtype], shape=real.type.shape))
        outputs = []
        for output in made.outputs:
            kind = dtype if np.dtype(output.type.dtype).kind in "cf" else output.type.dtype
            outputs += [tensor(dtype=kind, shape=output.type.shape) for _ in range(_count(output))]
        return Apply(self, [real, imag], outputs)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the results by PyTensor."""
        real, imag = inputs
        z = (real + 1j * imag).astype(_COMPLEX[real.dtype.name])
        made = self.core.make_node(tensor(dtype=z.dtype.name, shape=(None, None)))
        found: list[list[Any]] = [[None] for _ in made.outputs]
        self.core.perform(made, [z], found)
        parts = []
        for output, (value,) in zip(made.outputs, found, strict=True):
            parts += [value.real, value.imag] if _count(output) == 2 else [value]
        for storage, output, part in zip(output_storage, node.outputs, parts, strict=True):
            storage[0] = np.ascontiguousarray(part, output.type.dtype).reshape(np.shape(part))


def _count(output: TensorVariable) -> int:
    return 2 if output.type.dtype.startswith("complex") else 1


class CholeskyOfParts(OfParts):
    """Cholesky factors of Hermitian matrices."""


class LUOfParts(OfParts):
    """LU factors of complex matrices, and their permutations."""


class LUFactorOfParts(OfParts):
    """LU factors of complex matrices, and their exchanges of rows."""


class DetOfParts(OfParts):
    """Determinants of complex matrices."""


class SLogDetOfParts(OfParts):
    """Phases of determinants, and logarithms of their magnitudes."""


class QROfParts(OfParts):
    """QR factors of complex matrices."""


class SVDOfParts(OfParts):
    """Singular values and vectors of complex matrices."""


class SchurOfParts(OfParts):
    """Schur forms of complex matrices."""


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
        values, vectors = values[order], vectors[:, order]
        squares = vectors.real**2 + vectors.imag**2
        is_largest = squares >= NEARLY_LARGEST * squares.max(axis=0, initial=0)
        for column, place in zip(vectors.T, is_largest.T, strict=True):
            first = column[place][0]
            column[:] = column * (first.conj() / np.abs(first))
        parts = (values.real, values.imag, vectors.real, vectors.imag)
        for storage, part in zip(output_storage, parts, strict=True):
            storage[0] = np.ascontiguousarray(part, real.dtype)
