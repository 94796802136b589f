"""Files and tables of other makers: axes without names, rows that are alike, odd columns."""

import io
import pickle

import numpy as np
import onnx
import onnx_ir as ir
import pyarrow
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import export_onnx
from pytensor_onnx_scoring import Scorer, ScoringError, opened_file
from pytensor_onnx_scoring.arrow import to_arrow


def file_of(operator: str, dtype: int, shape: list, result: list, **metadata: str) -> bytes:
    """Return a file of one operator."""
    x = helper.make_tensor_value_info("x", dtype, shape)
    y = helper.make_tensor_value_info("y", dtype, result)
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "graph", [x], [y])
    opset = helper.make_opsetid("", 21)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    helper.set_model_props(model, metadata)
    return model.SerializeToString()


@pytest.fixture(scope="module")
def centred(tmp_path_factory):
    x = pt.vector("x")
    path = tmp_path_factory.mktemp("models") / "centred.onnx"
    export_onnx([x], {"centred": x - x.mean()}, path, dynamic_axes={"x": {0: "row"}})
    return path


def test_an_axis_without_a_name_has_the_rows():
    scorer = Scorer(file_of("Neg", TensorProto.FLOAT, [None, 2], [None, 2]))
    np.testing.assert_array_equal(scorer({"x": [[1, 2], [3, 4]]})["y"], [[-1, -2], [-3, -4]])


@pytest.mark.parametrize("text", ["a,b", '["a", "b"]', '{"x": "a,b"}'])
def test_metadata_of_other_tools_are_left_alone(text):
    metadata = {"feature_names": text, "row_bytes": "few", "batch_axis": "batch"}
    scorer = Scorer(file_of("Neg", TensorProto.FLOAT, ["row", 2], ["row", 2], **metadata))
    np.testing.assert_array_equal(scorer({"x": [[1, 2]]})["y"], [[-1, -2]])


def test_a_worker_in_another_folder_finds_the_file(centred, monkeypatch):
    monkeypatch.chdir(centred.parent)
    text = pickle.dumps(Scorer(centred.name))
    monkeypatch.chdir(centred.parent.parent)
    assert pickle.loads(text)({"x": [1.0]})["centred"].tolist() == [0.0]


def test_rows_that_are_alike_do_not_hide_a_dependence(centred):
    for table in ([0.0] * 4 + [1.0, 2.0, 3.0, 4.0], [0.0] * 9 + [5.0]):
        with pytest.raises(ScoringError, match="depends on the other rows"):
            Scorer(centred)({"x": table})


@pytest.mark.parametrize("number", [0.0, np.nan])
def test_rows_that_tell_nothing_leave_the_comparison_to_later_ones(centred, number):
    scorer = Scorer(centred)
    scorer({"x": [number] * 4})
    with pytest.raises(ScoringError, match="depends on the other rows"):
        scorer({"x": [1.0, 2.0]})


def test_results_of_pairs_of_rows_are_refused(tmp_path):
    x = pt.matrix("x", shape=(None, 2))
    axes = {"x": {0: "row"}}
    export_onnx([x], {"products": x @ x.T}, tmp_path / "pairs.onnx", dynamic_axes=axes)
    with pytest.raises(ScoringError, match="output products of a row depends on the other rows"):
        Scorer(tmp_path / "pairs.onnx")({"x": np.eye(5, 2)})


def test_an_array_without_axes_is_refused(centred):
    with pytest.raises(ScoringError, match="the array has no axis of rows"):
        Scorer(centred)(np.array(3.0))


def test_no_outputs_are_refused(centred):
    with pytest.raises(ScoringError, match=r"outputs=\[\]: choose of centred"):
        Scorer(centred, outputs=[])


def test_providers_may_have_options(centred):
    assert Scorer(centred, providers=[("CPUExecutionProvider", {})])({"x": [1.0]})


