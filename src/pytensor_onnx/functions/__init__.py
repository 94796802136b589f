"""Definitions of the operations that ONNX lacks, as PyTensor expressions."""
