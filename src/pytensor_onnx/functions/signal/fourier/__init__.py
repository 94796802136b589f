"""Fourier transforms of any size: the operator of ONNX, matrices of small sizes, convolutions."""
