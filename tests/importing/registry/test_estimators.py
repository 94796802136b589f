"""Estimators of ai.onnx.ml equal ONNX Runtime's results."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.case.node import _NodeTestCases

from pytensor_onnx import (
    ArgumentError,
    PyTensorONNXError,
    UnsupportedOpError,
    export_onnx,
    from_onnx,
    optimize_onnx,
)
from pytensor_onnx.exporting.files.file_verification import verify_file
from pytensor_onnx.exporting.files.optimized_files import compare_optimized
from pytensor_onnx.importing.registry.imported_strings import tokenized
from pytensor_onnx.scoring import Scorer
from tests.importing.models import PYTHON, by_runtime, evaluated, model_of
from tests.importing.node_tests import judged

ML = "ai.onnx.ml"


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def assert_equal_to_runtime(model: Any, *arrays: Any, rtol: float = 1e-5) -> None:
    for found, expected in zip(
        evaluated(from_onnx(model), *arrays), by_runtime(model, *arrays), strict=True
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-5)


def test_linear_models_and_scalers():
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain=ML, offset=[0.5, 1.0], scale=[2.0, 0.5]),
        helper.make_node("Normalizer", ["s"], ["n"], domain=ML, norm="L2"),
        helper.make_node(
            "LinearClassifier",
            ["n"],
            ["label", "scores"],
            domain=ML,
            coefficients=[1.0, -1.0, 0.5, 2.0, 0.0, 1.0],
            intercepts=[0.1, 0.0, -0.2],
            classlabels_ints=[3, 5, 7],
            post_transform="SOFTMAX",
        ),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n", 2)},
        outputs={"label": ("n",), "scores": ("n", 3)},
        dtypes={"label": TensorProto.INT64},
    )
    assert_equal_to_runtime(model, normal(6, 2))


def test_categories_that_an_encoder_does_not_know_are_an_error():
    encoder = helper.make_node(
        "OneHotEncoder", ["x"], ["y"], domain=ML, cats_int64s=[2, 5, 7], zeros=0
    )
    model = model_of(
        [encoder],
        inputs={"x": ("n",)},
        outputs={"y": ("n", 3)},
        dtypes={"x": TensorProto.INT64},
    )
    known, unknown = np.array([5, 2, 5]), np.array([5, 3])
    assert_equal_to_runtime(model, known)
    graph = from_onnx(model)
    for mode in (PYTHON, "ONNX"):
        encode = pytensor.function(graph.inputs, graph.outputs, mode=mode)
        np.testing.assert_array_equal(encode(known)[0], by_runtime(model, known)[0])
        with pytest.raises((AssertionError, PyTensorONNXError)):
            encode(unknown)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        by_runtime(model, unknown)


def test_trees():
    """Two trees, one of a single leaf."""
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain=ML,
        n_targets=1,
        nodes_treeids=[0, 0, 0, 0, 0, 1],
        nodes_nodeids=[0, 1, 2, 3, 4, 0],
        nodes_featureids=[0, 1, 0, 0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "LEAF"],
        nodes_values=[0.0, 0.25, 0, 0, 0, 0],
        nodes_truenodeids=[1, 3, 0, 0, 0, 0],
        nodes_falsenodeids=[2, 4, 0, 0, 0, 0],
        target_treeids=[0, 0, 0, 1],
        target_nodeids=[2, 3, 4, 0],
        target_ids=[0, 0, 0, 0],
        target_weights=[1.0, 2.0, 3.0, 10.0],
        base_values=[0.5],
    )
    model = model_of([node], inputs={"x": ("n", 2)}, outputs={"y": ("n", 1)})
    x = np.float32([[0, 0.25], [0, 0.2], [1, 0], [-1, 5]])
    assert_equal_to_runtime(model, x)
    assert evaluated(from_onnx(model), x)[0].ravel().tolist() == [13.5, 12.5, 11.5, 13.5]


NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 1, 0, 0],
    "nodes_values": [0.0, 0.25, 0, 0, 0, 1.0, 0, 0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0],
}
LEAVES = {"treeids": [0, 0, 0, 1, 1], "nodeids": [2, 3, 4, 1, 2]}
LEAVES_OF_FIRST = ("LEAF", "LEAF", "LEAF")
ROWS = np.float32([[0, 0.25], [0, 0.2], [1, 0], [-1, 5], [np.nan, 1], [0, np.nan]])


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
def test_trees_with_each_comparison_and_missing_values(mode, aggregate):
    branch = f"BRANCH_{mode}"
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain=ML,
        n_targets=1,
        aggregate_function=aggregate,
        nodes_modes=[branch, "BRANCH_LT", *LEAVES_OF_FIRST, branch, "LEAF", "LEAF"],
        target_ids=[0] * 5,
        target_weights=[1.0, 2.0, 3.0, 10.0, -20.0],
        **{f"target_{name}": values for name, values in LEAVES.items()},
        **NODES,
    )
    assert_equal_to_runtime(model_of([node], inputs={"x": ("n", 2)}, outputs={"y": ("n", 1)}), ROWS)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize(
    ("labels", "ids", "weights"),
    [
        ([3, 7], [0] * 5, [0.1, 0.6, 0.2, 0.3, 0.1]),
        ([3, 7], [0] * 5, [1.0, -2.0, 3.0, 0.5, -0.5]),
        ([3, 7, 9], [0, 1, 2, 1, 0], [1.0, -2.0, 3.0, 0.5, -0.5]),
    ],
)
def test_classifiers_of_trees(labels, ids, weights, transform):
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain=ML,
        classlabels_int64s=labels,
        class_ids=ids,
        class_weights=weights,
        post_transform=transform,
        nodes_modes=[
            "BRANCH_LEQ",
            "BRANCH_LT",
            "LEAF",
            "LEAF",
            "LEAF",
            "BRANCH_LEQ",
            "LEAF",
            "LEAF",
        ],
        **{f"class_{name}": values for name, values in LEAVES.items()},
        **NODES,
    )
    model = model_of(
        [node],
        inputs={"x": ("n", 2)},
        outputs={"label": ("n",), "scores": ("n", len(labels))},
        dtypes={"label": TensorProto.INT64},
    )
    assert_equal_to_runtime(model, ROWS)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel):
    node = helper.make_node(
        "SVMRegressor",
        ["x"],
        ["y"],
        domain=ML,
        coefficients=[0.5, -1.0, 2.0],
        kernel_params=[0.5, 0.25, 2.0],
        kernel_type=kernel,
        n_supports=3,
        rho=[0.125],
        support_vectors=normal(6).tolist(),
    )
    model = model_of([node], inputs={"x": ("n", 2)}, outputs={"y": ("n", 1)})
    assert_equal_to_runtime(model, normal(4, 2))


def test_maps_of_numbers():
    nodes = [
        helper.make_node(
            "Imputer",
            ["x"],
            ["i"],
            domain=ML,
            imputed_value_floats=[4.0],
            replaced_value_float=np.nan,
        ),
        helper.make_node("Binarizer", ["i"], ["b"], domain=ML, threshold=2.0),
        helper.make_node(
            "LabelEncoder",
            ["i"],
            ["l"],
            domain=ML,
            keys_floats=[1.0, 4.0],
            values_int64s=[10, 40],
            default_int64=-5,
        ),
        helper.make_node("OneHotEncoder", ["l"], ["o"], domain=ML, cats_int64s=[10, 40], zeros=1),
        helper.make_node("FeatureVectorizer", ["b", "i"], ["f"], domain=ML, inputdimensions=[2, 1]),
        helper.make_node("ArrayFeatureExtractor", ["f", "columns"], ["e"], domain=ML),
    ]
    model = model_of(
        nodes,
        inputs={"x": ("n", 2)},
        outputs={"b": ("n", 2), "l": ("n", 2), "o": ("n", 2, 2), "f": ("n", 3), "e": ("n", 2)},
        dtypes={"l": TensorProto.INT64},
        constants={"columns": np.int64([2, 0])},
    )
    assert_equal_to_runtime(model, np.float32([[1, 2], [np.nan, 3]]))


def label_encoder(opset, **attributes):
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, **attributes)
    model = model_of(
        [node], inputs={"x": ("n",)}, outputs={"y": ("n",)}, dtypes={"y": TensorProto.INT64}
    )
    del model.opset_import[1:]
    model.opset_import.append(helper.make_opsetid(ML, opset))
    return model


def test_nan_is_a_key_from_opset_4_on():
    maps = {"keys_floats": [1.0, np.nan, 4.0], "values_int64s": [10, 20, 40], "default_int64": -5}
    assert_equal_to_runtime(label_encoder(4, **maps), np.float32([1, np.nan, 5]))
    with pytest.raises(UnsupportedOpError, match="NaN is a key"):
        from_onnx(label_encoder(3, **maps))
    twice = {"keys_floats": [1.0, 1.0], "values_int64s": [10, 20]}
    with pytest.raises(UnsupportedOpError, match="a key stands twice"):
        from_onnx(label_encoder(4, **twice))


def test_the_node_tests_of_the_standard():
    before = len(_NodeTestCases)
    for name in ("array_feature_extractor", "binarizer", "label_encoder", "tree_ensemble"):
        import_module(f"onnx.backend.test.case.node.ai_onnx_ml.{name}")
    verdicts = [judged(case) for case in _NodeTestCases[before:]]
    assert all(v.verdict == "right" or "string" in v.reason for v in verdicts), verdicts
    assert sum(v.verdict == "right" for v in verdicts) >= 4


def test_maps_of_labels_are_refused_with_a_way_out():
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=ML, classlabels_int64s=[0, 1])
    model = model_of([node], inputs={"x": ("n", 2)}, outputs={"y": ("n", 2)})
    with pytest.raises(UnsupportedOpError, match="'zipmap': False"):
        from_onnx(model)


def estimators() -> dict[str, Callable[[], Any]]:
    """Return estimators of scikit-learn, by name."""
    sklearn = pytest.importorskip("sklearn")
    from sklearn import ensemble, linear_model, neighbors, neural_network, preprocessing, svm, tree
    from sklearn.pipeline import make_pipeline

    assert sklearn
    return {
        "ridge": linear_model.Ridge,
        "logistic": linear_model.LogisticRegression,
        "tree": lambda: tree.DecisionTreeClassifier(max_depth=4),
        "forest": lambda: ensemble.RandomForestRegressor(n_estimators=4, max_depth=4),
        "forest of labels": lambda: ensemble.RandomForestClassifier(n_estimators=4, max_depth=4),
        "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=4),
        "network": lambda: neural_network.MLPClassifier((5,), max_iter=20),
        "neighbours": lambda: neighbors.KNeighborsRegressor(3),
        "pipeline": lambda: make_pipeline(
            preprocessing.MinMaxScaler(), preprocessing.Normalizer(), linear_model.Lasso(0.01)
        ),
        "support vectors": svm.SVC,
        "shares of support vectors": lambda: svm.SVC(probability=True, random_state=0),
        "polynomials": lambda: make_pipeline(
            preprocessing.PolynomialFeatures(2), linear_model.Ridge()
        ),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        *("ridge", "logistic", "tree", "forest", "forest of labels", "boosting", "network"),
        *("neighbours", "pipeline", "polynomials", "support vectors"),
        "shares of support vectors",
    ],
)
def test_what_scikit_learns_converter_writes(name):
    converter = pytest.importorskip("skl2onnx", reason="the group importing is not installed")
    x = normal(60, 4)
    y = x @ np.float32([1, -2, 0.5, 0])
    estimator = estimators()[name]()
    is_classifier = estimator.__sklearn_tags__().estimator_type == "classifier"
    estimator.fit(x, np.digitize(y, [-1, 1]) if is_classifier else y)
    model = converter.to_onnx(
        estimator,
        x[:1],
        options={"zipmap": False} if is_classifier else None,
        target_opset={"": 18, ML: 3},
    )
    assert_equal_to_runtime(model, x)


def pipeline_of_strings() -> onnx.ModelProto:
    """Return a model of a column of strings and one of numbers, with string labels."""
    nodes = [
        helper.make_node(
            "OneHotEncoder", ["city"], ["city_is"], domain=ML, cats_strings=["Oslo", "Rome"]
        ),
        helper.make_node("Flatten", ["city_is"], ["codes"]),
        helper.make_node("Concat", ["codes", "age"], ["row"], axis=1),
        helper.make_node(
            "LinearClassifier",
            ["row"],
            ["label", "shares"],
            domain=ML,
            classlabels_strings=["no", "yes"],
            coefficients=[0.5, -1.0, 0.25, -0.5, 1.0, -0.25],
            intercepts=[0.125, -0.125],
            post_transform="SOFTMAX",
        ),
    ]
    model = model_of(
        nodes,
        inputs={"city": ("n", 1), "age": ("n", 1)},
        outputs={"label": ("n",), "shares": ("n", 2)},
        dtypes={"city": TensorProto.STRING, "label": TensorProto.STRING},
    )
    return model


CITY = np.array([["Rome"], ["Oslo"], ["Bonn"]], dtype=object)
AGE = np.float32([[1.0], [2.0], [4.0]])


def test_the_numeric_part_of_a_pipeline_of_strings_is_imported():
    model = pipeline_of_strings()
    codes = pt.tensor3("codes", dtype="float32")
    graph = from_onnx(model, {"city_is": codes}, outputs=["shares"])
    expected = by_runtime(model, CITY, AGE)[1]
    one_hot = (CITY[..., None] == ["Oslo", "Rome"]).astype("float32")
    found = graph.outputs[0].eval({codes: one_hot, graph.inputs[0]: AGE}, mode=PYTHON)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    slopes = pytensor.grad(graph.outputs[0][:, 1].sum(), graph.inputs[0])
    assert (slopes.eval({codes: one_hot, graph.inputs[0]: AGE}, mode=PYTHON) < 0).all()


@pytest.mark.parametrize("opset", [11, 21])
def test_encoders_of_strings_stay_in_the_file(tmp_path, opset):
    model = pipeline_of_strings()
    model.opset_import[0].version = opset
    expected = by_runtime(model, CITY, AGE)[1]
    with pytest.warns(UserWarning, match=r"^city: strings, .* the inputs city_is are the numbers"):
        graph = from_onnx(model, outputs=["shares"])
    assert [v.name for v in graph.inputs] == ["age", "city_is"]
    for city in (CITY, CITY[:, 0], CITY[:, 0].tolist()):
        codes = graph.encode({"city": city, "age": AGE})["city_is"]
        np.testing.assert_array_equal(codes[:, 0], [[0, 1], [1, 0], [0, 0]])
    with pytest.raises(ArgumentError, match="no strings are given for city"):
        graph.encode({"age": AGE})
    np.testing.assert_allclose(evaluated(graph, AGE, codes)[0], expected, rtol=1e-6)
    slope = pytensor.grad(graph.outputs[0][:, 1].sum(), graph.inputs[0])
    assert (slope.eval(dict(zip(graph.inputs, (AGE, codes), strict=True)), mode=PYTHON) < 0).all()
    program = export_onnx(graph.inputs, graph.outputs, tmp_path / "again.onnx")
    np.testing.assert_array_equal(program(AGE, codes)[0], expected)
    again = onnx.load(tmp_path / "again.onnx")
    onnx.checker.check_model(again, full_check=True)
    assert [v.name for v in again.graph.input] == ["city", "age"]
    np.testing.assert_array_equal(by_runtime(again, CITY, AGE)[0], expected)
    scores = Scorer(program)({"city": CITY[:, 0].tolist(), "age": AGE[:, 0]})["shares"]
    np.testing.assert_array_equal(scores, expected)
    changed = export_onnx(graph.inputs, graph.outputs[0] * 2).proto
    assert [v.name for v in changed.graph.input] == ["age", "city_is"]


def test_optimize_keeps_columns_of_strings(tmp_path):
    with pytest.warns(UserWarning, match="^city: strings"):
        part = from_onnx(pipeline_of_strings(), outputs=["shares"])
    export_onnx(part.inputs, part.outputs, tmp_path / "file.onnx")
    with pytest.warns(UserWarning, match="^city: strings"):
        optimize_onnx(tmp_path / "file.onnx", tmp_path / "optimized.onnx")
    found = compare_optimized(tmp_path / "file.onnx", tmp_path / "optimized.onnx", seconds=0.01)
    assert found.difference == 0
    assert onnx.load(tmp_path / "optimized.onnx").graph.input[0].name == "city"
    assert "sampled inputs (city [" in list(verify_file(tmp_path / "optimized.onnx"))[-1]


def test_labels_of_strings_are_positions_in_the_graph(tmp_path):
    model = pipeline_of_strings()
    expected = by_runtime(model, CITY, AGE)
    with pytest.warns(UserWarning, match="^label: labels that are strings"):
        graph = from_onnx(model)
    assert graph.labels == {"label": ["no", "yes"]}
    codes = graph.encode({"city": CITY})["city_is"]
    label, shares = evaluated(graph, AGE, codes)
    assert label.dtype == "int64"
    np.testing.assert_array_equal(np.array(["no", "yes"])[label], expected[0])
    np.testing.assert_allclose(shares, expected[1], rtol=1e-6)
    export_onnx(graph.inputs, graph.outputs, tmp_path / "again.onnx")
    again = onnx.load(tmp_path / "again.onnx")
    onnx.checker.check_model(again, full_check=True)
    for found, known in zip(by_runtime(again, CITY, AGE), expected, strict=True):
        np.testing.assert_array_equal(found, known)
    assert len(again.graph.node) == len(model.graph.node)
    onnx.save(model, tmp_path / "file.onnx")
    with pytest.warns(UserWarning, match="labels that are strings"):
        optimize_onnx(tmp_path / "file.onnx", tmp_path / "optimized.onnx")
    found = compare_optimized(tmp_path / "file.onnx", tmp_path / "optimized.onnx", seconds=0.01)
    assert found.difference == 0


def test_a_file_with_test_vectors_takes_the_numbers(tmp_path):
    with pytest.warns(UserWarning, match="^label: labels that are strings"):
        graph = from_onnx(pipeline_of_strings())
    program = export_onnx(graph.inputs, graph.outputs)
    program.save(tmp_path / "file.onnx", vectors=True)
    assert [v.name for v in onnx.load(tmp_path / "file.onnx").graph.input] == ["age", "city_is"]
    assert any("stored test vectors" in line for line in verify_file(tmp_path / "file.onnx"))


def test_labels_that_no_classifier_makes_are_encoded_in_the_file():
    """The classifier's label is an operand of another node, which takes its positions."""
    classifier = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["l", "s"],
        domain=ML,
        classlabels_strings=["a", "b", "c"],
        coefficients=[1.0, 0.0, 0.0, 1.0, -1.0, -1.0],
        intercepts=[0.0, 0.1, 0.2],
    )
    nodes = [classifier] + [helper.make_node("Identity", ["l"], [name]) for name in ("y", "z")]
    model = model_of(
        nodes,
        inputs={"x": ("n", 2)},
        outputs={"y": ("n",), "z": ("n",)},
        dtypes={"y": TensorProto.STRING, "z": TensorProto.STRING},
    )
    x = normal(5, 2)
    with pytest.warns(UserWarning, match="^y, z: labels that are strings"):
        graph = from_onnx(model)
    again = export_onnx(graph.inputs, graph.outputs).proto
    onnx.checker.check_model(again, full_check=True)
    for found, known in zip(by_runtime(again, x), by_runtime(model, x), strict=True):
        np.testing.assert_array_equal(found, known)


