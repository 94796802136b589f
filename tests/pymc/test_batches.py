"""A batch of points gives what PyMC gives for one point after another."""

from collections.abc import Callable, Iterator

import numpy as np
import pytensor
import pytest

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402

from pytensor_onnx import ArgumentError, ONNXProgram, VerificationError  # noqa: E402
from pytensor_onnx.pymc import ModelGraph, export_logp, export_transforms, making  # noqa: E402

RNG = np.random.default_rng(4)
Y = RNG.normal(size=5)


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


def hierarchical() -> None:
    x = pm.Data("x", Y**2)
    mean, scale = pm.Normal("mean"), pm.HalfNormal("scale")
    slopes = pm.Normal("slopes", mean, scale, shape=(2, 2))
    weights = pm.Dirichlet("weights", np.ones(3))
    fitted = pm.Deterministic("fitted", slopes.sum() * x + weights[0])
    pm.Normal("y", fitted, scale, observed=Y)


def time_series() -> None:
    rho = pm.Normal("rho", shape=2)
    pm.AR("path", rho, pm.HalfNormal("scale"), init_dist=pm.Normal.dist(0, 1), observed=Y)


def correlated() -> None:
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0))
    pm.MvNormal("y", np.zeros(2), chol=chol, observed=np.outer(Y, [1.0, 2.0]))
    pm.NormalMixture("z", [0.3, 0.7], pm.Normal("means", shape=2), 0.5, observed=Y)


def named(program: ONNXProgram, *arguments: np.ndarray) -> dict[str, np.ndarray]:
    names = [value.name for value in program.model.graph.outputs]
    return dict(zip(names, program(*arguments), strict=True))


@pytest.mark.parametrize("make", [hierarchical, time_series, correlated])
@pytest.mark.slow
def test_a_batch_is_a_loop_over_points(make: Callable[[], None]) -> None:
    with pm.Model() as model:
        make()
    outputs = ["logp", "dlogp", "values", "deterministics"]
    program = export_logp(model, outputs=outputs, batch=True, data="stored")
    graph = ModelGraph(model)
    values = list(model.value_vars)
    wanted = [model.logp(), model.dlogp()]
    wanted += model.replace_rvs_by_values([*model.free_RVs, *model.deterministics])
    names = [*("logp", "dlogp"), *(v.name for v in [*model.free_RVs, *model.deterministics])]
    reference = model.compile_fn(wanted, inputs=values, on_unused_input="ignore")
    for n in (3, 1, 0):
        points = RNG.normal(size=(n, graph.start.size))
        found = named(program, points)
        for name, array in found.items():
            assert array.shape[0] == n, name
        for i, point in enumerate(points):
            parts = np.split(point, np.cumsum([v.start.size for v in graph.continuous])[:-1])
            pairs = zip(graph.continuous, parts, strict=True)
            expected = reference({v.name: part.reshape(v.start.shape) for v, part in pairs})
            expected = dict(zip(names, expected, strict=True))
            for name, array in found.items():
                np.testing.assert_allclose(array[i], expected[name], rtol=1e-11, err_msg=name)


@pytest.mark.slow
def test_axes_have_names_and_data_stay_shared() -> None:
    with pm.Model(coords={"row": range(5)}) as model:
        x = pm.Data("x", Y, dims="row")
        pm.Normal("y", pm.Normal("mean"), pm.HalfNormal("scale"), observed=x, dims="row")
    assert repr(export_logp(model, batch=True)) == (
        "ONNXProgram(point: float64[point, 2], x: float64[row] -> "
        "logp: float64[point], dlogp: float64[point, 2])"
    )


@pytest.mark.slow
def test_second_derivatives_and_directions_of_each_point() -> None:
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        pm.Normal("y", pm.Normal("mean"), scale, observed=Y)
    one = export_logp(model, outputs=["d2logp", "hvp"])
    program = export_logp(model, outputs=["d2logp", "hvp"], batch=True)
    points, directions = RNG.normal(size=(2, 4, 2))
    hessians, products = program(points, directions)
    reference = model.compile_d2logp(negate_output=False)
    for i, (log_scale, mean) in enumerate(points):
        expected = reference({"scale_log__": log_scale, "mean": mean})
        np.testing.assert_allclose(hessians[i], expected, rtol=1e-11)
        np.testing.assert_allclose(products[i], expected @ directions[i], rtol=1e-11)
    assert one(points[0], directions[0])[0].shape == (2, 2)


