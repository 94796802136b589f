"""Files of log-densities agree with PyMC, with data of other sizes and in both spaces."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pytensor
import pytest

pm = pytest.importorskip("pymc")

import pytensor.tensor as pt  # noqa: E402
from pytensor.graph.basic import Apply  # noqa: E402
from pytensor.graph.op import Op  # noqa: E402

from pytensor_onnx import ArgumentError, ONNXProgram, UnsupportedOpError  # noqa: E402
from pytensor_onnx.pymc import ModelGraph, export_logp, export_transforms  # noqa: E402

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=6), RNG.normal(size=6)
EVERYTHING = ["logp", "dlogp", "d2logp", "hvp", "pointwise", "values", "deterministics"]


def regression() -> pm.Model:
    with pm.Model(coords={"row": range(6), "group": ["a", "b"]}) as model:
        x = pm.Data("x", X, dims="row")
        y = pm.Data("y_data", Y, dims="row")
        group = pm.Data("group_of", [0, 1, 0, 1, 0, 0], dims="row")
        slopes = pm.Normal("slopes", pm.Normal("mean"), np.float64(2), dims="group")
        sigma = pm.HalfNormal("sigma")
        mean = pm.Deterministic("fitted", slopes[group] * x, dims="row")
        pm.Normal("y", mean, sigma, observed=y, dims="row")
        pm.Potential("soft", -((slopes.sum()) ** 2))
    return model


@pytest.fixture(scope="module")
def model() -> pm.Model:
    return regression()


@pytest.fixture(scope="module")
def program(model: pm.Model, tmp_path_factory: pytest.TempPathFactory) -> ONNXProgram:
    path = tmp_path_factory.mktemp("density") / "density.onnx"
    return export_logp(model, path, outputs=EVERYTHING)


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield


def named(program: ONNXProgram, *arguments: np.ndarray) -> dict[str, np.ndarray]:
    names = [value.name for value in program.model.graph.outputs]
    return dict(zip(names, program(*arguments), strict=True))


POINT = {
    "slopes": np.array([0.5, -1.0]),
    "mean": np.array(0.25),
    "sigma_log__": np.array(-0.5),
}


@cache
def compiled(model: pm.Model) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    """Return PyMC's functions in one."""
    (fitted,) = model.replace_rvs_by_values([model["fitted"]])
    (terms,) = model.logp(vars=[model["y"]], sum=False)
    graphs = [model.logp(), model.dlogp(), model.d2logp(negate_output=False), terms, fitted]
    return model.compile_fn(graphs, inputs=model.value_vars, on_unused_input="ignore")


def expected(model: pm.Model) -> dict[str, np.ndarray]:
    point = {v.name: POINT[v.name] for v in model.value_vars}
    logp, dlogp, hessian, terms, fitted = compiled(model)(point)
    return {
        "logp": logp,
        "dlogp": dlogp,
        "d2logp": hessian,
        "hvp": hessian @ np.arange(4.0),
        "logp_y": terms,
        "sigma": np.exp(-0.5),
        "mean": POINT["mean"],
        "slopes": POINT["slopes"],
        "fitted": fitted,
    }


def raveled(model: pm.Model) -> np.ndarray:
    return ModelGraph(model).raveled(POINT)


@pytest.mark.parametrize("rows", [6, 1, 0])
@pytest.mark.few(1)
def test_a_density_and_all_that_belongs_to_it(
    model: pm.Model, program: ONNXProgram, rows: int
) -> None:
    data = {"x": X[:rows], "y_data": Y[:rows], "group_of": np.arange(rows, dtype="int32") % 2}
    with model:
        pm.set_data(data, coords={"row": range(rows)})
    wanted = expected(model)
    found = named(program, raveled(model), np.arange(4.0), *data.values())
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
        assert found[name].shape == np.shape(value)
    pm.set_data(
        {"x": X, "y_data": Y, "group_of": [0, 1, 0, 1, 0, 0]}, model, coords={"row": range(6)}
    )


