"""Models as graphs: sources, inputs, weights, calls and errors."""

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper, numpy_helper
from pytensor.compile.sharedvalue import SharedVariable

from pytensor_onnx import (
    ArgumentError,
    PyTensorONNXError,
    UnsupportedOpError,
    export_onnx,
    from_onnx,
    nn,
)
from pytensor_onnx.functions.special.modified_bessel import i0e
from tests.importing.models import PYTHON, by_runtime, evaluated, model_of

WEIGHTS = np.arange(6, dtype="float32").reshape(3, 2)


def dense() -> onnx.ModelProto:
    """Return a model of one layer over a batch of open size."""
    return model_of(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        inputs={"x": ("batch", 3)},
        outputs={"y": ("batch", 2)},
        constants={"w": WEIGHTS},
    )


def test_a_model_is_read_from_each_kind_of_source(tmp_path):
    proto = dense()
    onnx.save(proto, tmp_path / "dense.onnx")
    x = np.float32([[1, -1, 2]])
    sources = [
        proto,
        proto.SerializeToString(),
        tmp_path / "dense.onnx",
        str(tmp_path / "dense.onnx"),
        ir.serde.deserialize_model(proto),
    ]
    for source in sources:
        graph = from_onnx(source)
        np.testing.assert_array_equal(evaluated(graph, x)[0], np.maximum(x @ WEIGHTS, 0))


def test_variables_have_names_dtypes_and_sizes_of_the_file():
    graph = from_onnx(dense())
    (x,), (y,) = graph.inputs, graph.outputs
    assert (x.name, x.type.dtype, x.type.shape) == ("x", "float32", (None, 3))
    assert (y.name, y.type.shape) == ("y", (None, 2))
    assert graph.dynamic_axes == {"x": {0: "batch"}}
    assert list(graph.weights) == ["w"]


def test_trainable_weights_are_shared_variables_with_gradients():
    graph = from_onnx(dense(), trainable=True)
    (w,) = graph.weights.values()
    (gradient,) = (pytensor.gradient.grad(graph.outputs[0].sum(), [w]),)
    value = gradient[0].eval({graph.inputs[0]: np.float32([[1, 2, 3]])}, mode=PYTHON)
    np.testing.assert_array_equal(value, [[1, 1], [2, 2], [3, 3]])


def test_a_predicate_chooses_the_trainable_weights():
    assert not from_onnx(dense(), trainable=lambda name, array: name != "w").weights["w"].owner
    fixed = from_onnx(dense(), trainable=lambda name, array: name != "w").weights["w"]
    assert isinstance(fixed, pt.TensorConstant)


def test_a_call_applies_the_graph_to_variables_of_the_caller_with_the_same_weights():
    graph = from_onnx(dense(), trainable=True)
    x = pt.matrix("mine", dtype="float32")
    once, twice = graph(x=x), graph(2 * x)
    graph.weights["w"].set_value(np.ones((3, 2), "float32"))
    value = np.float32([[1, 2, 3]])
    assert once.eval({x: value}, mode=PYTHON).tolist() == [[6, 6]]
    assert twice.eval({x: value}, mode=PYTHON).tolist() == [[12, 12]]


def test_a_call_keeps_random_variables_of_the_caller():
    x = pt.random.normal(size=(1, 3), rng=pytensor.shared(np.random.default_rng(1)))
    x = x.astype("float32")
    assert x in pytensor.graph.traversal.ancestors([from_onnx(dense())(x=x)])


def test_a_graph_is_vectorised_over_leading_axes():
    x = np.float32([[[1, 2, 3]], [[-1, 0, 1]]])
    result = from_onnx(dense())(pt.constant(x), vectorize=True).eval(mode=PYTHON)
    np.testing.assert_array_equal(result, np.maximum(x @ WEIGHTS, 0))


