"""Score tables with an ONNX file, on ONNX Runtime and NumPy alone.

The package stands beside `pytensor_onnx`, so that a worker needs no PyTensor.
"""

from pytensor_onnx_scoring.problems import ScoringError
from pytensor_onnx_scoring.scorer import Scorer

__all__ = ["Scorer", "ScoringError"]