def test_one_input_for_each_variable(model: pm.Model) -> None:
    program = export_logp(model, inputs="named", outputs=["logp", "dlogp", "hvp", "sigma"])
    wanted = expected(model)
    values = [POINT[v.name] for v in model.value_vars]
    names = [value.name for value in program.inputs]
    assert names[:3] == [v.name for v in model.value_vars]
    directions = ModelGraph(model)
    vectors = dict(
        zip(
            names[:3],
            np.split(np.arange(4.0), np.cumsum([np.size(v) for v in values])[:-1]),
            strict=True,
        )
    )
    given = {f"direction_{k}": v.reshape(np.shape(POINT[k])) for k, v in vectors.items()}
    data = {
        name: container.get_value() for name, container in ((v.name, v) for v in model.data_vars)
    }
    found = dict(
        zip(
            [v.name for v in program.model.graph.outputs],
            program(**dict(zip(names[:3], values, strict=True)), **given, **data),
            strict=True,
        )
    )
    for kind in ("dlogp", "hvp"):
        joined = np.concatenate([np.ravel(found[f"{kind}_{k}"]) for k in names[:3]])
        np.testing.assert_allclose(joined, wanted[kind], rtol=1e-12)
    np.testing.assert_allclose(found["logp"], wanted["logp"], rtol=1e-13)
    assert directions.continuous[0].name == names[0]


@pytest.mark.slow
def test_a_constrained_density_is_that_of_the_variables_themselves(model: pm.Model) -> None:
    outputs = ["logp", "dlogp", "sigma_log__"]
    program = export_logp(model, space="constrained", outputs=outputs, data="stored")
    sigma = np.exp(POINT["sigma_log__"])
    point = ModelGraph(model, constrained=True).raveled({**POINT, "sigma": sigma})
    logp, dlogp, log_sigma = program(point)
    plain = pm.model.transform.conditioning.remove_value_transforms(model)
    values = {**POINT, "sigma": sigma}
    values = {v.name: values[v.name] for v in plain.value_vars}
    np.testing.assert_allclose(logp, plain.compile_logp()(values), rtol=1e-12)
    np.testing.assert_allclose(dlogp, plain.compile_dlogp()(values), rtol=1e-12)
    np.testing.assert_allclose(log_sigma, -0.5, rtol=1e-14)
    without = export_logp(model, jacobian=False, outputs=["logp"], data="stored")
    np.testing.assert_allclose(without(raveled(model)), [logp], rtol=1e-12)


def test_transforms_run_in_both_directions(model: pm.Model) -> None:
    constrain = export_transforms(model)
    values = named(constrain, raveled(model))
    assert set(values) == {"slopes", "mean", "sigma"}
    unconstrain = export_transforms(model, to="unconstrained")
    (point,) = unconstrain(**values)
    np.testing.assert_allclose(point, raveled(model), rtol=1e-14)
    named_ones = export_transforms(model, inputs="named", deterministics=True)
    assert [v.name for v in named_ones.model.graph.outputs] == ["sigma", "fitted"]


@pytest.mark.slow
def test_parameters_of_transforms_may_be_other_variables() -> None:
    with pm.Model() as model:
        top = pm.HalfNormal("top")
        pm.Uniform("below", 0, top)
        pm.Dirichlet("p", np.ones(3))
    program = export_transforms(model, to="unconstrained")
    (point,) = program(top=2.0, below=0.5, p=[0.2, 0.3, 0.5])
    np.testing.assert_allclose(point[:2], [np.log(2), np.log(0.5 / 1.5)], rtol=1e-14)
    below = named(export_transforms(model), point)["below"]
    np.testing.assert_allclose(below, 0.5, rtol=1e-14)


@pytest.mark.slow
def test_variables_as_long_as_the_data() -> None:
    with pm.Model() as model:
        y = pm.Data("y_data", np.zeros(3))
        latent = pm.Normal("latent", 0, 1, shape=y.shape[0])
        scale = pm.HalfNormal("scale")
        pm.Normal("y", latent, scale, observed=y)
    vector = export_logp(model)
    by_name = export_logp(model, inputs="named", outputs=["logp"])
    for n in (1, 5):
        point, data = RNG.normal(size=n + 1), RNG.normal(size=n)
        with model:
            pm.set_data({"y_data": data})
        values = {"latent": point[:n], "scale_log__": point[n]}
        logp, dlogp = vector(point, data)
        np.testing.assert_allclose(logp, model.compile_logp()(values), rtol=1e-12)
        np.testing.assert_allclose(dlogp, model.compile_dlogp()(values), rtol=1e-12)
        np.testing.assert_allclose(by_name(point[:n], point[n], data), [logp], rtol=1e-12)


@pytest.mark.slow
def test_discrete_variables_are_inputs_of_their_own() -> None:
    with pm.Model() as model:
        k, p = pm.Binomial("k", 5, 0.3), pm.Beta("p", 2, 2)
        pm.Normal("y", k * p, 1, observed=[1.0])
    program = export_logp(model)
    assert [(v.name, v.dtype.numpy()) for v in program.inputs] == [
        ("point", np.float64),
        ("k", np.int64),
    ]
    logp, _ = program([0.3], 2)
    np.testing.assert_allclose(logp, model.compile_logp()({"p_logodds__": 0.3, "k": 2}), rtol=1e-12)