def test_inputs_may_be_given_values_and_variables():
    model = model_of(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        inputs={"x": (2, 3), "axes": (1,)},
        outputs={"y": (None,)},
        dtypes={"axes": TensorProto.INT64},
    )
    with pytest.raises(UnsupportedOpError, match=r"(?s)depends on axes.*inputs=\{'axes': value\}"):
        from_onnx(model)
    x = pt.matrix("mine", dtype="float32")
    graph = from_onnx(model, inputs={"axes": [1], "x": x})
    assert graph.inputs == []
    assert graph.outputs[0].eval({x: np.ones((2, 3), "float32")}, mode=PYTHON).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": {"xx": 1}}, "no input or value xx: did you mean x"),
        ({"outputs": ["yy"]}, "no value yy: did you mean y"),
        ({"outputs": "y"}, r"give a list, \['y'\]"),
        ({"outputs": []}, "names no value"),
        ({"shapes": {"bach": 1}}, "did you mean batch"),
        ({"inputs": {"x": pt.fvector()}}, "has 2 axes"),
        (
            {
                "inputs": {"x": pt.ftensor(shape=(None, 4))}
                if hasattr(pt, "ftensor")
                else {"x": pt.tensor(shape=(None, 4), dtype="float32")}
            },
            "size 3, not 4",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        from_onnx(dense(), **arguments)


def branching():
    """Return a model whose branches read a value of the main graph."""
    branches = {
        name: helper.make_graph(
            [helper.make_node(operator, ["features"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, (None, 3))],
        )
        for name, operator in (("then", "Exp"), ("else", "Neg"))
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Tanh", ["product"], ["features"]),
        helper.make_node(
            "If", ["flag"], ["y"], then_branch=branches["then"], else_branch=branches["else"]
        ),
    ]
    return model_of(
        nodes,
        inputs={"x": (None, 2), "flag": ()},
        outputs={"y": (None, 3)},
        constants={"w": np.float32([[1, 2, 3], [4, 5, 6]])},
        dtypes={"flag": TensorProto.BOOL},
    )


def test_outputs_may_be_values_within_the_file():
    x = np.float32([[0.1, 0.2]])
    whole, part = from_onnx(branching()), from_onnx(branching(), outputs=["features", "y"])
    assert [v.name for v in part.inputs] == ["x", "flag"]
    features, y = evaluated(part, x, True)
    np.testing.assert_array_equal(y, evaluated(whole, x, True)[0])
    alone = from_onnx(branching(), outputs=["features"], trainable=True)
    assert ([v.name for v in alone.inputs], [*alone.weights]) == (["x"], ["w"])
    np.testing.assert_array_equal(evaluated(alone, x)[0], features)


def test_a_graph_may_be_cut_at_a_value_within_the_file():
    z = pt.matrix("z", dtype="float32")
    graph = from_onnx(branching(), {"features": z})
    assert [v.name for v in graph.inputs] == ["flag"]
    function = pytensor.function([z, *graph.inputs], graph.outputs, mode=PYTHON)
    given = np.float32([[1, 2, 3]])
    np.testing.assert_allclose(function(given, True)[0], np.exp(given), rtol=1e-6)
    np.testing.assert_array_equal(function(given, False)[0], -given)
    middle = from_onnx(branching(), {"product": z}, outputs=["features"])
    np.testing.assert_allclose(middle.outputs[0].eval({z: given}), np.tanh(given), rtol=1e-6)
    assert middle.inputs == []
    assert [*from_onnx(branching(), {"features": given}).weights] == []


def test_sizes_may_be_given_by_axis_and_by_input():
    assert from_onnx(dense(), shapes={"batch": 4}).outputs[0].type.shape == (4, 2)
    assert from_onnx(dense(), shapes={"x": (4, None)}).outputs[0].type.shape == (4, 2)


def test_all_operators_that_cannot_be_imported_are_listed():
    model = model_of(
        [
            helper.make_node("StringSplit", ["x"], ["a", "b"], name="first"),
            helper.make_node("Foo", ["x"], ["c"], name="second", domain="com.example"),
            helper.make_node("Add", ["a", "c"], ["y"]),
        ],
        inputs={"x": (2,)},
        outputs={"y": (2,)},
    )
    with pytest.raises(UnsupportedOpError) as raised:
        from_onnx(model)
    text = str(raised.value)
    assert "2 parts" in text
    assert "StringSplit first" in text
    assert "com.example.Foo second" in text
    assert "Add" not in text


def test_unknown_operators_behind_others_are_counted_by_kind():
    def node(operator, *operands, result):
        return helper.make_node(operator, operands, [result], domain="com.microsoft")

    body = helper.make_graph(
        [node("NhwcFusedConv", "x", result="z")],
        "body",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, (2,))],
    )
    model = model_of(
        [
            node("QLinearReduceMean", "x", result="a"),
            node("QLinearReduceMean", "a", result="b"),
            node("QEmbedLayerNormalization", "b", result="c"),
            helper.make_node("If", ["is"], ["d"], then_branch=body, else_branch=body),
            node("Other", "d", result="y"),
        ],
        inputs={"x": (2,), "is": ()},
        outputs={"y": (2,)},
        dtypes={"is": TensorProto.BOOL},
    )
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedOpError) as raised:
        from_onnx(model)
    text = str(raised.value)
    assert "4 parts" in text
    assert "com.microsoft.QLinearReduceMean, 2 nodes\n" in text
    assert "com.microsoft.NhwcFusedConv, 2 nodes\n" in text
    for option in ("QuantFormat.QDQ", "ORT_ENABLE_BASIC"):
        assert option in text


