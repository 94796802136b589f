"""Files of scikit-learn's converters: a column for each input, matrices without names, ZipMap."""

import pickle
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pandas
import polars
import pyarrow
import pytest
from onnx import TensorProto, helper

from pytensor_onnx_scoring import Scorer, ScoringError
from pytensor_onnx_scoring.zip_maps import labels_of
from tests.scoring.test_odd_files import file_of

ML = "ai.onnx.ml"
FLOAT, STRING = TensorProto.FLOAT, TensorProto.STRING


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def maps(name, kind):
    element = helper.make_tensor_type_proto(FLOAT, [])
    return helper.make_value_info(
        name, helper.make_sequence_type_proto(helper.make_map_type_proto(kind, element))
    )


def model_of(nodes, inputs, outputs, *weights):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def classifier(**labels):
    """Return a file of logistic regression with options of the converter as they are."""
    kind = STRING if "classlabels_strings" in labels else TensorProto.INT64
    weights = {"coefficients": [1.0, -1.0, -1.0, 1.0], "intercepts": [0.5, -0.5]}
    scores = helper.make_node(
        "LinearClassifier", ["X"], ["label", "p"], domain=ML, post_transform="SOFTMAX", **weights,
        **{key.replace("int64s", "ints"): names for key, names in labels.items()},
    )  # fmt: skip
    zipped = helper.make_node("ZipMap", ["p"], ["probability"], domain=ML, **labels)
    outputs = [value("label", kind, None), maps("probability", kind)]
    return model_of([scores, zipped], [value("X", FLOAT, None, 2)], outputs)


def softmax(rows):
    scores = rows @ [[1.0, -1.0], [-1.0, 1.0]] + [0.5, -0.5]
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


ROWS = np.array([[1.0, 2.0], [3.0, 0.5], [-1.0, 1.0]])
FRAME = pandas.DataFrame(ROWS, columns=["age", "size"])
NAMES = {"X": ["age", "size"]}


@pytest.mark.parametrize(
    "labels", [{"classlabels_int64s": [3, -1]}, {"classlabels_strings": ["no", "ja, ö"]}]
)
@pytest.mark.parametrize("batch_size", [2, "auto"])
def test_probabilities_of_classes_are_columns(labels, batch_size, tmp_path):
    [classes] = labels.values()
    (tmp_path / "model.onnx").write_bytes(classifier(**labels))
    scorer = Scorer(tmp_path / "model.onnx", feature_names=NAMES, batch_size=batch_size)
    result = scorer(FRAME[["size", "age"]])
    columns = [f"probability_{name}" for name in classes]
    assert list(result) == ["label", *columns] == scorer.schema.names == list(scorer.output_columns)
    np.testing.assert_allclose(result[columns], softmax(ROWS), rtol=1e-6)
    assert result["label"].tolist() == [classes[i] for i in softmax(ROWS).argmax(axis=1)]
    assert scorer(pyarrow.table(FRAME)).schema == scorer.schema
    assert scorer(FRAME[:0]).shape == (0, 3)


def test_classes_have_the_names_that_are_given():
    names = {**NAMES, "probability": ["no", "yes"]}
    scorer = Scorer(classifier(classlabels_int64s=[0, 1]), feature_names=names, outputs=["yes"])
    np.testing.assert_allclose(scorer(FRAME)["yes"], softmax(ROWS)[:, 1], rtol=1e-6)
    assert pickle.loads(pickle.dumps(scorer))(FRAME)["yes"].tolist() == [*scorer(FRAME)["yes"]]


def test_labels_of_lightgbm_have_rows():
    """OnnxMLTools declares them for one row; another file may have one number for all rows."""
    model = onnx.load_model_from_string(classifier(classlabels_int64s=[0, 1]))
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1
    for producer, columns in (("OnnxMLTools", ["label"]), ("skl2onnx", [])):
        model.producer_name = producer
        result = Scorer(model.SerializeToString(), feature_names=NAMES)(FRAME)
        assert list(result) == [*columns, "probability_0", "probability_1"]
        assert len(result) == 3


def test_classes_are_read_from_the_bytes_of_a_file():
    labels = helper.make_attribute("classlabels_int64s", [0, 2**40, -(2**63)])
    packed = labels.SerializeToString()
    zipped = helper.make_node("ZipMap", ["x"], ["y"], domain=ML)
    zipped.attribute.append(labels)
    copied = helper.make_node("Identity", ["y"], ["z"])
    ends = [value("x", FLOAT, None, 3)], [maps("z", TensorProto.INT64)]
    weight = helper.make_tensor("w", FLOAT, [400], np.ones(400))
    model = model_of([zipped, copied], *ends, weight)
    assert packed in model
    assert labels_of(model) == {"y": (0, 2**40, -(2**63)), "z": (0, 2**40, -(2**63))}


def columns_file():
    """Return a file with one input of ``[None, 1]`` for each column, of numbers and strings."""
    nodes = [
        helper.make_node("Concat", ["age", "size"], ["both"], axis=1),
        helper.make_node("ReduceSum", ["both"], ["sum"], keepdims=1, axes=[1]),
        helper.make_node("Identity", ["city"], ["name"]),
    ]
    nodes[1] = helper.make_node("ReduceSum", ["both", "axis"], ["sum"], keepdims=1)
    inputs = [value(n, FLOAT, None, 1) for n in ("age", "size")] + [value("city", STRING, None, 1)]
    outputs = [value("sum", FLOAT, None, 1), value("name", STRING, None, 1)]
    return model_of(nodes, inputs, outputs, helper.make_tensor("axis", TensorProto.INT64, [1], [1]))