@pytest.mark.slow
def test_the_file_alone_says_what_it_is(model: pm.Model, tmp_path: Path) -> None:
    export_logp(model, tmp_path / "density.onnx", data=["x"])
    session = onnxruntime.InferenceSession(tmp_path / "density.onnx")
    told = json.loads(session.get_modelmeta().custom_metadata_map["pymc"])
    assert told["pymc_version"] == pm.__version__
    assert [(v["name"], v["variable"], v["transform"], v["shape"]) for v in told["values"]] == [
        ("mean", "mean", "", []),
        ("slopes", "slopes", "", [2]),
        ("sigma_log__", "sigma", "log", []),
    ]
    assert told["coords"]["group"] == ["a", "b"]
    assert told["dims"]["slopes"] == ["group"]
    assert {name: entry["input"] for name, entry in told["data"].items()} == {
        "x": True,
        "y_data": False,
        "group_of": False,
    }
    assert {value.name: value.shape for value in session.get_inputs()} == {"point": [4], "x": [6]}


@pytest.mark.slow
def test_the_hash_changes_with_the_data() -> None:
    def told(value: float) -> str:
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), observed=[value])
        return json.loads(export_logp(model, verify=False).model.metadata_props["pymc"])[
            "data_sha256"
        ]

    assert told(1.0) == told(1.0) != told(2.0)


def test_unknown_names_are_refused(model: pm.Model) -> None:
    with pytest.raises(ArgumentError, match="no output 'sigm': did you mean sigma"):
        export_logp(model, outputs=["logp", "sigm"])
    with pytest.raises(ArgumentError, match="no data container 'z': it has x, y_data, group_of"):
        export_logp(model, data=["z"])
    with pytest.raises(ArgumentError, match="wrap its values in"):
        export_logp(model, data=["y"])
    with pytest.raises(ArgumentError, match="space='natural': give one of 'unconstrained'"):
        export_logp(model, space="natural")
    with pytest.raises(ArgumentError, match="model is of type"):
        export_logp(model.logp())
    with pytest.raises(ArgumentError, match="no argument 'input_names'"):
        export_logp(model, input_names=["x"])


class Unknown(Op):
    def make_node(self, x: pt.TensorVariable) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: list, outputs: list) -> None:
        outputs[0][0] = np.sin(inputs[0])


def test_a_change_says_what_each_call_computes_of_data_alone() -> None:
    with pm.Model() as model:
        x = pm.Data("x|a", np.linspace(0.0, 9.0, 300))
        pm.Normal("y", pm.Normal("b") * pt.exp(pt.cos(x)), observed=np.zeros(300))
    advice = export_logp(model, verify=False).changes[-1].text
    assert advice.startswith("each call computes ")
    assert "Exp" in advice
    assert "Cos" in advice
    assert advice.endswith("of x|a alone: data='stored' folds them")
    stored = export_logp(model, data="stored", verify=False)
    assert not any("each call" in str(x) for x in stored.changes)


@pytest.mark.slow
def test_nothing_is_written_for_a_model_that_does_not_convert(tmp_path: Path) -> None:
    with pm.Model() as model:
        pm.Normal("y", Unknown()(pm.Normal("x")), 1, observed=[1.0])
    with pytest.raises(UnsupportedOpError, match="Unknown"):
        export_logp(model, tmp_path / "m.onnx", outputs=["logp"])
    with pytest.raises(NotImplementedError):
        export_logp(model, tmp_path / "m.onnx")
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.CustomDist("y", x, logp=lambda value, mu: Unknown()(value - mu), observed=[1.0])
    with pytest.raises(UnsupportedOpError, match="Unknown"):
        export_logp(model, tmp_path / "m.onnx", outputs=["logp"])
    assert not list(tmp_path.iterdir())


def test_random_rows_of_the_data_are_refused() -> None:
    with pm.Model() as model:
        rows = pm.Minibatch(np.arange(9.0), batch_size=3)
        pm.Normal("y", pm.Normal("mu"), observed=rows, total_size=9)
    with pytest.raises(ArgumentError, match="the same in every run"):
        export_logp(model)


def test_names_of_a_model_do_not_collide_with_those_of_the_file() -> None:
    with pm.Model() as model:
        pm.Deterministic("logp", pm.Normal("x"))
    with pytest.raises(ArgumentError, match="'logp' would name two"):
        export_logp(model, outputs=["logp", "deterministics"])