def voice_detector() -> onnx.ModelProto:
    """Return a model of one rank for 16 kHz and windows of 512 only, as silero-vad's is."""

    def branch(name, *nodes):
        out = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph(list(nodes), name, [], [out])

    nodes = [
        helper.make_node("Equal", ["sr", "rate"], ["is_fast"]),
        helper.make_node("Shape", ["x"], ["size"], start=1, end=2),
        helper.make_node("Equal", ["size", "window"], ["is_window"]),
        helper.make_node(
            "If",
            ["is_fast"],
            ["h"],
            then_branch=branch("t1", helper.make_node("Relu", ["x"], ["t1"])),
            else_branch=branch("e1", helper.make_node("ReduceSum", ["x"], ["e1"], keepdims=0)),
        ),
        helper.make_node(
            "If",
            ["is_window"],
            ["y"],
            then_branch=branch("t2", helper.make_node("Relu", ["x"], ["t2"])),
            else_branch=branch("e2", helper.make_node("ReduceSum", ["x"], ["e2"], keepdims=0)),
        ),
        helper.make_node("Add", ["h", "y"], ["s"]),
        helper.make_node("MatMul", ["s", "w"], ["z"]),
    ]
    return model_of(
        nodes,
        inputs={"x": (None, None), "sr": (), "unused": (None, 3)},
        outputs={"z": (None, None)},
        constants={
            "rate": np.int64(16000),
            "window": np.int64([512]),
            "w": np.ones((512, 2), "float32"),
        },
        dtypes={"sr": TensorProto.INT64},
    )


def test_errors_have_the_smallest_call_that_imports_the_model():
    call = "from_onnx(model, inputs={'sr': 16000}, shapes={'x': (1, 512)})"
    for arguments in ({}, {"inputs": {"sr": 16000}}, {"shapes": {"x": (1, 512)}}):
        with pytest.raises(UnsupportedOpError) as raised:
            from_onnx(voice_detector(), **arguments)
        assert str(raised.value).endswith(call)
    text = str(raised.value)
    assert "inputs={'sr': value}" in text
    graph = from_onnx(voice_detector(), inputs={"sr": 16000}, shapes={"x": (1, 512)})
    assert graph.outputs[0].type.shape == (1, 2)


def test_hints_name_the_sizes_that_are_not_known():
    node = helper.make_node("Squeeze", ["h"], ["y"])
    model = model_of(
        [helper.make_node("Relu", ["x"], ["h"]), node],
        inputs={"x": ("n", 3, "m")},
        outputs={"y": None},
    )
    with pytest.raises(UnsupportedOpError, match="depends on the sizes of x") as raised:
        from_onnx(model)
    assert "shapes={'x': (size, 3, size)}" in str(raised.value)
    assert str(raised.value).endswith("shapes={'x': (1, 3, 1)})")


def test_computed_shapes_become_sizes():
    """Shape, Gather, Concat and Reshape leave one Reshape with the size of an axis."""
    model = model_of(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "zero"], ["n"], axis=0),
            helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
            helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
            helper.make_node("Reshape", ["x", "target"], ["y"]),
        ],
        inputs={"x": ("batch", 6)},
        outputs={"y": ("batch", 2, 3)},
        constants={
            "zero": np.int64(0),
            "axes": np.int64([0]),
            "rest": np.int64([2, 3]),
        },
    )
    graph = from_onnx(model)
    assert graph.outputs[0].type.shape == (None, 2, 3)
    ops = [type(n.op).__name__ for n in pytensor.graph.traversal.applys_between([], graph.outputs)]
    assert sorted(ops) == ["MakeVector", "Reshape", "Shape_i"]


