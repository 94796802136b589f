"""Linear algebra, diagonals and triangles."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import like, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT


@onnx_import("Det")
def determinant(x: TensorVariable) -> TensorVariable:
    """Return the determinants of matrices."""
    return pt.linalg.det(x)


@onnx_import("Inverse", domain=MICROSOFT)
def inverse(x: TensorVariable) -> TensorVariable:
    """Return the inverses of matrices."""
    return pt.linalg.inv(x)


@onnx_import("Trilu")
@onnx_import("Trilu", domain=MICROSOFT)
def triangle(
    x: TensorVariable, k: TensorVariable | None = None, *, upper: int = 1
) -> TensorVariable:
    """Keep the elements on one side of a diagonal."""
    rows, columns = pt.arange(size(x, -2))[:, None], pt.arange(size(x, -1))[None, :]
    offset = columns - rows if k is None else columns - rows - k.reshape(()).astype("int64")
    return pt.switch(pt.ge(offset, 0) if upper else pt.le(offset, 0), x, like(x, 0))
