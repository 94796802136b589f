"""Rewrites of PyTensor that run under a condition: elsewhere they are wrong, slow or endless."""

from pytensor_onnx.rewriting.elementwise import arithmetic_guards
from pytensor_onnx.rewriting.elementwise.arithmetic_guards import zero_quotient
from pytensor_onnx.rewriting.engine import batch_guards
from pytensor_onnx.rewriting.engine.batch_guards import drop_batches, multiply_matrices
from pytensor_onnx.rewriting.indexing import index_guards
from pytensor_onnx.rewriting.indexing.index_guards import take_diagonals
from pytensor_onnx.rewriting.linalg.structured_products import multiply_by_structure
from pytensor_onnx.rewriting.linalg.symmetric_transposes import drop_symmetric_transpose
from pytensor_onnx.rewriting.reductions import reduction_guards
from pytensor_onnx.rewriting.reductions.reduction_guards import minimum_of_integers

GUARDS = (
    *arithmetic_guards.GUARDS,
    *batch_guards.GUARDS,
    *index_guards.GUARDS,
    *reduction_guards.GUARDS,
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
