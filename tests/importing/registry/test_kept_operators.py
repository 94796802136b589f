"""Operators of imported files that nobody changed are exported as they were."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytensor_onnx import (
    ONNXProgram,
    UnsupportedOpError,
    export_onnx,
    from_onnx,
    load,
    nn,
    optimize_onnx,
)
from pytensor_onnx.exporting.files.file_verification import verify_file
from pytensor_onnx.exporting.files.optimized_files import compare_optimized
from tests.importing.models import by_runtime, evaluated

ML = "ai.onnx.ml"
TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}
RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """Return a node; a dash stands for an operand or a result that is left out."""
    names = [["" if n == "-" else n for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(operator, *names, **attributes)


def model(
    nodes: list[onnx.NodeProto],
    shape: tuple[Any, ...],
    opset: int = 17,
    outputs: dict[str, int] | None = None,
    **constants: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [
            helper.make_tensor_value_info(name, dtype, None)
            for name, dtype in (outputs or {"y": TensorProto.FLOAT}).items()
        ],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


INT8 = {"s": np.float32(0.1), "z": np.int8(3), "w": RNG.integers(-9, 9, (4, 2)).astype("int8")}
WRITTEN = [
    node("Pow", "d two", "q"),
    node("ReduceMean", "q", "v", axes=[-1]),
    node("Add", "v e", "u"),
    node("Sqrt", "u", "r"),
]
NORM = {"two": np.float32(2), "e": np.float32(1e-5), "g": floats(4), "b": floats(4)}
KEPT = {
    "trees": model([node("TreeEnsembleRegressor", "x", "y", domain=ML, **TREE)], ("n", 4)),
    "reflected pad": model(
        [node("Pad", "x p", "y", mode="reflect")], ("n", 4), p=np.int64([0, 2, 0, 3])
    ),
    "quantised weights": model(
        [node("DequantizeLinear", "w s z", "d"), node("MatMul", "x d", "y")], ("n", 4), **INT8
    ),
    "quantised values": model(
        [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")],
        ("n", 4),
        **INT8,
    ),
    "dynamic quantisation": model(
        [
            node("DynamicQuantizeLinear", "x", "q a f"),
            node("Mul", "a s", "t"),
            node("MatMulInteger", "q w f z", "i"),
            node("Cast", "i", "c", to=TensorProto.FLOAT),
            node("Mul", "c t", "y"),
        ],
        ("n", 4),
        **INT8,
    ),
    "two directions": model(
        [node("LSTM", "x w r", "y - c", hidden_size=2, direction="bidirectional")],
        (3, 2, 4),
        outputs={"y": TensorProto.FLOAT, "c": TensorProto.FLOAT},
        w=floats(2, 8, 4),
        r=floats(2, 8, 2),
    ),
    "position": model(
        [node("ArgMax", "x", "y", axis=1)], ("n", 4), outputs={"y": TensorProto.INT64}
    ),
    "sum of exponentials": model(
        [node("ReduceLogSumExp", "x axes", "y", keepdims=0)], ("n", 4), 18, axes=np.int64([1])
    ),
    "mean over an attribute's axes": model(
        [node("ReduceMean", "x", "y", axes=[1])], ("n", 4, "m"), 13
    ),
    "sum of any number of elements": model([node("ReduceSum", "x", "y")], ("n", 4)),
    "bounded numbers": model(
        [node("Clip", "x low high", "y")], ("n", 4), low=np.float32(0), high=np.float32(0.5)
    ),
    "repeated open axes": model(
        [node("Tile", "x counts", "y")], ("n", 2, "m"), counts=np.int64([1, 1, 3])
    ),
    "repeated by a computed number": model(
        [node("Shape", "x", "counts"), node("Tile", "x counts", "y")], ("n", "m")
    ),
    "sum of products": model(
        [node("Einsum", "x w", "y", equation="nij, jk -> nik")], ("n", "m", 4), w=floats(4, 2)
    ),
    "pool of open sizes": model(
        [node("MaxPool", "x", "y", kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER")],
        ("n", 2, "h", "w"),
        11,
    ),
    "convolution of open sizes": model(
        [node("Conv", "x f", "y", strides=[2, 2], auto_pad="SAME_LOWER")],
        ("n", 2, "h", "w"),
        f=floats(3, 2, 3, 3),
    ),
    "pool": model([node("MaxPool", "x", "y", kernel_shape=[2])], ("n", 2, 4)),
    "rotary": model(
        [node("RotaryEmbedding", "x g b", "y")],
        (2, 3, 5, 4),
        23,
        g=floats(2, 5, 2),
        b=floats(2, 5, 2),
    ),
}


def operators(program: ONNXProgram) -> Counter[str]:
    return Counter(node.op_type for node in program.model.graph)


def sample(proto: onnx.ModelProto) -> np.ndarray:
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    return floats(*(d.dim_value or 3 for d in dims))


@pytest.mark.parametrize("name", KEPT)
def test_an_operator_is_exported_as_it_was(name):
    proto = KEPT[name]
    graph, x = from_onnx(proto), sample(proto)
    program = export_onnx(graph.inputs, graph.outputs, dynamic_axes=graph.dynamic_axes)
    assert operators(program) == Counter(n.op_type for n in proto.graph.node)
    found = program(x)
    function = pytensor.function(graph.inputs, graph.outputs, mode="ONNX")
    for results in (
        found if isinstance(found, list) else [found],
        function(x),
        evaluated(graph, x),
    ):
        for result, expected in zip(results, by_exact_runtime(proto, x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def by_exact_runtime(proto: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """Return the results without fusions of quantised operators, which round elsewhere."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options)
    return session.run(None, {"x": x})