def test_an_input_of_one_element_a_row_is_a_column():
    scorer = Scorer(columns_file())
    assert scorer.input_columns == {"age": "f4", "size": "f4", "city": np.dtype(object)}
    frame = FRAME.assign(city=["a", "b", "c"])
    tables = [frame, polars.from_pandas(frame), pyarrow.table(frame), frame.to_dict("list")]
    for table in [*tables, {name: frame[[name]].to_numpy() for name in frame}]:
        result = scorer(table)
        np.testing.assert_allclose(np.asarray(result["sum"], float), ROWS.sum(axis=1))
        assert list(map(str, result["name"])) == ["a", "b", "c"]
    with pytest.raises(ScoringError, match=r"age is missing: did you mean Age\?"):
        scorer(frame.rename(columns={"age": "Age"}))


def matrix_file(size=2):
    return file_of("Neg", FLOAT, [None, size], [None, size])


def test_a_lone_matrix_takes_the_columns_in_their_order_with_a_warning():
    scorer = Scorer(matrix_file())
    with pytest.warns(UserWarning, match=r"feature_names={'x': \['age', 'size'\]}") as caught:
        found = scorer(FRAME)["y"]
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(np.stack(found), -ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer(ROWS), scorer({"x": ROWS}), scorer(pandas.DataFrame(ROWS))
        named = Scorer(matrix_file(), feature_names={"x": ["size", "age"], "y": ["a", "b"]})
        np.testing.assert_array_equal(named(FRAME), -ROWS[:, ::-1])


@pytest.mark.parametrize("size", [3, None])
def test_a_matrix_without_names_asks_for_them(size):
    with pytest.raises(ScoringError, match=r"x is missing: it is a matrix.* feature_names={'x': "):
        Scorer(matrix_file(size))(FRAME)


def test_a_matrix_of_any_number_of_columns_takes_those_that_are_named():
    scorer = Scorer(matrix_file(None), feature_names={"x": ["size"]})
    np.testing.assert_array_equal(np.stack(scorer(FRAME)["y"]), -ROWS[:, 1:])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"x": ["a"]}, "has 2 columns, and 1 names were given"),
        ({"X": ["a", "b"]}, "there is no X: choose of"),
        ({"x": ["a", "a"]}, "give a list of different names"),
        ({"x": "ab"}, "give a list of different names"),
        ({"x": ["a", "b"], "y": ["c"]}, "y, float32.* has 2 columns"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, message):
    with pytest.raises(ScoringError, match=message):
        Scorer(matrix_file(), feature_names=names)


def test_columns_of_vectors_have_other_names_too():
    scorer = Scorer(file_of("Neg", FLOAT, [None], [None]), feature_names={"x": ["a"], "y": ["b"]})
    assert scorer({"a": [1.0]})["b"].tolist() == [-1.0]


def test_the_schema_without_pyarrow_is_an_error_that_says_so(tmp_path):
    (tmp_path / "model.onnx").write_bytes(matrix_file())
    code = f"""
import sys
sys.modules["pyarrow"] = None
from pytensor_onnx_scoring import Scorer, ScoringError
scorer = Scorer({str(tmp_path / "model.onnx")!r})
print(scorer({{"x": [[1.0, 2.0]]}})["y"].tolist())
try:
    scorer.schema
except ScoringError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[0] == "[[-1.0, -2.0]]"
    assert "pyarrow, which is not installed" in run.stdout


def test_pipelines_of_scikit_learn():
    converters = pytest.importorskip("skl2onnx")
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(80, 2)).astype("float32")
    frame = pandas.DataFrame(numbers, columns=["age", "size"]).assign(city=rng.choice([*"abc"], 80))
    classes = np.where(numbers.sum(axis=1) > 0, "yes", "no")
    columns = [("n", StandardScaler(), ["age", "size"]), ("c", OneHotEncoder(), ["city"])]
    pipeline = make_pipeline(ColumnTransformer(columns), LogisticRegression()).fit(frame, classes)
    forest = RandomForestClassifier(5, random_state=1).fit(numbers, classes)
    for estimator, example in ((pipeline, frame[:1]), (forest, numbers[:1])):
        names = {} if estimator is pipeline else {"X": ["age", "size"]}
        model = converters.to_onnx(estimator, example).SerializeToString()
        expected = estimator.predict_proba(frame if estimator is pipeline else numbers)
        for table in (frame, polars.from_pandas(frame), pyarrow.table(frame)):
            result = Scorer(model, feature_names=names)(table)
            found = [np.asarray(result[f"output_probability_{c}"]) for c in ("no", "yes")]
            np.testing.assert_allclose(found, expected.T, atol=1e-5)
            label = np.asarray(result["output_label"]).astype(str)
            assert np.mean(label == estimator.classes_[expected.argmax(axis=1)]) == 1


@pytest.mark.slow
def test_the_code_of_the_page_on_scikit_learn_runs(tmp_path, monkeypatch):
    """Its assertions compare DuckDB, Spark and the file with scikit-learn; Spark if installed."""
    for package in ("sklearn", "skl2onnx", "duckdb"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "how-to" / "scikit-learn.md"
    names: dict[str, object] = {}
    with warnings.catch_warnings(action="ignore"):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            if "pyspark" not in block or find_spec("pyspark") is not None:
                exec(compile(block, page.name, "exec"), names)
    assert np.all(names["by_age"] >= 0)
