"""Lowerings of PyTensor Ops to ONNX, one module for each op family."""

from pytensor_onnx.dispatch import (  # noqa: F401  (registers the lowerings)
    advanced_inc_subtensor,
    advanced_subtensor,
    blockwise,
    conditional,
    cumulative,
    diagonal,
    elemwise,
    extra_ops,
    math,
    multi_index,
    nonzero,
    pad,
    random,
    refused,
    scalar,
    scalar_loop,
    scan,
    search,
    selection,
    shape,
    sort,
    subtensor,
    tensor_basic,
)
from pytensor_onnx.dispatch.basic import onnx_funcify

__all__ = ["onnx_funcify"]
