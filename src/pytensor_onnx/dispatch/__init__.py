"""Lowerings of PyTensor Ops to ONNX, one module for each op family."""

from pytensor_onnx.dispatch import (  # noqa: F401  (registers the lowerings)
    advanced_inc_subtensor,
    advanced_subtensor,
    blockwise,
    comparison,
    complex_numbers,
    conditional,
    cumulative,
    diagonal,
    elemwise,
    encoded,
    extra_ops,
    graphs,
    inc_subtensor,
    loop_checks,
    math,
    multi_index,
    networks,
    nonzero,
    pad,
    pivots,
    raise_op,
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
