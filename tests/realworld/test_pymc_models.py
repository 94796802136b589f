"""Log densities, their derivatives and deterministics of PyMC models, in mode ONNX as in Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor
import pytest
from pytensor.compile.builders import OpFromGraph

pm = pytest.importorskip("pymc")

from pytensor_onnx import export_onnx, export_value_and_grad  # noqa: E402
from tests.conftest import REWRITTEN, compare_onnx_and_py, numbers_in_double, sweep_rest  # noqa: E402
from tests.realworld.models import MODELS, TELLING  # noqa: E402

UNDIFFERENTIABLE = {"directions"}
NARROW = {"coal_mining_disasters": (1,)}
"""Positions of densities to which PyTensor gives float32: a DiscreteUniform is made of numbers."""


def params(skipped: Sequence[str] = ()) -> list[str]:
    return [name for name in MODELS if name not in skipped]


def points(model: pm.Model) -> list[dict[str, np.ndarray]]:
    """Return the initial point and three around it."""
    start = model.initial_point(random_seed=1)
    rng = np.random.default_rng(3)
    around = [
        {
            name: value + 0.5 * rng.normal(size=np.shape(value))
            if value.dtype.kind == "f"
            else value
            for name, value in start.items()
        }
        for _ in range(3)
    ]
    return [start, *around]


def compare(
    name: str, compiled: Callable[[pm.Model, Any], Callable], narrow: Sequence[int] = ()
) -> None:
    """Assert that functions compiled in mode ONNX return the same values as in Python.

    The results at `narrow` are float32 under the model's own constants.
    """
    model = MODELS[name]()
    in_onnx = compiled(model, "ONNX")
    with numbers_in_double(), pytensor.config.change_flags(cxx=""):
        in_python = compiled(MODELS[name](), REWRITTEN)
    for point in points(model):
        found, expected = in_onnx(point), in_python(point)
        pairs = (
            zip(found, expected, strict=True) if isinstance(found, list) else [(found, expected)]
        )
        for i, (a, exact) in enumerate(map(np.asarray, pair) for pair in pairs):
            b = exact.astype("float32") if i in narrow else exact
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            # Terms that cancel leave the rounding of the largest: the scale is that of the whole.
            scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("name", sweep_rest(params(), TELLING))
@pytest.mark.slow
def test_log_densities(name: str) -> None:
    def compiled(model: pm.Model, mode: Any) -> Callable:
        densities = [model.logp(), *model.logp(sum=False)]
        return model.compile_fn(densities, inputs=model.value_vars, mode=mode)

    compare(name, compiled, narrow=NARROW.get(name, ()))


@pytest.mark.parametrize("name", sweep_rest(params(UNDIFFERENTIABLE), TELLING))
@pytest.mark.few(1)
def test_gradients_of_log_densities(name: str) -> None:
    compare(name, lambda model, mode: model.compile_dlogp(mode=mode))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["eight_schools", "softmax_regression", "random_walk", "filter_by_scan", "mixture_of_normals"],
)
def test_hessians_of_log_densities(name: str) -> None:
    compare(name, lambda model, mode: model.compile_d2logp(mode=mode))


@pytest.mark.parametrize(
    "name",
    ["eight_schools", "radon", "logistic_regression", "filter_by_scan", "mixture_of_normals"],
)
def test_deterministics_and_transformed_values(name: str) -> None:
    def compiled(model: pm.Model, mode: Any) -> Callable:
        wanted = model.replace_rvs_by_values(model.unobserved_RVs)
        inputs = model.value_vars
        return model.compile_fn(wanted, inputs=inputs, mode=mode, on_unused_input="ignore")

    compare(name, compiled)


@pytest.mark.parametrize("name", ["eight_schools", "eight_schools_with_named_dims", "radon"])
@pytest.mark.few(1)
def test_log_densities_are_exported_with_their_gradient(name: str) -> None:
    model = MODELS[name]()
    program = export_value_and_grad(model.value_vars, model.logp())
    assert [value.name for value in program.inputs] == [v.name for v in model.value_vars]
    with numbers_in_double():
        reference = MODELS[name]()
    for point in points(model):
        energy, *gradients = program(*(point[v.name] for v in model.value_vars))
        with numbers_in_double(), pytensor.config.change_flags(cxx=""):
            np.testing.assert_allclose(
                energy, reference.compile_logp(mode=REWRITTEN)(point), rtol=1e-12
            )
            expected = reference.compile_dlogp(mode=REWRITTEN)(point)
        found = np.concatenate([np.ravel(gradient) for gradient in gradients])
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_predictions_are_exported_with_named_data() -> None:
    model = MODELS["radon"]()
    (mean,) = model.replace_rvs_by_values([model["mean"]])
    inputs = [model["county_of"], model["floor"], *model.value_vars]
    used = [v for v in inputs if v.name in {"county_of", "floor"} or v.name in {"a", "b"}]
    program = export_onnx(used, mean)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=9), rng.normal(size=9)
    for n in (1, 7):
        county, floor = rng.integers(0, 9, size=n).astype("int32"), rng.normal(size=n)
        values = {"county_of": county, "floor": floor, "a": a, "b": b}
        found = program(*(values[v.name] for v in used))
        np.testing.assert_allclose(found, a[county] + b[county] * floor, rtol=1e-13)


def test_bessel_functions_of_pymc_convert_in_loops_and_functions() -> None:
    from pymc.distributions.dist_math import i0e, i1e

    x = pytensor.tensor.vector("x")
    by_loop = pytensor.scan(
        lambda total, x: i1e(total) + i0e(x),
        outputs_info=[x],
        non_sequences=[x],
        n_steps=3,
        return_updates=False,
    )
    by_function = OpFromGraph([x], [i0e(x)])(x)
    compare_onnx_and_py([x], [by_loop, by_function], [np.array([-2.0, 0.5, 30.0])])
