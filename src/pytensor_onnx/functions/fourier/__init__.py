"""Fourier transforms of any size: the operator of ONNX, matrices of small sizes, convolutions."""

from pytensor_onnx.functions.fourier import transform

__all__ = ["transform"]
