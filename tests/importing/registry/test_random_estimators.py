"""Random estimators of ai.onnx.ml equal ONNX Runtime's results, or are refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from onnx import TensorProto, helper

from pytensor_onnx import UnsupportedOpError, from_onnx
from tests.importing.models import by_runtime, evaluated, model_of

ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
BRANCHES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
ROWS = np.float32(
    [[0, 0.25], [0.25, 0], [1, -1], [-1, 0.5], [np.nan, 1], [0.5, np.nan], [0.25, 0.25]]
)
LABELS = [[3, 7], [9, 3, 7]]
LABELS_OF_RUNTIME = [0, 1]
seeds = st.integers(0, 2**32 - 1)


def trees(rng: np.random.Generator) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return the attributes of the nodes of one to three trees, and their leaves."""
    nodes: list[dict[str, Any]] = []

    def grow(tree: int, depth: int) -> int:
        node = {"treeids": tree, "nodeids": sum(n["treeids"] == tree for n in nodes)}
        nodes.append(node)
        is_leaf = depth == 0 or rng.random() < 0.2
        node.update(
            featureids=int(rng.integers(2)),
            values=0.0 if is_leaf else float(rng.integers(-1, 3) / 4),
            modes="LEAF" if is_leaf else str(rng.choice(BRANCHES)),
            truenodeids=0,
            falsenodeids=0,
            missing_value_tracks_true=int(rng.integers(2)),
        )
        if not is_leaf:
            node.update(truenodeids=grow(tree, depth - 1), falsenodeids=grow(tree, depth - 1))
        return int(node["nodeids"])

    for tree in range(rng.integers(1, 4)):
        grow(tree, int(rng.integers(3)))
    leaves = [(n["treeids"], n["nodeids"]) for n in nodes if n["modes"] == "LEAF"]
    return {f"nodes_{name}": [n[name] for n in nodes] for name in nodes[0]}, leaves


def weights(
    rng: np.random.Generator, leaves: Sequence[tuple[int, int]], count: int, name: str
) -> dict[str, Any]:
    """Return weights of leaves for all targets, one target, or a random one each."""
    kind = rng.choice(["all", "first", "last", "random"])
    rows = []
    for tree, node in leaves:
        ids = {
            "all": list(range(count)),
            "first": [0],
            "last": [count - 1],
            "random": rng.permutation(count)[: rng.integers(count + 1)].tolist(),
        }[str(kind)]
        rows.extend((tree, node, i) for i in ids)
    rows = rows or [(*leaves[0], 0)]
    numbers = rng.choice([0.0, 0.25, 0.5, 1.0, 0.125], len(rows))
    if rng.random() < 0.5:
        numbers *= rng.choice([-1, 1], len(rows))
    columns = dict(zip(("treeids", "nodeids", "ids"), zip(*rows, strict=True), strict=True))
    lists = {f"{name}_{k}": list(map(int, v)) for k, v in columns.items()}
    return {**lists, f"{name}_weights": numbers.tolist()}


