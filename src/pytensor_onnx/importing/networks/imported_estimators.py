"""Models of ai.onnx.ml, which scikit-learn's converters write: linear models, scalers and trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import like
from pytensor_onnx.importing.registry.operator_imports import MACHINE_LEARNING, onnx_import


@onnx_import("Scaler", domain=MACHINE_LEARNING)
def scaler(
    x: TensorVariable, *, offset: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)
) -> TensorVariable:
    """Subtract an offset and multiply by a scale, for each feature."""
    numbers = x.astype("float32")
    return (numbers - like(numbers, offset)) * like(numbers, scale)


@onnx_import("Normalizer", domain=MACHINE_LEARNING)
def normalizer(x: TensorVariable, *, norm: str = "MAX") -> TensorVariable:
    """Divide rows by a norm, rows of zeros by one."""
    rows = x.astype("float32")
    if norm == "MAX":
        total = pt.max(rows, axis=-1, keepdims=True)
    elif norm == "L1":
        total = pt.abs(rows).sum(axis=-1, keepdims=True)
    else:
        total = pt.sqrt(pt.sqr(rows).sum(axis=-1, keepdims=True))
    return rows / pt.switch(pt.eq(total, like(total, 0)), like(total, 1), total)


@onnx_import("Binarizer", domain=MACHINE_LEARNING)
def binarizer(x: TensorVariable, *, threshold: float = 0.0) -> TensorVariable:
    """Return one above a threshold, else zero."""
    return (x > like(x, threshold)).astype(x.type.dtype)


@onnx_import("ArrayFeatureExtractor", domain=MACHINE_LEARNING)
def take_features(x: TensorVariable, indices: TensorVariable) -> TensorVariable:
    """Take columns."""
    return pt.atleast_2d(x).take(indices.reshape((-1,)), axis=-1)


@onnx_import("LinearRegressor", domain=MACHINE_LEARNING)
def linear_regressor(
    x: TensorVariable,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> TensorVariable:
    """Multiply features by coefficients."""
    rows = x.astype("float32")
    result = rows @ like(rows, np.reshape(coefficients, (targets, -1)).T)
    result = result + like(rows, intercepts) if intercepts else result
    return _transformed(result, post_transform)


@onnx_import("LinearClassifier", domain=MACHINE_LEARNING)
def linear_classifier(
    x: TensorVariable,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> list[TensorVariable]:
    """Return the label with the best score, and the scores."""
    if classlabels_strings:
        raise UnsupportedCase("its labels are strings", "train with labels that are integers")
    rows = x.astype("float32")
    count = len(classlabels_ints)
    scores = rows @ like(rows, np.reshape(coefficients, (len(intercepts) or count, -1)).T)
    scores = scores + like(rows, intercepts) if intercepts else scores
    if scores.type.shape[-1] == 1 and count == 2:
        scores = pt.concatenate([-scores, scores], axis=1)
    labels = pt.constant(np.asarray(classlabels_ints, dtype="int64"))
    return [labels[pt.argmax(scores, axis=1)], _transformed(scores, post_transform)]


def _transformed(scores: TensorVariable, name: str) -> TensorVariable:
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        return pt.sigmoid(scores)
    if name == "SOFTMAX":
        return pt.special.softmax(scores, axis=-1)
    raise UnsupportedCase(f"its transform {name.lower()} of scores is not supported")


@onnx_import("TreeEnsembleRegressor", domain=MACHINE_LEARNING)
def tree_regressor(
    x: TensorVariable,
    *,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] = (),
    base_values_as_tensor: np.ndarray | None = None,
    n_targets: int = 1,
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Sequence[float] = (),
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Sequence[str],
    nodes_nodeids: Sequence[int],
    nodes_treeids: Sequence[int],
    nodes_truenodeids: Sequence[int],
    nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: np.ndarray | None = None,
    post_transform: str = "NONE",
    target_ids: Sequence[int],
    target_nodeids: Sequence[int],
    target_treeids: Sequence[int],
    target_weights: Sequence[float] = (),
    target_weights_as_tensor: np.ndarray | None = None,
) -> TensorVariable:
    """Add the weights of the leaf that a row reaches in each tree."""
    if aggregate_function not in ("SUM", "AVERAGE"):
        raise UnsupportedCase(f"its aggregation {aggregate_function.lower()} is not supported")
    if {*nodes_modes} - {"BRANCH_LEQ", "BRANCH_LT", "LEAF"}:
        raise UnsupportedCase("its comparisons are not <= and < only")
    if any(nodes_missing_value_tracks_true):
        raise UnsupportedCase("missing values take branches of their own")
    values = nodes_values if nodes_values_as_tensor is None else nodes_values_as_tensor
    weights = target_weights if target_weights_as_tensor is None else target_weights_as_tensor
    at = {key: i for i, key in enumerate(zip(nodes_treeids, nodes_nodeids, strict=True))}
    is_leaf = np.array([mode == "LEAF" for mode in nodes_modes])
    own = np.arange(len(at))
    yes, no = (
        np.array([i if leaf else at[tree, node] for i, (leaf, tree, node) in enumerate(rows)])
        for rows in (
            list(zip(is_leaf, nodes_treeids, ids, strict=True))
            for ids in (nodes_truenodeids, nodes_falsenodeids)
        )
    )
    roots = np.array(_roots(own, is_leaf, yes, no))
    bounds = np.asarray(values, dtype="float32")
    strict = np.array([mode == "BRANCH_LT" for mode in nodes_modes])
    # A number is below a bound if it is at most the next smaller one.
    bounds = np.where(strict, np.nextafter(bounds, np.float32(-np.inf)), bounds)
    leaves = np.zeros((len(at), n_targets), dtype="float32")
    for tree, node, target, weight in zip(
        target_treeids, target_nodeids, target_ids, weights, strict=True
    ):
        leaves[at[tree, node], target] += weight
    rows = x.astype("float32")
    place: Any = pt.constant(np.broadcast_to(roots, (1, len(roots))).copy())
    place = place + pt.zeros_like(rows[:, :1], dtype="int64")
    features = pt.constant(np.asarray(nodes_featureids, dtype="int64"))
    for _ in range(_depth(roots, yes, no)):
        seen = pt.take_along_axis(rows, features[place], axis=1)
        place = pt.switch(
            seen <= pt.constant(bounds)[place], pt.constant(yes)[place], pt.constant(no)[place]
        )
    result = pt.constant(leaves)[place].sum(axis=1)
    if aggregate_function == "AVERAGE":
        result = result / like(result, len(roots))
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    result = result + like(result, base) if len(base) else result
    return _transformed(result, post_transform)


def _roots(own: np.ndarray, is_leaf: np.ndarray, yes: np.ndarray, no: np.ndarray) -> list[int]:
    """Return the nodes that no other node leads to, one for each tree."""
    children = {*yes[~is_leaf], *no[~is_leaf]}
    return [int(i) for i in own if i not in children]


def _depth(roots: np.ndarray, yes: np.ndarray, no: np.ndarray) -> int:
    """Return the largest number of steps to a leaf."""
    level, steps = {int(r) for r in roots}, 0
    while True:
        following = {int(n) for i in level for n in (yes[i], no[i]) if n != i}
        if not following:
            return steps
        level, steps = following, steps + 1
