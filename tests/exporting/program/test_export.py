"""Graphs and compiled functions become models that bare ONNX Runtime runs."""

import numpy as np
import onnx
import onnxruntime as ort
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import typed_list
from pytensor.graph import Apply, Op
from pytensor.tensor.type_other import NoneConst

from pytensor_onnx import (
    InputError,
    PyTensorONNXError,
    SessionOptions,
    UnsupportedOpError,
    UnsupportedTypeError,
    compile_onnx,
    export_function_onnx,
    export_onnx,
    export_value_and_grad,
    nn,
)
from tests.conftest import Zipf, op_types, sweep_rest


class Unknown(Op):
    """An operation that no lowering knows."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] + 1


def run_bare(model, *arrays, **named):
    session = ort.InferenceSession(str(model))
    names = [x.name for x in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=False)) | named)


@pytest.fixture
def x():
    return pt.matrix("x")


def test_exported_file_runs_in_bare_onnxruntime(x, tmp_path):
    export_onnx([x], pt.tanh(x).sum(axis=1), tmp_path / "model.onnx")
    a = np.array([[0.5, -1.0], [2.0, 0.0]])
    (found,) = run_bare(tmp_path / "model.onnx", a)
    np.testing.assert_allclose(found, np.tanh(a).sum(axis=1), rtol=1e-12)


def test_single_variable_gives_an_array_and_a_list_gives_a_list(x):
    a = np.ones((2, 2))
    assert isinstance(compile_onnx([x], x + 1)(a), np.ndarray)
    assert isinstance(compile_onnx([x], [x + 1])(a), list)


def test_shared_variables_become_weights_under_their_names(x):
    w = pytensor.shared(np.array([[1.0, 2.0], [3.0, 4.0]]), name="w")
    program = export_onnx([x], x @ w)
    assert [v.name for v in program.inputs] == ["x"]
    np.testing.assert_array_equal(
        program.model.graph.initializers["w"].const_value.numpy(), w.get_value()
    )
    w.set_value(np.zeros((2, 2)))
    np.testing.assert_array_equal(program(np.eye(2)), [[1.0, 2.0], [3.0, 4.0]])


def test_updated_shared_variables_become_inputs_with_defaults_and_outputs(tmp_path):
    x, total = pt.vector("x"), pytensor.shared(np.array([1.0, 2.0]), name="total")
    path = tmp_path / "model.onnx"
    export_onnx([x], x * 2, path, updates={total: total + x})
    session = ort.InferenceSession(str(path))
    assert [v.name for v in session.get_inputs()] == ["x"]
    assert [v.name for v in session.get_overridable_initializers()] == ["total"]
    assert [v.name for v in session.get_outputs()] == ["output_0", "total_next"]
    a = np.array([10.0, 20.0])
    np.testing.assert_array_equal(session.run(["total_next"], {"x": a})[0], [11.0, 22.0])
    given = session.run(["total_next"], {"x": a, "total": np.zeros(2)})[0]
    np.testing.assert_array_equal(given, a)


def test_program_keeps_its_state():
    x, total = pt.scalar("x"), pytensor.shared(0.0, name="total")
    program = compile_onnx([x], total, updates={total: total + x})
    assert [float(program(v)) for v in (1.0, 2.0, 3.0)] == [0.0, 1.0, 3.0]
    assert float(program.state["total"]) == 6.0
    assert total.get_value() == 0.0


@pytest.mark.parametrize(
    "mode", sweep_rest(["FAST_COMPILE", "NUMBA", "CVM", "ONNX"], ("FAST_COMPILE", "NUMBA", "ONNX"))
)
@pytest.mark.few(1)
def test_compiled_functions_of_any_mode_are_exported(mode):
    x = pt.matrix("x")
    w = pytensor.shared(np.array([[0.5, -0.25], [1.0, 2.0]]), name="w")
    b = pytensor.shared(np.array([0.1, 0.2]), name="b")
    loss = (pt.tanh(x @ w + b) ** 2).mean()
    gw, gb = pt.grad(loss, [w, b])
    f = pytensor.function([x], loss, updates={w: w - 0.1 * gw, b: b - 0.1 * gb}, mode=mode)
    program = export_function_onnx(f)
    a = np.array([[0.3, -0.7], [0.2, 0.9], [1.0, 1.0]])
    for _ in range(3):
        np.testing.assert_allclose(program(a), f(a), rtol=1e-12)
    np.testing.assert_allclose(program.state["w"], w.get_value(), rtol=1e-12)
    np.testing.assert_allclose(program.state["b"], b.get_value(), rtol=1e-12)


def test_compiled_function_with_several_outputs_and_givens():
    x, y = pt.vector("x"), pt.vector("y")
    f = pytensor.function([x], [x + y, y], givens={y: x * 3}, mode="FAST_COMPILE")
    program = export_function_onnx(f)
    for found, expected in zip(program([1.0, 2.0]), f([1.0, 2.0]), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_compiled_function_exports_present_values():
    x, w = pt.vector("x"), pytensor.shared(2.0, name="w")
    f = pytensor.function([x], x * w, mode="FAST_COMPILE")
    w.set_value(5.0)
    np.testing.assert_array_equal(export_function_onnx(f)([1.0]), [5.0])


def test_dynamic_axes_name_dimensions(x):
    program = export_onnx([x], x * 2, dynamic_axes={"x": {0: "batch", -1: "features"}})
    assert list(map(str, program.model.graph.inputs[0].shape)) == ["batch", "features"]
    assert list(map(str, program.model.graph.outputs[0].shape)) == ["batch", "features"]


def test_unnamed_dimensions_are_named_after_their_input(x):
    program = export_onnx([x], x * 2)
    assert list(map(str, program.model.graph.inputs[0].shape)) == ["x_dim0", "x_dim1"]


def test_dynamic_axes_of_unknown_input_are_refused(x):
    with pytest.raises(PyTensorONNXError, match="'z'"):
        export_onnx([x], x * 2, dynamic_axes={"z": {0: "batch"}})


def test_example_inputs_make_shapes_static(x):
    a = np.ones((2, 3))
    program = export_onnx([x], x.reshape((-1,)) + x.shape[0], example_inputs=[a])
    assert list(program.model.graph.inputs[0].shape) == [2, 3]
    assert list(program.model.graph.outputs[0].shape) == [6]
    assert op_types(program) == ["Reshape", "Add"]
    with pytest.raises(InputError, match=r"x: float64\[2, 3\]"):
        program(np.ones((3, 3)))


def test_too_few_example_inputs_are_refused(x):
    y = pt.vector("y")
    with pytest.raises(InputError, match="y"):
        export_onnx([x, y], x + y, example_inputs=[np.ones((2, 2))])


def test_static_dimensions_are_kept():
    x = pt.tensor("x", shape=(None, 3), dtype="float32")
    program = export_onnx([x], x * 2)
    assert program.model.graph.inputs[0].shape[1] == 3
    assert program.model.graph.outputs[0].shape[1] == 3


@pytest.mark.parametrize("target", ["onnxruntime", "web", "standard"])
def test_the_latest_opset_has_the_operators_of_transformers(target):
    q = pt.tensor4("q", dtype="float32")
    y = nn.attention(q, q, q)
    program = export_onnx([q], y, opset_version="latest", target=target)
    assert op_types(program) == ["Attention"]
    assert program.proto.opset_import[0].version == 23
    with pytest.raises(PyTensorONNXError, match="a number or 'latest', not 'newest'"):
        export_onnx([q], y, opset_version="newest")


@pytest.mark.parametrize(
    ("opset_version", "ir_version"), [(18, 10), (21, 10), (23, 10), (26, 10), (27, 13), (28, 14)]
)
def test_opset_is_selectable(x, opset_version, ir_version):
    program = export_onnx([x], pt.erf(x).sum(), opset_version=opset_version)
    assert program.proto.opset_import[0].version == opset_version
    assert program.proto.ir_version == ir_version


def test_target_and_precision_are_checked(x):
    with pytest.raises(ValueError, match="onnxruntime"):
        export_onnx([x], x + 1, target="abacus")


def test_missing_inputs_are_named(x):
    y = pt.vector("y")
    with pytest.raises(PyTensorONNXError, match=r"not among the inputs:\n- y"):
        export_onnx([x], x + y)


def test_input_given_twice_is_refused(x):
    with pytest.raises(PyTensorONNXError, match="more than once"):
        export_onnx([x, x], x + 1)


def test_all_unsupported_parts_are_listed_at_once(x):
    z = typed_list.TypedListType(pt.dvector)("z")
    outputs = [Unknown()(x) + 1, typed_list.length(z)]
    outputs.append(Unknown()(x * 2))
    with pytest.raises(UnsupportedOpError) as raised:
        export_onnx([x, z], outputs)
    message = str(raised.value)
    assert message.startswith("3 parts of the graph cannot be converted")
    assert (
        message.count("no lowering is registered for tests.exporting.program.test_export.Unknown")
        == 2
    )
    assert "variable z of type TypedList" in message
    assert "test_export.py" in message
    assert "outputs = [Unknown()(x) + 1" in message
    assert "onnx_funcify.register(Unknown)" in message


def test_unsupported_types_alone_are_a_type_error():
    z = typed_list.TypedListType(pt.dvector)("z")
    with pytest.raises(UnsupportedTypeError, match="only dense tensors"):
        export_onnx([z], typed_list.length(z))


def test_typed_lists_are_an_unsupported_type_as_inputs_and_as_results():
    x = pt.vector("x")
    lists = typed_list.TypedListType(x.type)("lists")
    for inputs, output in (([lists], typed_list.length(lists)), ([x], typed_list.make_list([x]))):
        with pytest.raises(UnsupportedTypeError, match="only dense tensors"):
            export_onnx(inputs, output)


@pytest.mark.parametrize("compiled", [False, True])
def test_distributions_without_a_sampler_are_named(compiled):
    rng = pytensor.shared(np.random.default_rng(0), name="rng")
    next_rng, draws = Zipf()(2.0, rng=rng, size=3, return_next_rng=True)
    updates = {rng: next_rng}
    function = pytensor.function([], draws, updates=updates, mode="FAST_COMPILE")
    with pytest.raises(UnsupportedOpError, match="1 part of the graph") as raised:
        export_function_onnx(function) if compiled else export_onnx([], draws, updates=updates)
    assert "no sampler is defined for zipf" in str(raised.value)


def test_line_of_the_user_is_named_for_nodes_of_rewrites(x):
    with pytest.raises(UnsupportedOpError) as raised:
        export_onnx([x], pt.linalg.eigh(x * 1j)[1].real)
    assert "test_export.py" in str(raised.value)
    assert "/pytensor_onnx/" not in str(raised.value)


def test_nothing_is_written_when_conversion_fails(x, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_text("older file")
    with pytest.raises(UnsupportedOpError):
        export_onnx([x], Unknown()(x), path)
    assert path.read_text() == "older file"
    assert list(tmp_path.iterdir()) == [path]


def test_outputs_that_are_none_are_left_out_of_the_file(x):
    program = export_onnx([x], [NoneConst, x * 2, NoneConst], output_names=["a", "b", "c"])
    assert [value.name for value in program.model.graph.outputs] == ["b"]
    first, doubled, last = program([[1.0]])
    assert first is last is None
    np.testing.assert_array_equal(doubled, [[2.0]])
    assert "equal to PyTensor" in str(program.verification)


def test_inlined_functions_leave_no_function(x):
    program = export_onnx([x], pt.erf(x), inline_functions=True)
    assert not program.proto.functions
    a = np.array([[0.5, -0.5]])
    np.testing.assert_allclose(program(a), export_onnx([x], pt.erf(x))(a), rtol=1e-15)


def test_session_options_reach_the_runtime(x, tmp_path):
    optimized = tmp_path / "optimized.onnx"
    options = SessionOptions(threads=1, optimization="basic", optimized_model_path=optimized)
    program = compile_onnx([x], x + 1, session_options=options)
    program(np.ones((1, 1)))
    onnx.load(optimized)


def test_missing_provider_is_named(x):
    with pytest.raises(PyTensorONNXError, match="NoSuchProvider"):
        compile_onnx([x], x + 1, providers=["NoSuchProvider"])


def test_model_says_where_it_comes_from(x):
    program = export_onnx([x], pt.exp(x).sum(axis=0))
    assert program.proto.producer_name == "pytensor-onnx"
    metadata = {p.key: p.value for p in program.proto.metadata_props}
    assert metadata["pytensor_version"] == pytensor.__version__
    exp, reduce_sum = program.model.graph
    assert exp.metadata_props["pytensor.op"] == "Exp"
    assert reduce_sum.metadata_props["pytensor.op"] == "Sum{axis=0}"


def test_jacobians_and_hessian_products_export():
    x, v = pt.vector("x"), pt.vector("v")
    cost = (x**3).sum() * x[0]
    hessian_product = pt.grad((pt.grad(cost, x) * v).sum(), x)
    program = export_onnx([x, v], [pt.grad(cost, x), hessian_product])
    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    f = pytensor.function([x, v], [pt.grad(cost, x), hessian_product], mode="FAST_COMPILE")
    for found, expected in zip(program(a, b), f(a, b), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_value_and_gradients_export_together():
    x, w = pt.matrix("x"), pytensor.shared(np.array([0.5, -1.0]), name="w")
    cost = pt.exp(x @ w).sum()
    program = export_value_and_grad([x], cost, [x, w])
    assert [v.name for v in program.model.graph.outputs] == ["cost", "grad_x", "grad_w"]
    assert op_types(program).count("Exp") == 1
    a = np.array([[1.0, 2.0], [0.0, 1.0]])
    e = np.exp(a @ w.get_value())
    value, grad_x, grad_w = program(a)
    np.testing.assert_allclose(value, e.sum(), rtol=1e-12)
    np.testing.assert_allclose(grad_x, e[:, None] * w.get_value(), rtol=1e-12)
    np.testing.assert_allclose(grad_w, e @ a, rtol=1e-12)


def adam_step(loss, parameters, rate):
    """Return the updates of Adam (Kingma and Ba 2015, algorithm 1)."""
    updates = {}
    step = pytensor.shared(np.asarray(0.0, "float32"), name="step")
    t = step + 1
    updates[step] = t
    for parameter, gradient in zip(parameters, pt.grad(loss, parameters), strict=True):
        zeros = np.zeros_like(parameter.get_value())
        m = pytensor.shared(zeros, name=f"{parameter.name}_m")
        v = pytensor.shared(zeros, name=f"{parameter.name}_v")
        updates[m] = pt.cast(0.9 * m + 0.1 * gradient, "float32")
        updates[v] = pt.cast(0.999 * v + 0.001 * gradient**2, "float32")
        scaled = (updates[m] / (1 - 0.9**t)) / (pt.sqrt(updates[v] / (1 - 0.999**t)) + 1e-8)
        updates[parameter] = pt.cast(parameter - rate * scaled, "float32")
    return updates


@pytest.mark.slow
def test_adam_step_exported_as_one_file_trains_with_onnxruntime_alone(tmp_path):
    rng = np.random.default_rng(0)

    def parameter(name, *shape):
        return pytensor.shared(rng.normal(scale=0.5, size=shape).astype("float32"), name=name)

    parameters = [parameter("W1", 2, 16), parameter("b1", 16), parameter("W2", 16, 2)]
    w1, b1, w2 = parameters
    x, y, rate = pt.fmatrix("x"), pt.ivector("y"), pt.fscalar("rate")
    log_p = pt.special.log_softmax(pt.maximum(x @ w1 + b1, 0) @ w2, axis=1)
    loss = -(log_p * pt.eq(y[:, None], pt.arange(2))).sum(axis=1).mean()
    step = pytensor.function(
        [x, y, rate], loss, updates=adam_step(loss, parameters, rate), mode="FAST_COMPILE"
    )
    path = tmp_path / "step.onnx"
    export_function_onnx(step, path, dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})

    session = ort.InferenceSession(str(path))
    names = [v.name for v in session.get_outputs()]
    state = {}
    points = rng.normal(size=(200, 2)).astype("float32")
    labels = (points[:, 0] * points[:, 1] > 0).astype("int32")
    losses = []
    for _ in range(150):
        feed = {"x": points, "y": labels, "rate": np.array(0.05, "float32")} | state
        results = dict(zip(names, session.run(names, feed), strict=True))
        losses.append(float(results[names[0]]))
        state = {k.removesuffix("_next"): v for k, v in results.items() if k.endswith("_next")}
        if len(losses) <= 3:
            assert losses[-1] == pytest.approx(
                float(step(points, labels, np.float32(0.05))), rel=1e-5
            )
    assert losses[-1] < 0.15 < losses[0]


def test_a_function_gives_its_name_and_those_of_its_inputs(tmp_path):
    x, y = pt.vector(), pt.vector("y")
    inputs = [pytensor.In(x, name="amount"), y]
    function = pytensor.function(inputs, x * y, name="interest", mode="FAST_COMPILE")
    program = export_function_onnx(function)
    assert [value.name for value in program.inputs] == ["amount", "y"]
    assert program.model.graph.name == "interest"
    assert program(amount=[2.0], y=[3.0]) == 6.0


def test_a_graph_without_a_name_has_that_of_its_file(tmp_path):
    x = pt.vector("x")
    assert export_onnx([x], x + 1, tmp_path / "plus_one.onnx").model.graph.name == "plus_one"
    assert export_onnx([x], x + 1).model.graph.name == "main_graph"


def test_sizes_of_shared_arrays_are_known_without_being_declared():
    def network(**typed):
        x = pt.tensor3("x", shape=(None, 16, 8))
        values = np.arange(8.0).reshape(1, 1, 8), np.ones((1, 17, 8))
        first, positions = (
            pytensor.shared(v, shape=v.shape) if typed.get("declared") else pytensor.shared(v)
            for v in values
        )
        first = pt.broadcast_to(first, (x.shape[0], 1, 8))
        return x, pt.concatenate([first, x], axis=1) + positions

    declared = export_onnx([(xy := network(declared=True))[0]], xy[1], verify=False)
    x, y = network()
    program = export_onnx([x], y)
    assert op_types(program) == op_types(declared)
    value = np.random.default_rng(0).normal(size=(2, 16, 8))
    start = np.broadcast_to(np.arange(8.0), (2, 1, 8))
    np.testing.assert_array_equal(program(value), np.concatenate([start, value], axis=1) + 1)
    assert program(value[:0]).shape == (0, 17, 8)


def test_compiled_functions_with_shared_arrays_of_one_element_are_exported():
    x = pt.vector("x")
    one = pytensor.shared(np.ones(1))
    f = pytensor.function([x], pt.exp(one) * pt.exp(x) + pt.tanh(one), mode="FAST_RUN")
    program = export_function_onnx(f)
    np.testing.assert_allclose(program([2.0]), np.exp(3.0) + np.tanh(1.0))
