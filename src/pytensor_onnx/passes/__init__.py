"""Passes over onnx_ir models; they know nothing of PyTensor.

A pass that improves a model is a function of the model, which it changes in place, and of its scope
(names, constants and functions). It returns how many places it changed.
"""

from pytensor_onnx.passes.drop_leading_axes import drop_leading_axes
from pytensor_onnx.passes.fold_into_conv import fold_into_conv
from pytensor_onnx.passes.fuse_gemm import fuse_gemm
from pytensor_onnx.passes.fuse_relu_clip import fuse_relu_clip
from pytensor_onnx.passes.inline_functions import inline_functions
from pytensor_onnx.passes.keep_apart import keep_apart
from pytensor_onnx.passes.keep_reduced_axes import keep_reduced_axes
from pytensor_onnx.passes.layout import move_transposes
from pytensor_onnx.passes.legalise import legalise
from pytensor_onnx.passes.merge_equal import merge_equal
from pytensor_onnx.passes.share_transposed import share_transposed
from pytensor_onnx.passes.vector_products import vector_products

__all__ = [
    "drop_leading_axes",
    "fold_into_conv",
    "fuse_gemm",
    "fuse_relu_clip",
    "inline_functions",
    "keep_apart",
    "keep_reduced_axes",
    "legalise",
    "merge_equal",
    "move_transposes",
    "share_transposed",
    "vector_products",
]
