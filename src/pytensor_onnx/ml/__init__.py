"""Export of pytensor-ml models: prediction graphs, decoding steps, and operators for layers."""

from pytensor_onnx.ml.model import DecodingStep, decoding_step

__all__ = ["DecodingStep", "decoding_step"]
