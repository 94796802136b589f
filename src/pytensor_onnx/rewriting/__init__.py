"""Rewrites of PyTensor graphs that prepare them for conversion to ONNX."""

from pytensor_onnx.encodings.registry import registered
from pytensor_onnx.encodings.sparse_matrices import SparseMatrices
from pytensor_onnx.rewriting import (
    complex_numbers as complex_numbers,  # registers its rewrites
    generators as generators,  # registers its rewrites
    order as order,
)
from pytensor_onnx.rewriting.query import ONNX_QUERY, register_onnx, rewrite_for_onnx, stabilised

# PyTensor's module of sparse matrices loads SciPy's.
registered(SparseMatrices).has_rewrites_in("pytensor_onnx.rewriting.sparse_matrices")

__all__ = ["ONNX_QUERY", "register_onnx", "rewrite_for_onnx", "stabilised"]