def test_a_repetition_by_one_is_none():
    proto = model([node("Tile", "x counts", "y")], ("n", 2), counts=np.int64([1, 1]))
    graph = from_onnx(proto)
    assert graph.outputs[0] is graph.inputs[0] or "Tile" not in str(graph.outputs[0].owner)


LAYER = model(
    [
        node("LSTM", "x w r", "h", hidden_size=2, direction="bidirectional"),
        node("Transpose", "h", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t rows", "y"),
    ],
    ("t", "n", 4),
    w=floats(2, 8, 4),
    r=floats(2, 8, 2),
    rows=np.int64([0, 0, -1]),
)


def test_a_recurrent_layer_becomes_a_loop_when_something_needs_it(monkeypatch):
    scans, scan = [], pytensor.scan

    def counted(*args, **options):
        scans.append(args)
        return scan(*args, **options)

    monkeypatch.setattr(pytensor, "scan", counted)
    graph, x = from_onnx(LAYER), sample(LAYER)
    assert not scans
    assert graph.outputs[0].type.shape == (None, None, 4)
    gradient = pytensor.gradient.grad(graph.outputs[0].sum(), graph.inputs[0])
    assert scans
    found = evaluated(graph, x)[0]
    np.testing.assert_allclose(found, by_runtime(LAYER, x)[0], rtol=1e-5, atol=1e-6)
    function = pytensor.function(graph.inputs, gradient)
    step = np.zeros_like(x)
    step[0, 0, 0] = 1e-2
    ahead, behind = (by_runtime(LAYER, x + sign * step)[0].sum() for sign in (1, -1))
    np.testing.assert_allclose(function(x)[0, 0, 0], (ahead - behind) / 2e-2, rtol=1e-2)


def test_an_activation_that_is_none_is_refused_at_import():
    proto = model(
        [node("RNN", "x w r", "y", hidden_size=2, activations=["Wave"])],
        ("t", "n", 4),
        w=floats(1, 2, 4),
        r=floats(1, 2, 2),
    )
    with pytest.raises(UnsupportedOpError, match="activation wave"):
        from_onnx(proto)


def test_files_for_runtimes_of_any_maker_have_the_expression():
    for name, lacks in (("trees", "TreeEnsembleRegressor"), ("reflected pad", "Pad")):
        graph, x = from_onnx(KEPT[name]), sample(KEPT[name])
        program = export_onnx(
            graph.inputs, graph.outputs[0], target="portable", dynamic_axes=graph.dynamic_axes
        )
        assert lacks not in operators(program)
        assert set(program.model.graph.opset_imports) == {""}
        np.testing.assert_allclose(program(x), by_runtime(KEPT[name], x)[0], rtol=1e-6)


def test_an_operator_of_a_later_opset_raises_that_of_the_file():
    graph = from_onnx(KEPT["rotary"])
    for opset, written, is_kept in ((None, 23, True), (21, 21, False)):
        program = export_onnx(graph.inputs, graph.outputs[0], opset_version=opset, verify=False)
        assert program.model.graph.opset_imports[""] == written
        assert (operators(program) == {"RotaryEmbedding": 1}) is is_kept


def test_a_narrower_file_has_the_expression():
    graph = from_onnx(KEPT["trees"])
    program = export_onnx(graph.inputs, graph.outputs[0], precision="float16")
    assert "TreeEnsembleRegressor" not in operators(program)


def test_a_layer_of_which_a_result_is_left_out_gets_no_guards():
    """The file had none against NaN, no sequences and no steps."""
    proto = model(
        [node("LSTM", "x w r", "- y", hidden_size=2, direction="bidirectional")],
        ("t", "n", 4),
        w=floats(2, 8, 4),
        r=floats(2, 8, 2),
    )
    graph, x = from_onnx(proto), sample(proto)
    program = export_onnx(graph.inputs, graph.outputs[0], dynamic_axes=graph.dynamic_axes)
    np.testing.assert_allclose(program(x), by_runtime(proto, x)[0], rtol=1e-5)
    assert operators(program)["LSTM"] == 1
    assert "If" not in operators(program)


@pytest.mark.parametrize("operator", ["GRU", "LSTM", "RNN"])
def test_layers_that_the_runtime_lacks_are_expressions(operator):
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[operator]
    proto = model(
        [node(operator, "x w r", "y", hidden_size=2, layout=1)],
        (2, 3, 4),
        w=floats(1, 2 * gates, 4),
        r=floats(1, 2 * gates, 2),
    )
    graph, x = from_onnx(proto), sample(proto)
    found = graph.outputs[0].eval({graph.inputs[0]: x}, mode="ONNX")
    np.testing.assert_allclose(found, evaluated(graph, x)[0], rtol=1e-5, atol=1e-6)


def test_gradients_and_further_axes_take_the_expression():
    proto = KEPT["reflected pad"]
    graph, x = from_onnx(proto), sample(proto)
    gradient = pt.grad(graph.outputs[0].sum(), graph.inputs[0])
    counts = gradient.eval({graph.inputs[0]: x}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(counts[0], np.bincount([2, 1, 0, 1, 2, 3, 2, 1, 0]))
    batch = pt.tensor("batch", shape=(None, None, None), dtype="float32")
    many = graph(batch, vectorize=True).eval({batch: np.stack([x, 2 * x])}, mode="ONNX")
    np.testing.assert_array_equal(many[1], 2 * by_runtime(proto, x)[0])


def test_a_pool_of_open_sizes_takes_nan_in_mode_onnx():
    proto = KEPT["pool of open sizes"]
    graph, x = from_onnx(proto), sample(proto)
    x[0, 0, 1, 1] = np.nan
    (found,) = pytensor.function(graph.inputs, graph.outputs, mode="ONNX")(x)
    np.testing.assert_array_equal(found, evaluated(graph, x)[0])
    assert np.isnan(found).any()


def test_a_sum_of_exponentials_takes_infinities_in_mode_onnx():
    graph = from_onnx(KEPT["sum of exponentials"])
    x = np.float32([[-np.inf] * 4, [np.inf, 0, 1, 2], [200, 1, np.nan, 0], [200, 100, 90, 200]])
    (found,) = pytensor.function(graph.inputs, graph.outputs, mode="ONNX")(x)
    np.testing.assert_allclose(found, evaluated(graph, x)[0], rtol=1e-6)
    np.testing.assert_allclose(found, np.logaddexp.reduce(x, axis=1), rtol=1e-6)


def test_a_pool_of_this_package_keeps_its_guard():
    x = pt.tensor("x", shape=(None, 2, 4), dtype="float32")
    program = export_onnx([x], {"y": nn.max_pool(x, 2)}, verify=False)
    graph = from_onnx(program)
    again = export_onnx(graph.inputs, graph.outputs[0], verify=False)
    assert operators(again) == operators(program)
    assert len(operators(program)) == 2


@pytest.mark.parametrize("opset", [17, 18])
def test_a_written_layer_norm_becomes_one(opset):
    axes = {"axes": [-1]} if opset < 18 else {}
    over = "" if axes else " last"
    nodes = [
        node("ReduceMean", "x" + over, "m", **axes),
        node("Sub", "x m", "d"),
        node("Pow", "d two", "q"),
        node("ReduceMean", "q" + over, "v", **axes),
        *WRITTEN[2:],
        node("Div", "d r", "n"),
        node("Mul", "g n", "k"),
        node("Add", "b k", "y"),
    ]
    proto = model(nodes, ("n", 4), opset, last=np.int64([-1]), **NORM)
    graph, x = from_onnx(proto), sample(proto)
    program = export_onnx(graph.inputs, graph.outputs[0])
    assert operators(program) == {"LayerNormalization": 1}
    np.testing.assert_allclose(program(x), by_runtime(proto, x)[0], rtol=1e-4, atol=1e-6)


def test_a_written_rms_norm_becomes_one():
    nodes = [node("Pow", "x two", "q"), *WRITTEN[1:], node("Reciprocal", "r", "i")]
    nodes += [node("Mul", "x i", "n"), node("Mul", "n g", "y")]
    proto = model(nodes, ("n", 4), **NORM)
    graph, x = from_onnx(proto), sample(proto)
    program = export_onnx(graph.inputs, graph.outputs[0], opset_version=23)
    assert operators(program) == {"RMSNormalization": 1}
    np.testing.assert_allclose(program(x), by_runtime(proto, x)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "change", ["other array", "fourth power", "another axis", "epsilon of three axes"]
)
def test_what_is_nearly_a_layer_norm_stays_as_it_is(change):
    nodes = [
        node("ReduceMean", "x", "m", axes=[0 if change == "another axis" else -1]),
        node("Sub", "x m", "d"),
        node("Pow", "d two", "q"),
        *WRITTEN[1:],
        node("Div", "x r" if change == "other array" else "d r", "n"),
        node("Mul", "n g", "k"),
        node("Add", "k b", "y"),
    ]
    power = np.float32(4 if change == "fourth power" else 2)
    changed = {**NORM, "two": power}
    if change == "epsilon of three axes":
        changed["e"] = np.full((1, 1, 1), 1e-5, "float32")
    proto = model(nodes, ("n", 4), **changed)
    graph, x = from_onnx(proto), sample(proto)
    program = export_onnx(graph.inputs, graph.outputs[0], verify=False)
    assert "LayerNormalization" not in operators(program)
    np.testing.assert_allclose(program(x), by_exact_runtime(proto, x)[0], rtol=1e-4, atol=1e-6)


def test_scaled_weights_of_a_stack_of_rows_stay_matrices():
    nodes = [
        node("Cast", "w", "f", to=TensorProto.FLOAT),
        node("Mul", "f s", "m"),
        node("MatMul", "x m", "y"),
    ]
    weights = RNG.integers(-9, 9, (64, 80)).astype("int8")
    proto = model(nodes, (2, "n", 64), w=weights, s=np.abs(floats(64, 1)))
    graph, x = from_onnx(proto), sample(proto)
    program = export_onnx(graph.inputs, graph.outputs[0])
    assert operators(program) == {"Cast": 1, "Mul": 1, "MatMul": 1}
    (product,) = (n for n in program.model.graph if n.op_type == "MatMul")
    assert product.inputs[1].shape == (64, 80)
    np.testing.assert_allclose(program(x), by_runtime(proto, x)[0], rtol=1e-4, atol=1e-4)


def maps_of_rows(key: str, labels: list) -> onnx.ModelProto:
    """Return a model whose output is one map for each row of the matrix of its input."""
    probabilities = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    key_type = TensorProto.STRING if key == "classlabels_strings" else TensorProto.INT64
    rows = helper.make_sequence_type_proto(helper.make_map_type_proto(key_type, probabilities))
    nodes = [node("Softmax", "x", "p"), node("ZipMap", "p", "y", domain=ML, **{key: labels})]
    proto = model(nodes, ("n", 2))
    proto.graph.output[0].type.CopyFrom(rows)
    return proto


MAPS = {"classlabels_int64s": [3, 7], "classlabels_strings": ["no", "yes"]}


@pytest.mark.parametrize("key", MAPS)
def test_zip_map_gives_the_matrix_before_it_and_comes_back(tmp_path, key):
    proto = maps_of_rows(key, MAPS[key])
    onnx.save(proto, tmp_path / "zip.onnx")
    x = floats(3, 2)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    for source in (proto, proto.SerializeToString(), tmp_path / "zip.onnx"):
        with pytest.warns(UserWarning, match=r"^y: one map .* options=\{'zipmap': False\}"):
            graph = from_onnx(source)
        matrix = evaluated(graph, x)[0]
        np.testing.assert_allclose(matrix, [[*row.values()] for row in expected], rtol=1e-6)
    program = export_onnx(graph.inputs, graph.outputs, tmp_path / "again.onnx")
    for again in (tmp_path / "again.onnx", program.proto.SerializeToString()):
        assert onnxruntime.InferenceSession(again).run(None, {"x": x})[0] == expected
    np.testing.assert_array_equal(load(tmp_path / "again.onnx")(x)[0], program(x)[0])
    assert list(verify_file(tmp_path / "again.onnx"))[-1].endswith("returns y: float32[3, 2]")


def test_a_changed_matrix_of_maps_stays_a_matrix():
    with pytest.warns(UserWarning, match="^y: one map"):
        graph = from_onnx(maps_of_rows("classlabels_int64s", [0, 1]))
    for proto in (
        export_onnx(graph.inputs, graph.outputs[0] * 2).proto,
        export_onnx(graph.inputs, graph.outputs, target="portable").proto,
    ):
        assert proto.graph.output[0].type.HasField("tensor_type")


def test_optimize_keeps_maps(tmp_path):
    file, other = tmp_path / "zip.onnx", tmp_path / "optimized.onnx"
    onnx.save(maps_of_rows("classlabels_int64s", [0, 1]), file)
    with pytest.warns(UserWarning, match="^y: one map"):
        optimize_onnx(file, other)
    assert compare_optimized(file, other, seconds=0.01).difference == 0
    assert onnx.load(other).graph.output[0].type == onnx.load(file).graph.output[0].type
