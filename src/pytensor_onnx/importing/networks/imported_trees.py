"""Ensembles of trees of ai.onnx.ml: regressors, classifiers, and the operator of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.imported_estimators import binary_scores, transformed
from pytensor_onnx.importing.registry import operator_imports
from pytensor_onnx.importing.registry.known_values import like

type Floats = Sequence[float]
type Ints = Sequence[int]

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MEMBER, _LEAF = len(_MODES), -1
_COMPARISONS: tuple[Callable[..., TensorVariable], ...] = (
    pt.le,
    pt.lt,
    pt.ge,
    pt.gt,
    pt.eq,
    pt.neq,
)
_AGGREGATIONS = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class Forest:
    """Trees as arrays over all of their nodes; a leaf leads to itself.

    Attributes
    ----------
    roots
        First nodes of the trees.
    features, bounds, modes
        The column that a node looks at, the number and the kind of its comparison.
    yes, no
        The nodes that follow where the comparison holds, and where not.
    nan_goes_on
        Whether a missing value counts as a comparison that holds.
    leaves
        Weights of the nodes for each target, zero where a node has none.
    has_weight
        Whether the node has a weight for each target.
    members
        For each node the set of a comparison by membership, filled up by NaN.
    """

    roots: np.ndarray
    features: np.ndarray
    bounds: np.ndarray
    modes: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    nan_goes_on: np.ndarray
    leaves: np.ndarray
    has_weight: np.ndarray
    members: np.ndarray | None = None

    def places(self, x: TensorVariable) -> TensorVariable:
        """Return the leaves (row, tree) that rows reach."""
        place: Any = pt.constant(self.roots[None, :])
        place = place + pt.zeros_like(x[:, :1], dtype="int64")
        features = pt.constant(self.features)
        for _ in range(self._depth()):
            seen = pt.take_along_axis(x, features[place], axis=1)
            place = pt.switch(
                self._holds(seen, place), pt.constant(self.yes)[place], pt.constant(self.no)[place]
            )
        return place

    def combined(self, places: TensorVariable, name: str) -> TensorVariable:
        """Combine the weights of trees for each target; without any the result is zero."""
        weights = pt.constant(self.leaves)[places]
        if name in ("SUM", "AVERAGE"):
            total = weights.sum(axis=1, dtype=weights.type.dtype)
            return total / like(total, len(self.roots)) if name == "AVERAGE" else total
        extremum, neutral = (pt.min, np.inf) if name == "MIN" else (pt.max, -np.inf)
        if self.has_weight[self.modes == _LEAF].all():
            return extremum(weights, axis=1)
        present = pt.constant(self.has_weight)[places]
        found = extremum(pt.switch(present, weights, like(weights, neutral)), axis=1)
        return pt.switch(pt.any(present, axis=1), found, like(weights, 0))

    def always_weighs(self, *targets: int) -> bool:
        """Return whether each row reaches a leaf with a weight for one of some targets."""
        has_none = (self.modes == _LEAF) & ~self.has_weight[:, targets].any(axis=1)
        return any(not has_none[self._nodes_of(root)].any() for root in self.roots)

    def _nodes_of(self, root: int) -> np.ndarray:
        nodes, level = [root], np.array([root])
        while (inner := level[self.modes[level] != _LEAF]).size:
            level = np.concatenate([self.yes[inner], self.no[inner]])
            nodes.extend(level.tolist())
        return np.array(nodes)

    def _holds(self, seen: TensorVariable, place: TensorVariable) -> TensorVariable:
        """Return whether the comparisons of nodes hold."""
        bounds, modes = pt.constant(self.bounds)[place], pt.constant(self.modes)[place]
        present = [int(mode) for mode in np.unique(self.modes) if mode != _LEAF]
        holds = self._compared(present[0], seen, bounds, place)
        for mode in present[1:]:
            holds = pt.switch(pt.eq(modes, mode), self._compared(mode, seen, bounds, place), holds)
        if self.nan_goes_on.any():
            holds = holds | (pt.isnan(seen) & pt.constant(self.nan_goes_on)[place])
        return holds

    def _compared(
        self, mode: int, seen: TensorVariable, bounds: TensorVariable, place: TensorVariable
    ) -> TensorVariable:
        if mode == _MEMBER:
            return pt.any(pt.eq(seen[..., None], pt.constant(self.members)[place]), axis=-1)
        return _COMPARISONS[mode](seen, bounds)

    def _depth(self) -> int:
        """Return the largest number of steps to a leaf."""
        level, steps = np.unique(self.roots), 0
        while True:
            inner = level[self.modes[level] != _LEAF]
            if not inner.size:
                return steps
            if steps > self.modes.size:
                raise UnsupportedCase("a tree has a node that leads back to itself")
            level, steps = np.unique([self.yes[inner], self.no[inner]]), steps + 1


def _numbered_forest(
    dtype: str,
    targets: int,
    nodes: dict[str, Any],
    weights: tuple[Ints, Ints, Ints, Any],
) -> Forest:
    """Return the forest of nodes that have the number of their tree and a number in it."""
    keys = list(zip(nodes["treeids"], nodes["nodeids"], strict=True))
    at = {key: i for i, key in enumerate(keys)}
    names = [str(mode) for mode in nodes["modes"]]
    unknown = {*names} - {*_MODES, "LEAF"}
    if unknown:
        raise UnsupportedCase(f"comparisons {', '.join(sorted(unknown))} are not known")
    modes = np.array([_LEAF if name == "LEAF" else _MODES.index(name) for name in names])

    def following(ids: Ints) -> np.ndarray:
        rows = enumerate(zip(keys, ids, strict=True))
        return np.array([i if names[i] == "LEAF" else at[key[0], n] for i, (key, n) in rows])

    yes, no = following(nodes["truenodeids"]), following(nodes["falsenodeids"])
    inner = modes != _LEAF
    children = {*yes[inner].tolist(), *no[inner].tolist()}
    leaves = np.zeros((len(keys), targets), dtype=dtype)
    has_weight = np.zeros(leaves.shape, dtype=bool)
    for tree, node, target, weight in zip(*weights, strict=True):
        place = at[tree, node], target
        if has_weight[place]:
            raise UnsupportedCase("a leaf has two weights for one target")
        leaves[place], has_weight[place] = weight, True
    tracks = nodes.get("missing") or np.zeros(len(keys))
    return Forest(
        np.array([i for i in range(len(keys)) if i not in children]),
        np.asarray(nodes["featureids"], dtype="int64"),
        np.asarray(nodes["values"], dtype=dtype),
        modes,
        yes,
        no,
        np.asarray(tracks, dtype=bool),
        leaves,
        has_weight,
    )


def _check_leaves_of_one_target(forest: Forest, aggregate_function: str) -> None:
    """Refuse leaves without a weight where ONNX Runtime takes the number of the node for it."""
    lacks = (forest.modes == _LEAF) & ~forest.has_weight[:, 0]
    is_sum = aggregate_function in ("SUM", "AVERAGE")
    if lacks.any() and (not is_sum or forest.bounds[lacks].any()):
        raise UnsupportedCase(
            "a leaf has no weight, for which runtimes take other numbers",
            "give each leaf of a single target a weight",
        )


def _check_base(base: Sequence[float] | np.ndarray, counts: Sequence[int]) -> None:
    if len(base) not in (0, *counts):
        raise UnsupportedCase(
            f"it has {len(base)} base values, which the standard and ONNX Runtime add differently",
            "add them to the scores after the import",
        )


@operator_imports.onnx_import("TreeEnsembleRegressor", domain=operator_imports.MACHINE_LEARNING)
def tree_regressor(
    x: TensorVariable,
    *,
    aggregate_function: str = "SUM",
    base_values: Floats = (),
    base_values_as_tensor: np.ndarray | None = None,
    n_targets: int = 1,
    nodes_falsenodeids: Ints,
    nodes_featureids: Ints,
    nodes_hitrates: Floats = (),
    nodes_hitrates_as_tensor: np.ndarray | None = None,
    nodes_missing_value_tracks_true: Ints = (),
    nodes_modes: Sequence[str],
    nodes_nodeids: Ints,
    nodes_treeids: Ints,
    nodes_truenodeids: Ints,
    nodes_values: Floats = (),
    nodes_values_as_tensor: np.ndarray | None = None,
    post_transform: str = "NONE",
    target_ids: Ints,
    target_nodeids: Ints,
    target_treeids: Ints,
    target_weights: Floats = (),
    target_weights_as_tensor: np.ndarray | None = None,
) -> TensorVariable:
    """Combine the weights of the leaves that a row reaches."""
    values = nodes_values if nodes_values_as_tensor is None else nodes_values_as_tensor
    weights = target_weights if target_weights_as_tensor is None else target_weights_as_tensor
    rows = _rows(x)
    nodes = {
        "treeids": nodes_treeids,
        "nodeids": nodes_nodeids,
        "modes": nodes_modes,
        "featureids": nodes_featureids,
        "values": values,
        "truenodeids": nodes_truenodeids,
        "falsenodeids": nodes_falsenodeids,
        "missing": nodes_missing_value_tracks_true,
    }
    forest = _numbered_forest(
        rows.type.dtype,
        n_targets,
        nodes,
        (target_treeids, target_nodeids, target_ids, weights),
    )
    places = forest.places(rows)
    if n_targets == 1:
        _check_leaves_of_one_target(forest, aggregate_function)
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    _check_base(base, [n_targets] if all(map(forest.always_weighs, range(n_targets))) else [])
    result = forest.combined(places, aggregate_function)
    result = result + like(result, base) if len(base) else result
    return transformed(result.astype("float32"), post_transform)


@operator_imports.onnx_import("TreeEnsembleClassifier", domain=operator_imports.MACHINE_LEARNING)
def tree_classifier(
    x: TensorVariable,
    *,
    base_values: Floats = (),
    base_values_as_tensor: np.ndarray | None = None,
    class_ids: Ints,
    class_nodeids: Ints,
    class_treeids: Ints,
    class_weights: Floats = (),
    class_weights_as_tensor: np.ndarray | None = None,
    classlabels_int64s: Ints = (),
    classlabels_strings: Sequence[str] = (),
    nodes_falsenodeids: Ints,
    nodes_featureids: Ints,
    nodes_hitrates: Floats = (),
    nodes_hitrates_as_tensor: np.ndarray | None = None,
    nodes_missing_value_tracks_true: Ints = (),
    nodes_modes: Sequence[str],
    nodes_nodeids: Ints,
    nodes_treeids: Ints,
    nodes_truenodeids: Ints,
    nodes_values: Floats = (),
    nodes_values_as_tensor: np.ndarray | None = None,
    post_transform: str = "NONE",
) -> list[TensorVariable]:
    """Return the label with the largest sum of weights, and the sums.

    Two labels with weights for one of them only are told apart by a bound, as ONNX Runtime does.
    With weights for both, ONNX Runtime takes the sign of the second score instead.
    """
    if classlabels_strings:
        raise UnsupportedCase("its labels are strings", operator_imports.OF_STRING_LABELS)
    values = nodes_values if nodes_values_as_tensor is None else nodes_values_as_tensor
    weights = class_weights if class_weights_as_tensor is None else class_weights_as_tensor
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    rows, count = _rows(x), len(classlabels_int64s)
    is_binary = count == 2 and len({*class_ids}) == 1
    is_single = is_binary and class_ids[0] == 0
    nodes = {
        "treeids": nodes_treeids,
        "nodeids": nodes_nodeids,
        "modes": nodes_modes,
        "featureids": nodes_featureids,
        "values": values,
        "truenodeids": nodes_truenodeids,
        "falsenodeids": nodes_falsenodeids,
        "missing": nodes_missing_value_tracks_true,
    }
    forest = _numbered_forest(
        rows.type.dtype,
        1 if is_single else count,
        nodes,
        (class_treeids, class_nodeids, class_ids, weights),
    )
    places = forest.places(rows)
    if count == 1:
        _check_leaves_of_one_target(forest, "SUM")
    if count == 2 and not is_single and not forest.always_weighs(1):
        raise UnsupportedCase(
            "some rows have no weight for the second of two labels, and ONNX Runtime returns "
            "scores of another meaning for them",
            "give all leaves weights for the first label only, or for both",
        )
    if count > 2 and not len(base) and not forest.always_weighs(*range(count)):
        raise UnsupportedCase("some rows have no weights, for which ONNX Runtime fails")
    takes_base = count > 2 or (is_single and forest.always_weighs(0))
    _check_base(base, [1 if is_single else count] if takes_base else [])
    scores = forest.combined(places, "SUM")
    scores = (scores + like(scores, base) if len(base) else scores).astype("float32")
    labels = pt.constant(np.asarray(classlabels_int64s, dtype="int64"))
    is_share = bool(np.all(np.asarray(weights) >= 0))
    if is_binary:
        best = (scores[:, -1] > like(scores, 0.5 if is_share else 0)).astype("int64")
        if is_single:
            return [labels[best], binary_scores(scores, post_transform, is_share)]
        return [labels[best], transformed(scores, post_transform)]
    rated = scores
    if count > 2 and not len(base) and not all(map(forest.always_weighs, range(count))):
        # A label that no leaf gives a weight is not chosen, though its score is zero.
        is_rated = pt.any(pt.constant(forest.has_weight)[places], axis=1)
        rated = pt.switch(is_rated, scores, like(scores, -np.inf))
    return [labels[pt.argmax(rated, axis=1)], transformed(scores, post_transform)]


@operator_imports.onnx_import("TreeEnsemble", domain=operator_imports.MACHINE_LEARNING)
def tree_ensemble(
    x: TensorVariable,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Ints,
    leaf_weights: np.ndarray,
    membership_values: np.ndarray | None = None,
    n_targets: int = 1,
    nodes_falseleafs: Ints,
    nodes_falsenodeids: Ints,
    nodes_featureids: Ints,
    nodes_hitrates: np.ndarray | None = None,
    nodes_missing_value_tracks_true: Ints = (),
    nodes_modes: np.ndarray,
    nodes_splits: np.ndarray,
    nodes_trueleafs: Ints,
    nodes_truenodeids: Ints,
    post_transform: int = 0,
    tree_roots: Ints,
) -> TensorVariable:
    """Combine the weights of the leaves that a row reaches; nodes and leaves have own numbers."""
    count, leaves = len(nodes_featureids), len(leaf_targetids)
    dtype, name = x.type.dtype, _AGGREGATIONS[aggregate_function]
    weights = np.zeros((count + leaves, n_targets), dtype=dtype)
    given = count + np.arange(leaves), np.asarray(leaf_targetids)
    has_weight = np.zeros(weights.shape, dtype=bool)
    weights[given], has_weight[given] = leaf_weights, True

    def following(ids: Ints, are_leaves: Ints) -> np.ndarray:
        inner = np.asarray(ids) + count * np.asarray(are_leaves)
        return np.concatenate([inner, count + np.arange(leaves)])

    def padded(numbers: Any, filler: float) -> np.ndarray:
        return np.concatenate([np.asarray(numbers), np.full(leaves, filler)])

    yes = following(nodes_truenodeids, nodes_trueleafs)
    no = following(nodes_falsenodeids, nodes_falseleafs)
    modes = padded(nodes_modes, _LEAF).astype("int64")
    # A tree of one leaf has a node with twice that leaf.
    forest = Forest(
        np.asarray(tree_roots, dtype="int64"),
        padded(nodes_featureids, 0).astype("int64"),
        padded(nodes_splits, 0).astype(dtype),
        modes,
        yes,
        no,
        padded(nodes_missing_value_tracks_true or np.zeros(count), 0).astype(bool),
        weights,
        has_weight,
        _members(modes, membership_values, dtype),
    )
    result = forest.combined(forest.places(x), name)
    return transformed(result, _TRANSFORMS[post_transform])


def _members(modes: np.ndarray, values: np.ndarray | None, dtype: str) -> np.ndarray | None:
    """Return the sets of nodes as rows; the file has them in order, each before a NaN."""
    if values is None:
        return None
    sets: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    width = max(map(len, sets))
    rows = np.full((modes.size, max(width, 1)), np.nan, dtype=dtype)
    for node, own in zip(np.flatnonzero(modes == _MEMBER), sets, strict=False):
        rows[node, : len(own)] = own
    return rows


def _rows(x: TensorVariable) -> TensorVariable:
    return x if x.type.dtype == "float64" else x.astype("float32")
