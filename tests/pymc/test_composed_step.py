"""Steps of files of log-densities: those of the model, and of files by other hands."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pymc as pm
import pytest
from onnx import parser

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.pymc import (
    compose_step,
    export_logp,
    export_pathfinder,
    export_sampler,
    export_step,
)

NORMAL = """
<ir_version: 8, opset_import: ["" : {opset}]>
agraph ({dtype}[n] x, {dtype}[n] center) => ({dtype} value, {dtype}[n] slope) {{
    slope = Sub(center, x)
    squares = Mul(slope, slope)
    total = ReduceSum <keepdims = 0> (squares)
    value = Mul(total, factor)
}}
"""
NAMES = {"point": "x", "logp": "value", "dlogp": "slope"}


def normal(dtype: str = "double", opset: int = 13) -> onnx.ModelProto:
    """Return the density of a normal distribution around a center, as another tool writes it."""
    model = parser.parse_model(NORMAL.format(dtype=dtype, opset=opset))
    array = np.array(-0.5, {"double": "float64", "float": "float32"}[dtype])
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "factor"))
    return model


def counts() -> pm.Model:
    with pm.Model() as model:
        y = pm.Data("y", np.array([2.0, 0.5, 1.3, 4.1]))
        alpha, beta = pm.HalfNormal("alpha", 2.0), pm.Gamma("beta", 2.0, 1.0)
        pm.Gamma("obs", alpha, beta, observed=y)
    return model


@pytest.mark.parametrize("method", [pytest.param("nuts", marks=pytest.mark.slow), "hmc"])
def test_a_step_of_a_file_is_that_of_its_model(method: str, tmp_path: Path) -> None:
    model = counts()
    export_logp(model, tmp_path / "logp.onnx", verify=False)
    compose_step(tmp_path / "logp.onnx", tmp_path / "step.onnx", method=method)
    step = export_step(model, method=method, verify=False)
    further = {"leapfrog_steps": np.array(5)} if method == "hmc" else {}
    session = onnxruntime.InferenceSession(tmp_path / "step.onnx")
    assert {f.domain for f in onnx.load(tmp_path / "step.onnx").functions} > {"pytensor.composed"}
    given = {"scale": np.array([0.6, 0.8]), "step_size": np.array(0.4), **further}
    given["y"] = np.array([1.0, 3.0, 0.2])
    point, state = np.zeros(2), np.array([5, 0])
    names = [x.name for x in session.get_outputs()]
    for _ in range(20):
        exact = dict(
            zip(
                [x.name for x in step.model.graph.outputs],
                step(point=point, state=state, **given),
                strict=True,
            )
        )
        found = dict(
            zip(names, session.run(None, {"point": point, "state": state, **given}), strict=True)
        )
        assert found.keys() == exact.keys()
        for name, value in exact.items():
            np.testing.assert_allclose(found[name], value, 1e-13, err_msg=name)
        point, state = found["next_point"], found["next_state"]


@pytest.mark.parametrize(("dtype", "opset"), [("double", 13), ("float", 21)])
def test_files_of_other_tools_have_their_moments(dtype: str, opset: int) -> None:
    model = normal(dtype, opset)
    onnx.checker.check_model(model)
    step = compose_step(model, names=NAMES)
    center = np.array([3.0, -1.0], {"double": "float64", "float": "float32"}[dtype])
    point, state, draws = np.zeros(2), np.array([1, 0]), []
    for _ in range(1500):
        point, state, *_ = step(point, state, np.ones(2), 0.8, center)
        draws.append(point)
    np.testing.assert_allclose(np.mean(draws, axis=0), center, atol=0.15)
    np.testing.assert_allclose(np.cov(np.array(draws).T), np.eye(2), atol=0.2)


def test_a_gradient_may_have_a_file_of_its_own() -> None:
    model = counts()
    whole = compose_step(export_logp(model, verify=False))
    value, slope = (export_logp(model, outputs=[x], verify=False) for x in ("logp", "dlogp"))
    parted = compose_step(value, gradient=slope)
    given = [np.array([0.1, -0.2]), [3, 0], [1.0, 1.0], 0.3, [1.0, 2.0]]
    for found, exact in zip(parted(*given), whole(*given), strict=True):
        np.testing.assert_allclose(found, exact, 1e-13)


@pytest.mark.slow
def test_functions_of_equal_names_keep_their_bodies() -> None:
    file = export_logp(counts(), verify=False).proto
    function = onnx.parser.parse_function(
        '<opset_import: ["" : 21], domain: "pytensor.functions"> F (x) => (y) { y = Neg(x) }'
    )
    own = {(f.domain, f.name): f for f in compose_step(file).proto.functions}
    shared = next(f for f in own.values() if f.domain != "pytensor.composed")
    function.name, function.domain = shared.name, shared.domain
    model = normal(opset=21)
    node = onnx.helper.make_node(function.name, ["x"], ["negative"], domain=function.domain)
    model.graph.node[0].CopyFrom(onnx.helper.make_node("Add", ["center", "negative"], ["slope"]))
    model.graph.node.insert(0, node)
    model.functions.append(function)
    model.opset_import.append(onnx.helper.make_opsetid(function.domain, 1))
    given = [np.zeros(2), [1, 0], np.ones(2), 0.8, np.array([3.0, -1.0])]
    found, exact = (compose_step(m, names=NAMES)(*given)[0] for m in (model, normal(opset=21)))
    np.testing.assert_allclose(found, exact, 1e-13)


@pytest.mark.slow
def test_a_path_of_a_file_is_that_of_its_model() -> None:
    model = counts()
    y = np.array([1.0, 3.0, 0.2])
    whole = export_pathfinder(model, verify=False)
    names = [x.name for x in whole.model.graph.outputs]
    exact = dict(zip(names, whole(seed=[7], draws=30, y=y), strict=True))
    start = np.array([*model.initial_point().values()])
    for step in (
        export_step(model, method="pathfinder", verify=False),
        compose_step(export_logp(model, verify=False), method="pathfinder"),
    ):
        outputs = [x.name for x in step.model.graph.outputs]
        found = dict(zip(outputs, step(start, [7, 0], 30, y), strict=True))
        assert found["points"].shape == (30, 2)
        assert found["next_state"].tolist() == [7, 1]
        np.testing.assert_allclose(found["elbo"], exact["elbo"][0], 1e-10)
        assert found["n_steps"] == exact["n_steps"][0]
        # The file draws again from the draws of its paths.
        drawn = np.exp(found["points"][:, 0])
        assert np.isclose(exact["alpha"][0][:, None], drawn).any(axis=1).all()
        other = dict(zip(outputs, step(start, [7, 1], 30, y), strict=True))
        assert not np.array_equal(other["points"], found["points"])


@pytest.mark.slow
def test_a_low_rank_step_is_that_of_the_sampler() -> None:
    covariance = np.array([[2.0, 0.9, 0.0], [0.9, 0.5, 0.1], [0.0, 0.1, 1.0]])
    with pm.Model() as model:
        pm.MvNormal("x", np.array([1.0, -2.0, 0.0]), covariance)
    sampler = export_sampler(model, metric="low_rank", state=True, unconstrained=True, verify=False)
    names = [x.name for x in sampler.model.graph.outputs]
    size = 3 * 3 + 3 + 3 * (3 + 1)
    first = dict(
        zip(names, sampler(seed=[7], warmup=200, draws=0, state=np.zeros((0, size))), strict=True)
    )
    row = first["next_state"]
    rest = dict(zip(names, sampler(seed=[7], warmup=0, draws=10, state=row), strict=True))
    x, _, scale = row[0, :9].reshape(3, 3)
    log_step, count = row[0, -2:]
    vectors, stretches = row[0, 9:18].reshape(3, 3), row[0, 18:21]
    step = export_step(model, metric="low_rank")
    assert abs(stretches).max() > 0.1
    point, state = x, np.array([7, int(count)])
    for i in range(10):
        point, state, *_ = step(point, state, scale, vectors, stretches, np.exp(log_step))
        np.testing.assert_allclose(point, rest["point"][0, i], 1e-10)


def test_wrong_files_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no input 'point'"):
        compose_step(normal())
    with pytest.raises(ArgumentError, match="no output 'dlogp'"):
        compose_step(normal(), names={"point": "x", "logp": "value"})
    with pytest.raises(ArgumentError, match="not float64 of rank 0"):
        compose_step(normal(), names={**NAMES, "logp": "slope"})
    clash = normal()
    clash.graph.input[1].name = clash.graph.node[0].input[0] = "scale"
    with pytest.raises(ArgumentError, match="'scale'"):
        compose_step(clash, names=NAMES)
    with pytest.raises(ArgumentError, match="low_rank"):
        compose_step(normal(), names=NAMES, method="hmc", metric="low_rank")
