"""Ops of neural networks: a defining PyTensor expression and ONNX operators for each."""
