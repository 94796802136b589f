"""Linear algebra of any size, batched in one loop, from the operators of every runtime."""

from pytensor_onnx.functions.linalg import cholesky, solvers

__all__ = ["cholesky", "solvers"]
