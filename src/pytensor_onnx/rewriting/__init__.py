"""The PyTensor rewrites that prepare a graph for conversion, and those of our own."""

from pytensor_onnx.rewriting import activations as activations  # registers its rewrite
from pytensor_onnx.rewriting import attention_layers as attention_layers  # registers its rewrite
from pytensor_onnx.rewriting import batches as batches  # registers its rewrite
from pytensor_onnx.rewriting import broadcast_sizes as broadcast_sizes  # registers its rewrite
from pytensor_onnx.rewriting import broadcasting as broadcasting  # registers its rewrite
from pytensor_onnx.rewriting import canonical_forms as canonical_forms  # registers its rewrites
from pytensor_onnx.rewriting import choices as choices  # registers its rewrite
from pytensor_onnx.rewriting import constants as constants  # registers its rewrite
from pytensor_onnx.rewriting import cumulative_types as cumulative_types  # registers its rewrite
from pytensor_onnx.rewriting import empty_reshapes as empty_reshapes  # registers its rewrite
from pytensor_onnx.rewriting import generators as generators  # registers its rewrite
from pytensor_onnx.rewriting import (
    guarded_arithmetic as guarded_arithmetic,
)  # registers its rewrites
from pytensor_onnx.rewriting import guarded_indexing as guarded_indexing  # registers its rewrites
from pytensor_onnx.rewriting import (
    guarded_reductions as guarded_reductions,
)  # registers its rewrites
from pytensor_onnx.rewriting import indexing as indexing  # registers its rewrite
from pytensor_onnx.rewriting import inner_loops as inner_loops  # registers its rewrite
from pytensor_onnx.rewriting import keep_origins as keep_origins  # registers its rewrite
from pytensor_onnx.rewriting import last_steps as last_steps  # registers its rewrite
from pytensor_onnx.rewriting import layers as layers  # registers its rewrite
from pytensor_onnx.rewriting import loop_lengths as loop_lengths  # registers its rewrite
from pytensor_onnx.rewriting import loop_products as loop_products  # registers its rewrite
from pytensor_onnx.rewriting import loop_reads as loop_reads  # registers its rewrite
from pytensor_onnx.rewriting import loops as loops  # registers its rewrite
from pytensor_onnx.rewriting import narrowing as narrowing  # registers its rewrite
from pytensor_onnx.rewriting import norm_layers as norm_layers  # registers its rewrite
from pytensor_onnx.rewriting import pad_gradients as pad_gradients  # registers its rewrite
from pytensor_onnx.rewriting import partial_sums as partial_sums  # registers its rewrite
from pytensor_onnx.rewriting import products as products  # registers its rewrite
from pytensor_onnx.rewriting import size_inference as size_inference  # registers its rewrite
from pytensor_onnx.rewriting import sizes as sizes
from pytensor_onnx.rewriting import spatial_layers as spatial_layers  # registers its rewrite
from pytensor_onnx.rewriting import structured_products as structured_products  # registers its own
from pytensor_onnx.rewriting import upsampling as upsampling  # registers its rewrite
from pytensor_onnx.rewriting import whole_quotients as whole_quotients  # registers its rewrite
from pytensor_onnx.rewriting import widening as widening  # registers its rewrite
from pytensor_onnx.rewriting.query import ONNX_QUERY, register_onnx, rewrite_for_onnx

__all__ = ["ONNX_QUERY", "register_onnx", "rewrite_for_onnx"]
