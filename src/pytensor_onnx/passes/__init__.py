"""Passes over onnx_ir models; they know nothing of PyTensor.

A pass that improves a model is a function of the model, which it changes in place, and of its scope
(names, constants and functions). It returns how many places it changed.
"""

from pytensor_onnx.passes.fusions.drop_leading_axes import drop_leading_axes
from pytensor_onnx.passes.fusions.fold_into_conv import fold_into_conv
from pytensor_onnx.passes.fusions.fuse_gemm import fuse_gemm
from pytensor_onnx.passes.fusions.fuse_relu_clip import fuse_relu_clip
from pytensor_onnx.passes.fusions.halve_arguments import halve_arguments
from pytensor_onnx.passes.fusions.join_vectors import join_vectors
from pytensor_onnx.passes.fusions.keep_reduced_axes import keep_reduced_axes
from pytensor_onnx.passes.fusions.merge_equal import merge_equal
from pytensor_onnx.passes.fusions.merge_short_images import merge_short_images
from pytensor_onnx.passes.fusions.read_sizes_late import read_sizes_late
from pytensor_onnx.passes.fusions.results_after_loops import results_after_loops
from pytensor_onnx.passes.fusions.row_states import row_states
from pytensor_onnx.passes.fusions.scale_gemms import scale_gemms
from pytensor_onnx.passes.fusions.scale_products import scale_products
from pytensor_onnx.passes.fusions.share_transposed import share_transposed
from pytensor_onnx.passes.fusions.split_vectors import split_vectors
from pytensor_onnx.passes.fusions.take_means import take_means
from pytensor_onnx.passes.fusions.vector_products import vector_products
from pytensor_onnx.passes.inline_functions import inline_functions
from pytensor_onnx.passes.layout.broadcast_numbers import broadcast_numbers
from pytensor_onnx.passes.layout.move_transposes import move_transposes
from pytensor_onnx.passes.layout.split_transposes import split_transposes
from pytensor_onnx.passes.legaliser.legalise import legalise
from pytensor_onnx.passes.narrowing.narrow_indices import narrow_indices
from pytensor_onnx.passes.optimizer.keep_apart import keep_apart
from pytensor_onnx.passes.placement import describe_placement
from pytensor_onnx.passes.spell_sizes import spell_sizes

__all__ = [
    "broadcast_numbers",
    "describe_placement",
    "drop_leading_axes",
    "fold_into_conv",
    "fuse_gemm",
    "fuse_relu_clip",
    "halve_arguments",
    "inline_functions",
    "join_vectors",
    "keep_apart",
    "keep_reduced_axes",
    "legalise",
    "merge_equal",
    "merge_short_images",
    "move_transposes",
    "narrow_indices",
    "read_sizes_late",
    "results_after_loops",
    "row_states",
    "scale_gemms",
    "scale_products",
    "share_transposed",
    "spell_sizes",
    "split_transposes",
    "split_vectors",
    "take_means",
    "vector_products",
]
