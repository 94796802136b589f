"""Rewrites of PyTensor that run under a condition: elsewhere they are wrong, slow or endless."""

from pytensor_onnx.rewriting.guards import arithmetic, batches, indexing, reductions
from pytensor_onnx.rewriting.guards.arithmetic import zero_quotient
from pytensor_onnx.rewriting.guards.batches import drop_batches, multiply_matrices
from pytensor_onnx.rewriting.guards.indexing import take_diagonals
from pytensor_onnx.rewriting.guards.reductions import minimum_of_integers
from pytensor_onnx.rewriting.guards.structured_products import multiply_by_structure
from pytensor_onnx.rewriting.guards.symmetric_transposes import drop_symmetric_transpose

GUARDS = (
    *arithmetic.GUARDS,
    *batches.GUARDS,
    *indexing.GUARDS,
    *reductions.GUARDS,
)
"""Rewrites of PyTensor with the condition under which each is correct."""

__all__ = [
    "GUARDS",
    "drop_batches",
    "drop_symmetric_transpose",
    "minimum_of_integers",
    "multiply_by_structure",
    "multiply_matrices",
    "take_diagonals",
    "zero_quotient",
]
