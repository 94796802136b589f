"""ONNX models as PyTensor graphs."""
