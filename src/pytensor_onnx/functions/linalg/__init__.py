"""Linear algebra of any size, batched in one loop, from the operators of every runtime."""

from pytensor_onnx.functions.linalg import cholesky

__all__ = ["cholesky"]
