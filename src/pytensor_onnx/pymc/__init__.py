"""PyMC models as files: densities, transforms of their variables, predictors, samplers."""

from typing import TYPE_CHECKING

from pytensor_onnx.late_names import late_names

if TYPE_CHECKING:
    from pytensor_onnx.pymc.advi import export_advi as export_advi
    from pytensor_onnx.pymc.c_density import export_c_density as export_c_density
    from pytensor_onnx.pymc.calibration import (
        Calibration as Calibration,
        calibrate as calibrate,
    )
    from pytensor_onnx.pymc.composed_step import compose_step as compose_step
    from pytensor_onnx.pymc.density import (
        export_logp as export_logp,
        export_transforms as export_transforms,
    )
    from pytensor_onnx.pymc.laplace import export_laplace as export_laplace
    from pytensor_onnx.pymc.model_graphs import ModelGraph as ModelGraph
    from pytensor_onnx.pymc.model_sampling import sample as sample
    from pytensor_onnx.pymc.nutpie import nutpie_model as nutpie_model
    from pytensor_onnx.pymc.pathfinder import export_pathfinder as export_pathfinder
    from pytensor_onnx.pymc.predictions import predict as predict
    from pytensor_onnx.pymc.predictor import export_predictor as export_predictor
    from pytensor_onnx.pymc.provenance import parameter_names as parameter_names
    from pytensor_onnx.pymc.sampler import export_sampler as export_sampler
    from pytensor_onnx.pymc.smc import export_smc as export_smc
    from pytensor_onnx.pymc.step import export_step as export_step
    from pytensor_onnx.pymc.trees import to_datatree as to_datatree
    from pytensor_onnx.pymc.whole_model import export_model as export_model

__getattr__, __all__ = late_names(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
