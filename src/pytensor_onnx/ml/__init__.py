"""Models of pytensor-ml as graphs to export."""

from pytensor_onnx.ml.decoding import DecodingStep, decoding_step

__all__ = ["DecodingStep", "decoding_step"]
