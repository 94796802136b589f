"""Linear algebra of any size, batched in one loop, from the operators of every runtime."""

from pytensor_onnx.functions.linalg import (
    bidiagonal,
    block_diagonal,
    cholesky,
    eigh,
    elimination,
    expm,
    least_squares,
    lu,
    qr,
    reductions,
    reflectors,
    secular,
    solvers,
    svd,
    tridiagonal,
)

__all__ = [
    "bidiagonal",
    "block_diagonal",
    "cholesky",
    "eigh",
    "elimination",
    "expm",
    "least_squares",
    "lu",
    "qr",
    "reductions",
    "reflectors",
    "secular",
    "solvers",
    "svd",
    "tridiagonal",
]
