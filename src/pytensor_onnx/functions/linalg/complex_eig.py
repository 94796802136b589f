"""Eigenvalues and eigenvectors of complex matrices, by their real and imaginary parts."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.balancing import balance
from pytensor_onnx.functions.linalg.complex_schur import complex_schur
from pytensor_onnx.functions.linalg.eig import in_order, triangular_vectors
from pytensor_onnx.functions.linalg.matrix_batches import diagonals, unflat
from pytensor_onnx.functions.linalg.matrix_blocks import checked_size
from pytensor_onnx.functions.linalg.phases import real_at_largest
from pytensor_onnx.functions.linalg.scaling import power_of_two, scaled_parts
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import EigOfParts


@define(EigOfParts, own_signature)
def eig(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Parts of the eigenvalues and eigenvectors of complex matrices.

    Matrices are balanced and reduced to Schur form, as in LAPACK; eigenvectors of the triangular
    form are found by substitution. Eigenvalues have ascending real parts. Eigenvectors have the
    length one, and their largest element is real and positive, as in LAPACK: the first of several
    that are equal but for rounding. All results are NaN where an element is not finite.
    complex64 is computed in float64.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> w, v = pt.linalg.eig(z)
    >>> w, v = pytensor.function([z], [w, v], mode="ONNX")([[1j, 1.0], [0.0, 2.0]])
    >>> w.round(6)
    array([0.+1.j, 2.+0.j])
    """
    n = checked_size(real, "Last 2 dimensions of the array must be square")
    like, dtype = real, real.type.dtype
    (real, imag), size, scale, valid = scaled_parts(Parts(real, imag), n)
    d = balance(pt.sqrt(real * real + imag * imag), size)
    ratio = d[:, None, :] / d[:, :, None]
    balanced = Parts(real * ratio, imag * ratio)
    # Balancing makes matrices smaller, which may need another scale.
    more = power_of_two(pt.concatenate(list(balanced), axis=2), axis=(1, 2))
    t, z = complex_schur(balanced.scaled(more), size)
    vectors = z @ Parts(*triangular_vectors(t.real, t.imag, size))
    vectors = _turned(vectors.scaled(d[:, :, None]))
    values = [diagonals(x) / (scale * more)[:, :, 0] for x in t]
    (wr, wi), (vr, vi) = in_order(values, list(vectors), size)
    return [
        *(unflat((x[:, :n] + valid[:, :, 0]).astype(dtype), like, n) for x in (wr, wi)),
        *(unflat((x[:, :n, :n] + valid).astype(dtype), like, n, n) for x in (vr, vi)),
    ]


def _turned(v: Parts) -> Parts:
    """Return columns of length one, whose largest element is real and positive."""
    largest = pt.maximum(pt.abs(v.real), pt.abs(v.imag)).max(axis=1, keepdims=True)
    v = Parts(v.real / largest, v.imag / largest)
    square = v.real * v.real + v.imag * v.imag
    return real_at_largest(v.scaled(1.0 / pt.sqrt(square.sum(axis=1, keepdims=True))))