def test_a_normalizer_does_not_write_to_its_operand():
    # ONNX Runtime loses signs of rows that are negative, where it knows the shape of the result.
    scaler = helper.make_node("Scaler", ["x"], ["a"], domain=ML, offset=[0.5], scale=[2.0])
    nodes = [
        scaler,
        helper.make_node("Normalizer", ["a"], ["b"], domain=ML, norm="L2"),
        helper.make_node("LinearRegressor", ["b"], ["y"], domain=ML, coefficients=[1.0] * 11),
    ]
    model = model_of(nodes, inputs={"x": ("n", 11)}, outputs={"y": ("n", 1)})
    x = -np.abs(normal(3, 11))
    expected = by_runtime(model, x)[0]
    rows = (x - 0.5) * 2
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(expected, (rows / length).sum(axis=1, keepdims=True), rtol=1e-5)
    graph = from_onnx(model)
    program = export_onnx([*graph.inputs], pt.abs(graph.outputs[0]) * 2)
    np.testing.assert_allclose(program(x), 2 * np.abs(expected), rtol=1e-5)
    found = graph.outputs[0].eval({graph.inputs[0]: x}, mode="ONNX")
    np.testing.assert_allclose(found, expected, rtol=1e-5)


TEXTS = np.array([["Sun rain sun"], ["rain wind"], ["wind SUN snow"]], dtype=object)


