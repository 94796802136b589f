"""Rewrites of operations on sparse matrices to operations on the vectors of their entries.

Entries are gathered from dense operands and scattered into dense results; no matrix becomes dense
that is not dense in PyTensor.
"""