@pytest.mark.parametrize("in_scan", [False, True])
def test_an_invalid_point_has_no_density_alone(in_scan: bool) -> None:
    def logp(value: pt.TensorVariable, scale: pt.TensorVariable) -> pt.TensorVariable:
        if not in_scan:
            return pm.logp(pm.Normal.dist(0.0, scale), value)
        return pytensor.scan(
            lambda v, s: pm.logp(pm.Normal.dist(0.0, s), v),
            value,
            non_sequences=scale,
            return_updates=False,
        )

    with pm.Model() as model:
        pm.CustomDist("y", pm.Normal("scale", 1.0), logp=logp, observed=Y)
    program = export_logp(model, outputs=["logp"], batch=True)
    (found,) = program([[1.0], [-1.0], [2.0]])
    expected = [model.compile_logp()({"scale": s}) for s in (1.0, 2.0)]
    np.testing.assert_allclose(found, [expected[0], -np.inf, expected[1]], rtol=1e-13)


@pytest.mark.slow
def test_a_point_whose_covariance_is_none_has_no_density_alone() -> None:
    with pm.Model() as model:
        r = pm.Flat("r")
        covariance = pt.stack([1.0, r, r, 1.0]).reshape((2, 2))
        pm.MvNormal("y", np.zeros(2), cov=covariance, observed=np.ones(2))
    (found,) = export_logp(model, outputs=["logp"], batch=True)([[0.3], [2.0], [-0.5]])
    expected = [model.compile_logp()({"r": r}) for r in (0.3, -0.5)]
    np.testing.assert_allclose(found, [expected[0], -np.inf, expected[1]], rtol=1e-13)


@pytest.mark.slow
def test_one_input_for_each_variable_and_discrete_ones() -> None:
    with pm.Model() as model:
        k, p = pm.Binomial("k", 5, 0.3), pm.Beta("p", 2, 2, shape=2)
        pm.Normal("y", k * p, 1, observed=[1.0, 2.0])
    program = export_logp(model, inputs="named", batch=True)
    logits, ks = RNG.normal(size=(3, 2)), np.array([0, 3, 5])
    logp, gradient = program(p_logodds__=logits, k=ks)
    for i in range(3):
        values = {"p_logodds__": logits[i], "k": ks[i]}
        np.testing.assert_allclose(logp[i], model.compile_logp()(values), rtol=1e-12)
        np.testing.assert_allclose(gradient[i], model.compile_dlogp()(values), rtol=1e-11)


@pytest.mark.slow
def test_transforms_of_a_batch_in_both_directions() -> None:
    with pm.Model() as model:
        hierarchical()
    points = RNG.normal(size=(3, 8))
    values = named(export_transforms(model, batch=True), points)
    np.testing.assert_allclose(values["scale"], np.exp(points[:, 1]), rtol=1e-14)
    assert values["weights"].shape == (3, 3)
    (back,) = export_transforms(model, to="unconstrained", batch=True)(**values)
    np.testing.assert_allclose(back, points, rtol=1e-12)


@pytest.mark.slow
def test_variables_as_long_as_the_data() -> None:
    with pm.Model() as model:
        y = pm.Data("y_data", np.zeros(3))
        latent = pm.Normal("latent", 0, 1, shape=y.shape[0])
        pm.Normal("y", latent, pm.HalfNormal("scale"), observed=y)
    program = export_logp(model, batch=True)
    points, data = RNG.normal(size=(2, 5)), RNG.normal(size=4)
    with model:
        pm.set_data({"y_data": data})
    found, _ = program(points, data)
    for i, point in enumerate(points):
        expected = model.compile_logp()({"latent": point[:4], "scale_log__": point[4]})
        np.testing.assert_allclose(found[i], expected, rtol=1e-12)


def test_named_dimensions() -> None:
    pmd = pytest.importorskip("pymc.dims")
    with pm.Model(coords={"a": range(2), "b": range(3)}) as model:
        scale = pmd.HalfNormal("scale", dims="a")
        pmd.Deterministic("double", 2 * pmd.Normal("x", 0, scale, dims=("a", "b")))
    outputs = ["logp", "dlogp", "scale", "double"]
    program = export_logp(model, outputs=outputs, batch=True)
    one, points = export_logp(model, outputs=outputs), RNG.normal(size=(3, 8))
    found = program(points)
    for i, point in enumerate(points):
        for array, expected in zip(found, one(point), strict=True):
            np.testing.assert_allclose(array[i], expected, rtol=1e-12)
    values = {"scale": np.exp(points[:, :2]), "x": points[:, 2:].reshape(3, 2, 3)}
    (back,) = export_transforms(model, to="unconstrained", batch=True)(**values)
    np.testing.assert_allclose(back, points, rtol=1e-14)


def test_a_batch_that_mixes_its_points_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(outputs: list, points: dict) -> list:
        return [
            v - v.mean() for v in making.vectorize_graph(outputs, points, new_tensor_dims=["p"])
        ]

    monkeypatch.setattr(making, "vectorized_graph", wrong)
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(VerificationError, match="output logp of a batch differs"):
        export_logp(model, outputs=["logp"], batch=True)


def test_a_model_without_free_variables_has_no_points() -> None:
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=1.0)
    with pytest.raises(ArgumentError, match="no free variables"):
        export_logp(model, outputs=["logp"], batch=True)