def pipeline_of_text() -> onnx.ModelProto:
    """Return a model as skl2onnx writes one of TfidfVectorizer."""
    pool = ["rain", "snow", "sun", "wind", "rain", "wind"]
    counts = {"pool_strings": pool, "ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4]}
    limits = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "mode": "TF"}
    words = {"tokenexp": "[a-z]+", "mark": 0, "mincharnum": 1, "pad_value": "#"}
    lower = {"case_change_action": "LOWER", "is_case_sensitive": 0}
    nodes = [
        helper.make_node("Reshape", ["text", "flat"], ["column"]),
        helper.make_node("StringNormalizer", ["column"], ["lower"], **lower),
        helper.make_node("Tokenizer", ["lower"], ["words"], domain="com.microsoft", **words),
        helper.make_node("Flatten", ["words"], ["row"]),
        helper.make_node("TfIdfVectorizer", ["row"], ["counts"], **counts, **limits),
        helper.make_node("Normalizer", ["counts"], ["shares"], domain=ML, norm="L2"),
        helper.make_node(
            "LinearRegressor", ["shares"], ["y"], domain=ML, coefficients=[1.0, 2, 3, 4, 5]
        ),
    ]
    return model_of(
        nodes,
        inputs={"text": ("n", 1)},
        outputs={"y": ("n", 1)},
        constants={"flat": np.int64([-1])},
        dtypes={"text": TensorProto.STRING},
    )


