"""PyMC models as files: densities, transforms of their variables, predictors, samplers."""

from pytensor_onnx.pymc.density import export_logp
from pytensor_onnx.pymc.graphs import ModelGraph
from pytensor_onnx.pymc.model import export_model
from pytensor_onnx.pymc.names import parameter_names
from pytensor_onnx.pymc.predictor import export_predictor
from pytensor_onnx.pymc.sampler import export_sampler
from pytensor_onnx.pymc.transforms import export_transforms

__all__ = [
    "ModelGraph",
    "export_logp",
    "export_model",
    "export_predictor",
    "export_sampler",
    "export_transforms",
    "parameter_names",
]
