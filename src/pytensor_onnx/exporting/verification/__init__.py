"""Comparison of models with PyTensor: samples, references, rounding, the first wrong node."""
