"""Score tables with exported files; `pytensor_onnx_scoring` is the same without PyTensor."""

from pytensor_onnx_scoring import Scorer, ScoringError

__all__ = ["Scorer", "ScoringError"]
