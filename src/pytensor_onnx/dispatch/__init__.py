"""Lowerings of PyTensor Ops to ONNX, one module for each op family."""

from pytensor_onnx.dispatch import (  # noqa: F401  (registers the lowerings)
    blockwise,
    comparison,
    element_count,
    elemwise,
    graphs,
    inc_subtensor,
    late,
    math,
    raise_op,
    scalar,
    shape,
    subtensor,
    tensor_basic,
)
from pytensor_onnx.dispatch.basic import onnx_funcify

__all__ = ["onnx_funcify"]
