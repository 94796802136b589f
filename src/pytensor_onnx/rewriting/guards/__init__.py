"""Rewrites of PyTensor that run under a condition: elsewhere they are wrong, slow or endless."""

from pytensor_onnx.rewriting.guards import arithmetic, batches, indexing, reductions, thin_products
from pytensor_onnx.rewriting.guards.arithmetic import zero_quotient
from pytensor_onnx.rewriting.guards.batches import drop_batches, multiply_matrices
from pytensor_onnx.rewriting.guards.indexing import take_diagonals
from pytensor_onnx.rewriting.guards.reductions import minimum_of_integers
from pytensor_onnx.rewriting.guards.structured_products import MultiplyByStructure
from pytensor_onnx.rewriting.guards.symmetric_transposes import drop_symmetric_transpose

CONDITIONS = (
    arithmetic.CONDITIONS
    | batches.CONDITIONS
    | indexing.CONDITIONS
    | reductions.CONDITIONS
    | thin_products.CONDITIONS
)

__all__ = [
    "CONDITIONS",
    "MultiplyByStructure",
    "drop_batches",
    "drop_symmetric_transpose",
    "minimum_of_integers",
    "multiply_matrices",
    "take_diagonals",
    "zero_quotient",
]
