"""nutpie draws from an exported density, which it calls as a Python function."""

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
compiled_pyfunc = pytest.importorskip("nutpie.compiled_pyfunc")

import nutpie  # noqa: E402

from pytensor_onnx.pymc import export_logp, export_transforms  # noqa: E402


def test_nutpie_draws_from_an_exported_density() -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu", 1, 2, shape=2)
        pm.HalfNormal("sigma", 3)
        pm.Deterministic("twice", 2 * mu)
    density = export_logp(model, verify=False)
    constrain = export_transforms(model, to="constrained", verify=False)
    outputs = constrain.model.graph.outputs
    names = [str(value.name) for value in outputs]

    def logp(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density(point)
        return float(value), gradient

    compiled = compiled_pyfunc.from_pyfunc(
        3,
        lambda: logp,
        lambda *seeds: lambda point: dict(zip(names, constrain(point), strict=True)),
        [np.dtype("float64")] * len(names),
        [tuple(value.shape.numpy()) for value in outputs],
        names,
        make_initial_point_fn=lambda seed: np.zeros(3),
    )
    options = {"draws": 500, "tune": 300, "chains": 2, "cores": 1, "progress_bar": False}
    posterior = nutpie.sample(compiled, seed=1, **options).posterior
    np.testing.assert_allclose(posterior["mu"].mean(("chain", "draw")), 1, atol=0.4)
    np.testing.assert_allclose(posterior["mu"].std(("chain", "draw")), 2, rtol=0.2)
    np.testing.assert_allclose(posterior["sigma"].mean(), 3 * np.sqrt(2 / np.pi), rtol=0.2)


def test_nutpie_has_no_mode() -> None:
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(ValueError, match="numba and jax"):
        nutpie.compile_pymc_model(model, backend="onnx")