def test_text_is_split_into_words_outside_of_the_graph():
    with pytest.warns(UserWarning, match="^text: strings, .* the inputs counts are the numbers"):
        graph = from_onnx(pipeline_of_text())
    counts = graph.encode({"text": TEXTS})["counts"]
    assert counts.tolist() == [[1, 0, 2, 0, 0], [1, 0, 0, 1, 1], [0, 1, 1, 1, 0]]
    lengths = np.linalg.norm(counts, axis=1, keepdims=True)
    expected = counts / lengths @ np.arange(1, 6)[:, None]
    np.testing.assert_allclose(evaluated(graph, counts)[0], expected, rtol=1e-6)
    (x,), (y,) = graph.inputs, graph.outputs
    gradient = pt.grad(y.sum(), x).eval({x: counts}, mode=PYTHON)
    assert np.isfinite(gradient).all()
    assert (gradient != 0).any()
    program = export_onnx(graph.inputs, graph.outputs, dynamic_axes=graph.dynamic_axes)
    found = [node.op_type for node in program.proto.graph.node]
    assert found == [node.op_type for node in pipeline_of_text().graph.node]


@pytest.mark.parametrize(
    "options",
    [
        {"tokenexp": "[a-z]+"},
        {"tokenexp": "[a-z]+", "mark": 1},
        {"separators": [" ", ","], "mincharnum": 2},
        {"separators": [""]},
    ],
    ids=["words", "marked", "separated", "characters"],
)
def test_words_are_those_of_the_runtime(options):
    given = {"mark": 0, "mincharnum": 1, "pad_value": "#", **options}
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **given)
    texts = {"dtypes": dict.fromkeys("xy", TensorProto.STRING)}
    model = model_of([node], inputs={"x": ("n",)}, outputs={"y": ("n", None)}, **texts)
    x = np.array(["sun,rain a", "", "wind"], dtype=object)
    assert tokenized(x, **given).tolist() == by_runtime(model, x)[0].tolist()


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 1), (2, 0)])
def test_sequences_of_integers_are_counted(mode, shape):
    node = helper.make_node(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        mode=mode,
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=2,
        ngram_counts=[0, 3],
        ngram_indexes=[4, 0, 1, 2, 3],
        pool_int64s=[1, 2, 3, 1, 2, 2, 1],
        weights=[1.0, 2.0, 3.0, 4.0, 5.0],
    )
    model = model_of(
        [node],
        inputs={"x": [f"n{i}" for i in range(len(shape))]},
        outputs={"y": (*[None] * (len(shape) - 1), 5)},
        dtypes={"x": TensorProto.INT64},
    )
    x = np.random.default_rng(3).integers(0, 4, shape)
    graph = from_onnx(model)
    expected = by_runtime(model, x)[0]
    assert evaluated(graph, x)[0].tolist() == expected.tolist()
    program = export_onnx(graph.inputs, graph.outputs)
    assert [n.op_type for n in program.proto.graph.node] == ["TfIdfVectorizer"]
