"""Rewrites of operations on sparse matrices to operations on the vectors of their entries.

Entries are gathered from dense operands and scattered into dense results; no matrix becomes dense
that is not dense in PyTensor.
"""

from pytensor_onnx.rewriting.sparse_matrices import (  # noqa: F401  (registers the rewrites)
    comparisons,
    complex_numbers,
    conversions,
    elementwise,
    indexing,
    products,
    stacking,
    structure,
    sums,
)
