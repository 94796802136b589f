"""Rewrites of PyTensor graphs that prepare them for conversion to ONNX."""

from pytensor_onnx.encodings.complex_numbers import ComplexNumbers
from pytensor_onnx.encodings.generators import Generators
from pytensor_onnx.encodings.registry import registered
from pytensor_onnx.encodings.sparse_matrices import SparseMatrices
from pytensor_onnx.rewriting.query import order as order
from pytensor_onnx.rewriting.query.registration import (
    ONNX_QUERY,
    register_onnx,
    rewrite_for_onnx,
    stabilised,
)

for encoding, module in (
    (ComplexNumbers, "complex"),
    (Generators, "random"),
    (SparseMatrices, "sparse"),
):
    registered(encoding).has_rewrites_in(f"{__name__}.{module}")

__all__ = ["ONNX_QUERY", "register_onnx", "rewrite_for_onnx", "stabilised"]
