"""Rewrites of PyTensor that run under a condition, because they are wrong for some nodes."""

from pytensor_onnx.rewriting.guards import arithmetic, indexing, reductions
from pytensor_onnx.rewriting.guards.indexing import take_diagonals
from pytensor_onnx.rewriting.guards.reductions import minimum_of_integers
from pytensor_onnx.rewriting.guards.structured_products import multiply_by_structure

CONDITIONS = arithmetic.CONDITIONS | indexing.CONDITIONS | reductions.CONDITIONS

__all__ = ["CONDITIONS", "minimum_of_integers", "multiply_by_structure", "take_diagonals"]
