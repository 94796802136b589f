"""Convolutions of signals in every dtype."""

from pytensor_onnx.functions.signal import convolution

__all__ = ["convolution"]
