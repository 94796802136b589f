"""Densities of models as people write them are those of PyMC."""

import numpy as np
import pytensor
import pytest

pm = pytest.importorskip("pymc")

from pytensor_onnx.pymc import ModelGraph, export_logp, export_transforms  # noqa: E402
from tests.conftest import sweep_rest  # noqa: E402
from tests.realworld.models import MODELS, TELLING  # noqa: E402

UNDIFFERENTIABLE = {"directions"}
# Densities of telling models are compared in mode ONNX, by `tests/realworld/test_pymc_models.py`.
EXPORTED = MODELS.keys() - set(TELLING) | {"eight_schools", "filter_by_scan", "directions"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sweep_rest(MODELS, EXPORTED))
def test_densities_and_transforms_of_models(name: str) -> None:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        model = MODELS[name]()
        outputs = ["logp", "values", "deterministics"]
        if name not in UNDIFFERENTIABLE:
            outputs.insert(1, "dlogp")
        program = export_logp(model, outputs=outputs, data="stored", verify=False)
        start = model.initial_point(random_seed=1)
        rng = np.random.default_rng(3)
        values = {
            k: v + rng.uniform(-0.5, 0.5, v.shape) if v.dtype.kind == "f" else v
            for k, v in start.items()
        }
        graph = ModelGraph(model)
        given = [values[value.name] for value in graph.discrete]
        names = [value.name for value in program.model.graph.outputs]
        found = dict(zip(names, program(graph.raveled(values), *given), strict=True))
        np.testing.assert_allclose(found["logp"], model.compile_logp()(values), rtol=1e-9)
        if "dlogp" in found:
            expected = model.compile_dlogp()(values)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found["dlogp"], expected, rtol=1e-9, atol=1e-12 * scale)
        back = export_transforms(model, to="unconstrained", data="stored", verify=False)
        point = back(**{v.name: found[v.name] for v in back.inputs})[0]
        np.testing.assert_allclose(point, graph.raveled(values), rtol=1e-9, atol=1e-9)
