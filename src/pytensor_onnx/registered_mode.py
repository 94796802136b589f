"""Register mode ``"ONNX"`` and the rewrites of all graphs with PyTensor, by being imported."""

from pytensor_onnx.ml import layer_rewrites as _rewrites_of_layers  # noqa: F401
from pytensor_onnx.pymc import pymc_rewrites as _rewrites_of_pymc  # noqa: F401
from pytensor_onnx.running import linker as _linker  # noqa: F401