def test_nodes_out_of_order_are_sorted_and_cycles_refused():
    nodes = [
        helper.make_node("Relu", ["h"], ["y"]),
        helper.make_node("Neg", ["x"], ["h"]),
    ]
    model = model_of(nodes, inputs={"x": (2,)}, outputs={"y": (2,)})
    assert evaluated(from_onnx(model), np.float32([1, -2]))[0].tolist() == [0, 2]
    model.graph.node[1].input[0] = "y"
    with pytest.raises(PyTensorONNXError, match="cycle"):
        from_onnx(model)


def test_files_that_are_no_models_are_refused(tmp_path):
    (tmp_path / "text.onnx").write_text("no model")
    for source in (tmp_path / "text.onnx", b"no model"):
        with pytest.raises(PyTensorONNXError, match="cannot be read as an ONNX model"):
            from_onnx(source)
    with pytest.raises(FileNotFoundError):
        from_onnx(tmp_path / "missing.onnx")
    with pytest.raises(ArgumentError, match="takes a path"):
        from_onnx(3)


def test_values_that_nothing_computes_are_named():
    model = model_of(
        [helper.make_node("Add", ["x", "h"], ["y"])], inputs={"x": (2,)}, outputs={"y": (2,)}
    )
    with pytest.raises(PyTensorONNXError, match=r"value h\n.*no node computes it"):
        from_onnx(model)


def test_missing_weights_are_named(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(dense(), path, save_as_external_data=True, location="net.bin", size_threshold=0)
    np.testing.assert_array_equal(
        evaluated(from_onnx(path), np.eye(3, dtype="float32"))[0], WEIGHTS
    )
    (tmp_path / "net.bin").unlink()
    with pytest.raises(PyTensorONNXError, match=r"net\.bin"):
        from_onnx(path)


def test_a_model_of_ours_that_updates_a_state_has_it():
    counter = pytensor.shared(np.float32(2), name="counter")
    x = pt.fscalar("x")
    program = export_onnx([x], x * counter, updates={counter: counter + 1}, output_names=["y"])
    graph = from_onnx(program)
    assert [v.name for v in graph.inputs] == ["x"]
    assert list(graph.state) == ["counter"]
    function = pytensor.function(graph.inputs, graph.outputs[0], updates=graph.updates, mode=PYTHON)
    assert [float(function(1)), float(function(1))] == [2, 3]


def test_an_exported_network_comes_back_as_the_same_operations():
    x = pt.tensor("x", shape=(None, 3, 8, 8), dtype="float32")
    w = np.ones((4, 3, 3, 3), "float32")
    y = nn.max_pool(nn.relu(nn.conv2d(x, w, border_mode=1)), 2)
    program = export_onnx([x], y)
    graph = from_onnx(program)
    again = export_onnx(graph.inputs, graph.outputs)
    assert [n.op_type for n in again.model.graph] == [n.op_type for n in program.model.graph]


def test_a_definition_of_ours_comes_back_as_its_operation():
    x = pt.vector("x")
    graph = from_onnx(export_onnx([x], pt.gammaln(x) + pt.erfcx(x) + i0e(x)))
    ops = {str(n.op) for n in pytensor.graph.traversal.applys_between([], graph.outputs)}
    assert ops >= {"Gammaln", "Erfcx", "I0e"}


def test_a_file_is_held_once(tmp_path):
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        inputs={"x": ("n", 4)},
        outputs={"y": ("n", 3)},
        constants={"w": np.ones((4, 3), "float32")},
    )
    onnx.save(model, tmp_path / "net.onnx")
    graph = from_onnx(tmp_path / "net.onnx")
    stored = graph._source.model.graph.initializers["w"].const_value
    assert np.shares_memory(graph.weights["w"].data, stored.numpy())