def test_strings_are_strings():
    scorer = Scorer(file_of("Identity", TensorProto.STRING, ["row"], ["row"]))
    assert scorer({"x": ["a", "b"]})["y"].tolist() == ["a", "b"]
    wrong = {"nulls": ["a", None], "no strings": np.array(["a", 1], object), "int64": [1, 2]}
    for message, values in wrong.items():
        with pytest.raises(ScoringError, match=f"column x .*{message}"):
            scorer({"x": values})


def test_integers_beyond_half_precision_are_refused():
    scorer = Scorer(file_of("Neg", TensorProto.FLOAT16, ["row"], ["row"]))
    with pytest.raises(ScoringError, match="more digits than float16"):
        scorer({"x": np.array([-(2**63), 1])})


def test_lists_with_more_elements_than_arrow_counts_are_refused():
    schema = pyarrow.schema([("y", pyarrow.list_(pyarrow.int8()))])
    results = {"y": np.broadcast_to(np.int8(0), (2**21, 2**10))}
    with pytest.raises(ScoringError, match="score fewer than 2,097,151 rows"):
        to_arrow(pyarrow.Table, schema, results)


def test_outputs_that_are_no_columns_are_left_out():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["row"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["row"])
    s = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Neg", ["x"], ["y"]),
        helper.make_node("SequenceConstruct", ["x"], ["s"]),
    ]
    graph = helper.make_graph(nodes, "graph", [x], [y, s])
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    assert list(Scorer(model)({"x": [1.0]})) == ["y"]
    with pytest.raises(ScoringError, match="there is no output s"):
        Scorer(model, outputs=["s"])


def test_a_provider_that_is_not_there_is_refused(centred):
    with pytest.raises(ScoringError, match=r"has no NoneExecutionProvider here: .*CPUExecution"):
        Scorer(centred, providers=["NoneExecutionProvider"])


def test_a_column_that_stands_twice_is_named(centred):
    table = pyarrow.table([[1.0], [2.0]], names=["x", "x"])
    with pytest.raises(ScoringError, match="column x stands twice in the table"):
        Scorer(centred)(table)


def test_a_file_that_is_written_anew_replaces_its_session(tmp_path):
    path = tmp_path / "model.onnx"
    before = len(opened_file._sessions)
    for operator, expected in (("Neg", -1.0), ("Identity", 1.0), ("Reciprocal", 1.0)):
        path.write_bytes(file_of(operator, TensorProto.FLOAT, ["row"], ["row"]))
        assert Scorer(path)({"x": [1.0]})["y"].tolist() == [expected]
    assert len(opened_file._sessions) == before + 1


MODELS = {
    "bytearray": bytearray,
    "memoryview": memoryview,
    "bytes of NumPy": lambda data: np.frombuffer(data, np.uint8),
    "ModelProto": onnx.load_model_from_string,
    "onnx_ir": lambda data: ir.from_proto(onnx.load_model_from_string(data)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_in_memory_is_scored_as_its_bytes(kind):
    model = MODELS[kind](file_of("Neg", TensorProto.FLOAT, ["row"], ["row"]))
    scorer = pickle.loads(pickle.dumps(Scorer(model)))
    assert scorer({"x": [1.0, 2.0]})["y"].tolist() == [-1.0, -2.0]


def test_a_program_is_scored():
    x = pt.vector("x")
    program = export_onnx([x], {"y": -x}, dynamic_axes={"x": {0: "row"}})
    assert Scorer(program)({"x": [1.0, 2.0]})["y"].tolist() == [-1.0, -2.0]


@pytest.mark.parametrize("given", [None, 3, io.BytesIO(b""), helper.make_graph([], "g", [], [])])
def test_other_objects_are_refused_with_the_kinds_of_models(given):
    kind = f"{type(given).__module__}.{type(given).__qualname__}"
    with pytest.raises(ScoringError, match=f"takes a path, bytes, onnx.ModelProto.*; got {kind}"):
        Scorer(given)


def test_a_model_beyond_the_limit_of_bytes_is_given_as_a_path():
    class ModelProto:
        def SerializeToString(self):
            raise ValueError("exceeds 2 GB")

    with pytest.raises(ScoringError, match=r"turn into bytes \(exceeds 2 GB\).*give its path"):
        Scorer(ModelProto())
