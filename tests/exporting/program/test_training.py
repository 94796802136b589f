"""A training step becomes one model: state in and out, trained by ONNX Runtime alone."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ArgumentError, PyTensorONNXError, export_onnx, export_training_step
from pytensor_onnx.nn import dropout
from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.random import state_of
from tests.conftest import op_types

EXAMPLE = Path(__file__).parents[3] / "examples" / "training_step"


def momentum(learning_rate):
    """Return gradient descent with momentum 0.9 (Polyak 1964), which remembers a velocity."""

    def rule(loss, params):
        updates = {}
        for p, g in zip(params, pt.grad(loss, params), strict=True):
            v = pytensor.shared(np.zeros_like(p.get_value()), name=f"{p.name}_velocity")
            updates[v] = (0.9 * v - learning_rate * g).astype(v.dtype)
            updates[p] = p + updates[v]
        return updates

    return rule


@pytest.fixture
def regression():
    x, y = pt.fmatrix("x"), pt.fvector("y")
    w = pytensor.shared(np.array([1.0, -1.0], "float32"), name="w")
    b = pytensor.shared(np.float32(0.5), name="b")
    return x, y, [w, b], ((x @ w + b - y) ** 2).mean()


def momentum_steps(n, x, y, rate):
    """Return losses and parameters after each step, by NumPy from the definition."""
    w, b, vw, vb = np.array([1.0, -1.0]), 0.5, np.zeros(2), 0.0
    for _ in range(n):
        residual = x @ w + b - y
        gw, gb = 2 * residual @ x / len(y), 2 * residual.mean()
        vw, vb = 0.9 * vw - rate * gw, 0.9 * vb - rate * gb
        w, b = w + vw, b + vb
        yield (residual**2).mean(), w, b


def run_steps(session, state, n, **feed):
    names = [v.name for v in session.get_outputs()]
    pairs = json.loads(session.get_modelmeta().custom_metadata_map["state"])
    for _ in range(n):
        results = dict(zip(names, session.run(names, feed | state), strict=True))
        state = {now: results[then] for now, then in pairs.items()}
        yield results, state


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 2)).astype("float32")
    return x, (x @ [2.0, 3.0] - 1).astype("float32")


@pytest.mark.parametrize("state_file", [None, "state.npz", "state.onnx"])
def test_step_trains_as_the_definition_says(regression, data, tmp_path, state_file):
    x, y, params, loss = regression
    state_path = None if state_file is None else tmp_path / state_file
    path = tmp_path / "step.onnx"
    export_training_step(loss, params, momentum, path, inputs=[x, y], state_path=state_path)
    session = ort.InferenceSession(path)
    needed = [v.name for v in session.get_inputs()]
    state = {}
    assert needed[:3] == ["x", "y", "learning_rate"]
    assert set(needed[3:]) == ({"w", "b", "w_velocity", "b_velocity"} if state_file else set())
    if state_path is not None:
        if state_file == "state.npz":
            state = dict(np.load(state_path))
        else:
            initial = ort.InferenceSession(state_path)
            names = [v.name for v in initial.get_outputs()]
            state = dict(zip(names, initial.run(None, {}), strict=True))
        assert set(state) == set(needed[3:])
    feed = {"x": data[0], "y": data[1], "learning_rate": np.array(0.05, "float32")}
    steps = run_steps(session, state, 5, **feed)
    for (results, state), (loss_value, w, b) in zip(
        steps, momentum_steps(5, *data, 0.05), strict=True
    ):
        assert results["loss"] == pytest.approx(loss_value, rel=1e-5)
        # A parameter of size one comes close to zero, where float32 rounds it all the same.
        np.testing.assert_allclose(state["w"], w, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state["b"], b, rtol=1e-5, atol=1e-6)


def test_batch_is_dynamic_and_state_is_listed(regression):
    x, y, params, loss = regression
    program = export_training_step(loss, params, momentum, inputs=[x, y])
    assert [list(map(str, v.shape)) for v in program.inputs] == [["batch", "2"], ["batch"], []]
    metadata = program.model.metadata_props
    names = ["w", "b", "w_velocity", "b_velocity"]
    assert json.loads(metadata["state"]) == {name: f"{name}_next" for name in names}
    assert json.loads(metadata["parameters"]) == ["w", "b"]
    assert program.model.graph.outputs[0].name == "loss"
    assert "- w_velocity -> w_velocity_next" in program.report()
    assert "equal to PyTensor" in str(program.verification)


def test_extra_outputs_see_the_parameters_before_the_update(regression, data):
    x, y, params, loss = regression
    prediction = (x @ params[0]).copy(name="prediction")
    program = export_training_step(
        loss, params, momentum(0.1), inputs=[x, y], extra_outputs=[prediction]
    )
    assert [v.name for v in program.model.graph.outputs][:2] == ["loss", "prediction"]
    _, found = program(*data)
    np.testing.assert_allclose(found, data[0] @ np.array([1.0, -1.0], "float32"), rtol=1e-6)


@pytest.mark.parametrize("rate", ["symbolic", "shared"])
def test_rate_within_a_rule_becomes_an_input(regression, rate):
    x, y, params, loss = regression
    if rate == "symbolic":
        variable = pt.fscalar("rate")
    else:
        variable = pytensor.shared(np.float32(0.1), name="rate")
    program = export_training_step(loss, params, momentum(variable), inputs=[x, y])
    assert [v.name for v in program.inputs] == ["x", "y", "rate"]


def test_update_of_another_dtype_is_refused(regression):
    x, y, params, loss = regression
    updates = {p: p - pt.constant(0.1) * pt.grad(loss, p) for p in params}
    with pytest.raises((TypeError, PyTensorONNXError), match="float64"):
        export_training_step(loss, params, updates, inputs=[x, y])


def test_updates_of_export_onnx_keep_the_type_of_the_state():
    x, total = pt.dscalar("x"), pytensor.shared(np.float32(0), name="total")
    with pytest.raises(PyTensorONNXError, match=r"- total of type .*float32.*float64"):
        export_onnx([x], x, updates={total: total + x})


def test_parameter_without_update_is_named(regression):
    x, y, (w, b), loss = regression
    with pytest.raises(PyTensorONNXError, match="does not update b"):
        export_training_step(loss, [w, b], {w: w * np.float32(0.5)}, inputs=[x, y])


def test_other_losses_and_optimizers_are_refused(regression):
    x, _, params, loss = regression
    with pytest.raises(PyTensorONNXError, match="1 axes"):
        export_training_step(x @ params[0], params, momentum)
    with pytest.raises(PyTensorONNXError, match="not a float"):
        export_training_step(loss, params, 0.1)
    with pytest.raises(PyTensorONNXError, match="no parameters"):
        export_training_step(loss, [], momentum)


@pytest.mark.parametrize("target", ["web", "node"])
def test_browsers_and_node_need_a_file_for_the_state(regression, tmp_path, target):
    x, y, params, loss = regression
    message = f"needs state_path='state.onnx' for target='{target}': this runtime takes no value"
    with pytest.raises(ArgumentError, match=message):
        export_training_step(loss, params, momentum, tmp_path / "step.onnx", target=target)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ArgumentError, match=r"named \*\.npz or \*\.onnx, not 'state\.txt'"):
        export_training_step(
            loss, params, momentum, inputs=[x, y], state_path=tmp_path / "state.txt"
        )


@pytest.mark.slow
def test_pytensor_ml_step_carries_moments_counter_and_running_statistics():
    layers = pytest.importorskip("pytensor_ml.layers")
    from pytensor_ml.activations import ReLU
    from pytensor_ml.loss import CrossEntropy, supervised_loss
    from pytensor_ml.model import Model
    from pytensor_ml.optim import adam, compile_train

    with pytensor.config.change_flags(floatX="float32", cxx=""):
        x = layers.Input("x", shape=(None, 4))
        network = layers.Sequential(
            layers.Linear("fc", n_in=4, n_out=5),
            layers.BatchNorm("norm", n_in=5),
            ReLU(),
            layers.Linear("out", n_in=5, n_out=3),
        )
        model = Model(network(x)).initialize(seed=0)
        loss, target = supervised_loss(
            model.y, CrossEntropy(expect_onehot_labels=False, expect_logits=True)
        )
        program = export_training_step(loss, model.weights, adam, inputs=[x, target])
        rate = pt.scalar("rate")
        step = compile_train(
            loss,
            adam(rate),
            parameters=model.weights,
            inputs=[x, target, rate],
            compile_kwargs={"mode": "FAST_COMPILE"},
        )
    assert {"adam/step_count", "norm_running_mean", "fc_W/adam/first_moment"} <= set(program.state)
    assert op_types(program).count("Gemm") <= 6
    assert not program.proto.functions
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(6, 4)).astype("float32"), rng.integers(0, 3, 6), np.float32(0.01)
    # The bias before a batch norm has no gradient but rounding, which Adam makes a step of.
    for _ in range(3):
        np.testing.assert_allclose(program(*batch), step(*batch), rtol=1e-5)
    assert program.state["adam/step_count"] == 3
    for parameter in model.weights:
        if parameter.name != "fc_b":
            np.testing.assert_allclose(
                program.state[parameter.name], parameter.get_value(), rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_loss_alone_is_no_list_with_and_without_pytensor_ml(regression, is_loaded, monkeypatch):
    x, y, params, loss = regression
    if is_loaded:
        pytest.importorskip("pytensor_ml.optim")
    else:
        monkeypatch.delitem(sys.modules, "pytensor_ml", raising=False)
    step = export_training_step(loss, params, momentum, inputs=[x, y], verify=False)
    found = step(np.ones((3, 2), "float32"), np.ones(3, "float32"), np.float32(0.1))
    assert isinstance(found, np.ndarray)
    assert found == 0.25


@pytest.mark.slow
@pytest.mark.parametrize("network", ["cnn", "mlp"])
def test_example_trains_digits_without_pytensor(tmp_path, network):
    pytest.importorskip("pytensor_ml")
    pytest.importorskip("sklearn")
    export = [
        sys.executable,
        EXAMPLE / "export.py",
        "--folder",
        tmp_path,
        "--network",
        network,
    ]
    subprocess.run(export, check=True)
    code = (
        "import runpy, sys; sys.modules['pytensor'] = None; sys.argv = sys.argv[1:];"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, EXAMPLE / "train.py", "--folder", tmp_path],
        check=True,
        capture_output=True,
        text=True,
    )
    accuracy = float(done.stdout.split("held-out accuracy")[1].split("%")[0])
    assert accuracy >= 97


@pytest.mark.parametrize("given", [False, True])
def test_dropout_draws_another_mask_in_every_step(regression, data, given):
    x, y, params, _ = regression
    rng = pt.random.shared_rng(seed=0, name="mask_rng")
    next_rng, kept = rng.bernoulli(0.5, size=x.shape)
    loss = ((dropout(x, 0.5, kept.astype(bool)) @ params[0] - y) ** 2).mean()
    kept.name = "kept"
    updates = {p: p * np.float32(1) for p in params}
    optimizer = {**updates, rng: next_rng} if given else lambda loss, params: updates
    program = export_training_step(loss, params, optimizer, inputs=[x, y], extra_outputs=[kept])
    assert "equal to PyTensor" in str(program.verification)
    state, masks = state_of(0), []
    for _ in range(3):
        loss, mask = program(*data)
        # PyTensor holds 0.5 in float32, and so are the numbers that it is compared with.
        state, numbers = reference.uniform(state, mask.size, "float32")
        np.testing.assert_array_equal(mask.ravel(), numbers < 0.5)
        residual = data[0] * mask * 2 @ [1.0, -1.0] - data[1]
        np.testing.assert_allclose(loss, (residual**2).mean(), rtol=1e-5)
        masks.append(mask)
    np.testing.assert_array_equal(program.state["mask_rng"], state)
    assert not np.array_equal(masks[0], masks[1])


def descent(loss, params, rate):
    return {p: (p - rate * pt.grad(loss, p)).astype(p.dtype) for p in params}


class Descent:
    def __init__(self, step_size):
        self.step_size = step_size

    def __call__(self, loss, params):
        return descent(loss, params, self.step_size)


def sgd_updates(loss, params, learning_rate=0.1):
    return list(descent(loss, params, learning_rate).items())


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [
        (lambda lr: lambda loss, params: descent(loss, params, lr), "lr"),
        (lambda lr=0.5, momentum=0.0: lambda loss, params: descent(loss, params, lr), "lr"),
        (lambda *, learning_rate: Descent(learning_rate), "learning_rate"),
        (Descent, "step_size"),
        (sgd_updates, "learning_rate"),
        (lambda loss, params: descent(loss, params, pt.fscalar("rate")), "rate"),
    ],
)
def test_learning_rate_is_an_input_under_the_name_of_its_argument(regression, optimizer, name):
    x, y, params, loss = regression
    program = export_training_step(loss, params, optimizer, inputs=[x, y])
    assert [value.name for value in program.inputs] == ["x", "y", name]
    data = np.eye(2, dtype="float32"), np.zeros(2, "float32")
    program(*data, np.float32(0.5))
    np.testing.assert_allclose(program.state["w"], [0.25, -0.75], rtol=1e-6)


def test_an_optimizer_without_updates_is_refused_with_the_expected_form(regression):
    _, _, params, loss = regression

    def momentum_of_two_arguments(lr, decay):
        return lambda loss, params: {}

    message = "gives no updates, but a function: give a rule .loss, params. -> updates, or a func"
    with pytest.raises(ArgumentError, match=message):
        export_training_step(loss, params, momentum_of_two_arguments)


@pytest.mark.parametrize("target", ["web", "node"])
@pytest.mark.parametrize("path", ["step.onnx", None])
def test_runtimes_that_take_no_value_for_a_default_get_none(regression, tmp_path, target, path):
    x, y, params, loss = regression
    file, state_path = path and tmp_path / path, path and tmp_path / "state.onnx"
    program = export_training_step(
        loss, params, momentum, file, inputs=[x, y], target=target, state_path=state_path
    )
    graph = onnx.load(file).graph if file else program.proto.graph
    assert {"w", "b"} < {value.name for value in graph.input}
    assert not {value.name for value in graph.input} & {tensor.name for tensor in graph.initializer}
    if state_path:
        names = [v.name for v in ort.InferenceSession(state_path).get_outputs()]
        assert names == list(program.state)


def test_axes_are_named_and_the_step_verified_on_given_inputs(regression, data):
    x, y, params, loss = regression
    axes = {"x": {0: "row"}, "y": {0: "row"}}
    values = [*data, np.float32(0.1)]
    program = export_training_step(
        loss, params, momentum, inputs=[x, y], dynamic_axes=axes, example_inputs=values
    )
    dims = {value.name: list(value.shape) for value in program.model.graph.inputs}
    assert str(dims["x"][0]) == str(dims["y"][0]) == "row"
    assert program.verification.samples