def layers() -> onnx.ModelProto:
    """Return two convolutions with batch norms behind them."""
    nodes, last = [], "x"
    rng = np.random.default_rng(3)
    constants: dict[str, np.ndarray] = {}
    for name in ("first", "second"):
        constants[f"{name}.weight"] = rng.normal(size=(2, 2, 1, 1)).astype("float32")
        statistics = [f"{name}.{part}" for part in ("scale", "bias", "mean", "var")]
        constants |= {n: rng.uniform(0.5, 2, 2).astype("float32") for n in statistics}
        nodes.append(helper.make_node("Conv", [last, f"{name}.weight"], [f"{name}.c"]))
        nodes.append(
            helper.make_node(
                "BatchNormalization", [f"{name}.c", *statistics], [f"{name}.y"], momentum=0.75
            )
        )
        last = f"{name}.y"
    return model_of(nodes, inputs={"x": ("n", 2, 3, 3)}, outputs={last: None}, constants=constants)


def test_batch_norms_take_statistics_of_the_batch_in_training():
    model = layers()
    graph = from_onnx(model, trainable=True, training=True)
    start = {name: variable.get_value() for name, variable in graph.state.items()}
    assert list(start) == ["first.mean", "first.var", "second.mean", "second.var"]
    step = pytensor.function(graph.inputs, graph.outputs, updates=graph.updates, mode=PYTHON)
    x = np.random.default_rng(1).normal(2, 3, (5, 2, 3, 3)).astype("float32")
    (y,) = step(x)
    scale, bias = (graph.weights[f"second.{part}"].get_value() for part in ("scale", "bias"))
    np.testing.assert_allclose(y.mean(axis=(0, 2, 3)), bias, rtol=1e-4)
    np.testing.assert_allclose(y.std(axis=(0, 2, 3)), scale, rtol=1e-4)
    weight = graph.weights["first.weight"].get_value()[:, :, 0, 0]
    batch = np.einsum("oi,nihw->nohw", weight, x)
    for part, value in (("mean", batch.mean(axis=(0, 2, 3))), ("var", batch.var(axis=(0, 2, 3)))):
        expected = 0.75 * start[f"first.{part}"] + 0.25 * value
        np.testing.assert_allclose(graph.state[f"first.{part}"].get_value(), expected, rtol=1e-5)
    inference = graph.inference()
    assert inference.weights["first.weight"] is graph.weights["first.weight"]
    values = {n: v.get_value() for n, v in {**graph.weights, **graph.state}.items()}
    for initializer in model.graph.initializer:
        initializer.CopyFrom(numpy_helper.from_array(values[initializer.name], initializer.name))
    (found,) = evaluated(inference, x)
    np.testing.assert_allclose(found, by_runtime(model, x)[0], rtol=1e-4, atol=1e-5)
    plain = from_onnx(model)
    assert plain.inference() is plain
    assert not plain.state


@pytest.mark.parametrize(
    ("patterns", "trained"),
    [
        ("second.*", ["second.weight", "second.scale", "second.bias"]),
        (
            ["*", "!first.*", "first.bias"],
            ["first.bias", "second.weight", "second.scale", "second.bias"],
        ),
        (["*.scale"], ["first.scale", "second.scale"]),
    ],
)
def test_weights_are_trained_and_frozen_by_patterns_of_names(patterns, trained):
    weights = from_onnx(layers(), trainable=patterns).weights
    shared = [name for name, v in weights.items() if isinstance(v, SharedVariable)]
    assert sorted(shared) == sorted(trained)


def test_a_pattern_that_matches_no_weight_is_an_error():
    with pytest.raises(ArgumentError, match=r"no weight matches trainable='secnd.bias': did you"):
        from_onnx(layers(), trainable=["first.*", "secnd.bias"])


def test_trained_weights_of_one_row_broadcast():
    model = model_of(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        inputs={"x": ("n", 3)},
        outputs={"y": ("n", 3)},
        constants={"w": np.float32([[1, 2, 3]])},
    )
    graph = from_onnx(model, trainable=True)
    gradient = pytensor.grad(graph.outputs[0].sum(), graph.weights["w"])
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(evaluated(graph, x)[0], x * [[1, 2, 3]])
    np.testing.assert_array_equal(gradient.eval({graph.inputs[0]: x}, mode=PYTHON), [[5, 7, 9]])