def base(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Return base values, in half of the cases none."""
    values = rng.choice([-0.5, 0.125, 0.5], int(rng.choice([1, count]))).tolist()
    return {"base_values": values} if rng.random() < 0.5 else {}


def classifier(operator: str, labels: Sequence[int], **attributes: Any) -> Any:
    name = "classlabels_int64s" if operator.startswith("Tree") else "classlabels_ints"
    node = helper.make_node(
        operator, ["x"], ["label", "scores"], domain=ML, **{name: labels}, **attributes
    )
    return model_of(
        [node],
        inputs={"x": ("n", 2)},
        outputs={"label": ("n",), "scores": ("n", None)},
        dtypes={"label": TensorProto.INT64},
    )


def regressor(operator: str, **attributes: Any) -> Any:
    node = helper.make_node(operator, ["x"], ["y"], domain=ML, **attributes)
    return model_of([node], inputs={"x": ("n", 2)}, outputs={"y": ("n", None)})


def assert_equal_or_refused(model: Any, x: np.ndarray, transform: str) -> None:
    """Compare an import with ONNX Runtime."""
    try:
        graph = from_onnx(model)
    except UnsupportedOpError:
        return
    found, expected = evaluated(graph, x), by_runtime(model, x)
    # ONNX Runtime's inverse of the error function is right to three digits.
    rtol = 4e-3 if transform == "PROBIT" else 1e-5
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found[-1], expected[-1], rtol=rtol, atol=rtol)
    if len(found) == 2 and np.isin(expected[0], LABELS_OF_RUNTIME).any():
        # Two labels with weights for both: the runtime numbers them by the sign of the second.
        expected[0] = np.take([3, 7], np.argmax(expected[-1], axis=1))
    if len(found) == 2 and transform not in ("SOFTMAX_ZERO", "PROBIT"):
        np.testing.assert_array_equal(found[0], expected[0])


@given(seed=seeds, transform=st.sampled_from(TRANSFORMS), labels=st.sampled_from(LABELS))
@settings(deadline=None, max_examples=40)
def test_classifiers_of_trees(seed, transform, labels):
    rng = np.random.default_rng(seed)
    nodes, leaves = trees(rng)
    attributes = {
        **nodes,
        **weights(rng, leaves, len(labels), "class"),
        **base(rng, len(labels)),
        "post_transform": transform,
    }
    assert_equal_or_refused(
        classifier("TreeEnsembleClassifier", labels, **attributes), ROWS, transform
    )


@given(
    seed=seeds,
    transform=st.sampled_from(TRANSFORMS),
    aggregate=st.sampled_from(["SUM", "AVERAGE", "MIN", "MAX"]),
    count=st.integers(1, 3),
)
@settings(deadline=None, max_examples=40)
def test_regressors_of_trees(seed, transform, aggregate, count):
    rng = np.random.default_rng(seed)
    nodes, leaves = trees(rng)
    attributes = {
        **nodes,
        **weights(rng, leaves, count, "target"),
        **base(rng, count),
        "n_targets": count,
        "aggregate_function": aggregate,
        "post_transform": transform,
    }
    assert_equal_or_refused(regressor("TreeEnsembleRegressor", **attributes), ROWS, transform)


@given(
    seed=seeds,
    transform=st.sampled_from(TRANSFORMS),
    labels=st.sampled_from(LABELS),
    kernel=st.sampled_from(["LINEAR", "POLY", "RBF", "SIGMOID"]),
    has_shares=st.booleans(),
)
@settings(deadline=None, max_examples=15)
def test_support_vector_classifiers(seed, transform, labels, kernel, has_shares):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, len(labels))
    pairs = len(labels) * (len(labels) - 1) // 2
    attributes = {
        "vectors_per_class": counts.tolist(),
        "support_vectors": rng.normal(size=2 * counts.sum()).tolist(),
        "coefficients": rng.normal(size=(len(labels) - 1) * counts.sum()).tolist(),
        "rho": rng.normal(size=pairs).tolist(),
        "kernel_type": kernel,
        "kernel_params": [0.5, 0.25, 2.0],
        "post_transform": transform,
    }
    if has_shares:
        attributes |= {name: rng.normal(size=pairs).tolist() for name in ("prob_a", "prob_b")}
    x = rng.normal(size=(7, 2)).astype("float32")
    assert_equal_or_refused(classifier("SVMClassifier", labels, **attributes), x, transform)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("labels", "rows"), [([3, 7], 1), ([3, 7], 2), ([9, 3, 7], 3)])
def test_linear_classifiers(labels, rows, transform):
    model = classifier(
        "LinearClassifier",
        labels,
        coefficients=[0.5, -1.0, 0.25, 2.0, 1.0, -0.5][: 2 * rows],
        intercepts=[0.25, -0.5, 0.125][:rows],
        post_transform=transform,
    )
    x = np.float32([[0.5, 1], [-1, 0.25], [1, 0.125], [2, 3]])
    assert_equal_or_refused(model, x, transform)
