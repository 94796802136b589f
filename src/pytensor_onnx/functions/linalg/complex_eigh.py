"""Eigenvalues and eigenvectors of Hermitian matrices, by their real and imaginary parts."""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.complex.complex_arithmetic import Parts
from pytensor_onnx.functions.linalg.complex_reflectors import (
    doubled_matrix,
    reflected_columns,
    reflected_rows,
    reflection,
    unit,
)
from pytensor_onnx.functions.linalg.eigh import symmetric_eigen
from pytensor_onnx.functions.linalg.matrix_batches import unflat
from pytensor_onnx.functions.linalg.matrix_blocks import checked_size
from pytensor_onnx.functions.linalg.phases import real_at_largest
from pytensor_onnx.functions.linalg.scaling import scaled_parts
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.linalg.complex_matrices import EighOfParts


@define(EighOfParts, own_signature)
def eigh(real: TensorVariable, imag: TensorVariable) -> list[TensorVariable]:
    """Eigenvalues of Hermitian matrices in ascending order, and parts of orthonormal eigenvectors.

    Matrices are reduced to real tridiagonal ones by reflections (G. H. Golub and C. F. Van Loan,
    Matrix Computations, 4th ed., section 8.3.1), whose eigenvectors those of `eigh` are. The
    errors are those of LAPACK, relative to the norm of the matrix. The largest element of an
    eigenvector is real and positive; those of an eigenvalue that is repeated are any basis. All
    results are NaN where an element is not finite. complex64 is computed in float64.

    Examples
    --------
    >>> import pytensor
    >>> z = pt.zmatrix("z")
    >>> values = pytensor.function([z], pt.linalg.eigh(z)[0], mode="ONNX")
    >>> values([[2.0, -1j], [1j, 2.0]]).round(6)
    array([1., 3.])
    """
    n = checked_size(real, "expected square matrix")
    like, dtype = real, real.type.dtype
    (real, imag), size, scale, valid = scaled_parts(Parts(real, imag), n)

    def step(k: TensorVariable, a: TensorVariable, q: TensorVariable) -> list[TensorVariable]:
        n = q.shape[1] // 2
        by = reflection(a[:, :n, k], a[:, n:, k], k + 1)
        return [reflected_columns(reflected_rows(a, by), by), reflected_columns(q, by)]

    a, q = iterate(
        step,
        [doubled_matrix(real, imag), unit(real.shape[0], size)],
        n_steps=size,
        sequences=[pt.arange(size)],
    )
    row, column = pt.arange(size)[:, None], pt.arange(size)
    is_near = pt.eq(row, column) | pt.eq(row, column + 1)
    tridiagonal = pt.switch(is_near, a[:, :size, :size], 0.0)
    values, vectors = symmetric_eigen(tridiagonal, size, lower=True)
    parts = (pt.matmul(x[:, :, :size], vectors.mT) for x in (q[:, :size], q[:, size:]))
    return [
        unflat((values[:, :n] / scale[:, :, 0] + valid[:, :, 0]).astype(dtype), like, n),
        *(
            unflat((x[:, :n, :n] + valid).astype(dtype), like, n, n)
            for x in real_at_largest(Parts(*parts))
        ),
    ]
