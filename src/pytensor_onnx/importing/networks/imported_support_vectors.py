"""Support vector machines of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.score_transforms import binary_scores, transformed
from pytensor_onnx.importing.registry.known_values import like
from pytensor_onnx.importing.registry.operator_imports import MACHINE_LEARNING, onnx_import

_STEPS = 100
"""Steps of ONNX Runtime, at most, to the shares of classes."""


@onnx_import("SVMRegressor", domain=MACHINE_LEARNING)
def support_vector_regressor(
    x: TensorVariable,
    *,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (0.0, 0.0, 0.0),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
) -> TensorVariable:
    """Add coefficients times the kernel of a row and each support vector; with none, times it."""
    rows = x.astype("float32")
    if n_supports:
        vectors = like(rows, np.reshape(support_vectors, (n_supports, -1)))
        rows = _kernel(rows, vectors, kernel_type, *kernel_params)
    result = rows @ like(rows, coefficients)[:, None] + like(rows, rho[0])
    if one_class:
        return pt.switch(result > like(rows, 0), like(rows, 1), like(rows, -1))
    if post_transform == "PROBIT":
        raise UnsupportedCase("its transform PROBIT of the score is not applied by ONNX Runtime")
    return transformed(result, post_transform)


@onnx_import("SVMClassifier", domain=MACHINE_LEARNING)
def support_vector_classifier(
    x: TensorVariable,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (0.0, 0.0, 0.0),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
) -> list[TensorVariable]:
    """Return the label with the most votes of pairs, and scores of pairs or shares of labels.

    Without support vectors, each label has a linear score.
    """
    if classlabels_strings:
        raise UnsupportedCase("its labels are strings", "train with labels that are integers")
    count, rows = len(classlabels_ints), x.astype("float32")
    if count < 2 or (count == 2 and not vectors_per_class):
        raise UnsupportedCase("it tells fewer than three labels apart without support vectors")
    labels = pt.constant(np.asarray(classlabels_ints, dtype="int64"))
    if not vectors_per_class:
        scores = rows @ like(rows, np.reshape(coefficients, (count, -1)).T) + like(rows, rho[0])
        return [labels[pt.argmax(scores, axis=1)], transformed(scores, post_transform)]
    vectors = like(rows, np.reshape(support_vectors, (sum(vectors_per_class), -1)))
    kernels = _kernel(rows, vectors, kernel_type, *kernel_params)
    scores = kernels @ like(rows, _weights_of_pairs(coefficients, vectors_per_class))
    scores = scores + like(rows, rho[: count * (count - 1) // 2])
    label = labels[pt.argmax(_votes(scores, count), axis=1)]
    if prob_a:
        shares = pt.sigmoid(-(scores * like(rows, prob_a) + like(rows, prob_b)))
        return [label, transformed(_shares_of_classes(shares, count), post_transform)]
    if count == 2:
        return [label, binary_scores(scores, post_transform, is_share=post_transform != "NONE")]
    return [label, transformed(scores, post_transform)]


def _weights_of_pairs(coefficients: Sequence[float], counts: Sequence[int]) -> np.ndarray:
    """Return weights (vector, pair of classes) of rows of coefficients for each other class."""
    rows = np.reshape(coefficients, (len(counts) - 1, -1))
    ends = np.cumsum(counts)
    blocks = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    weights = np.zeros((rows.shape[1], len(counts) * (len(counts) - 1) // 2))
    for pair, (i, j) in enumerate(combinations(range(len(counts)), 2)):
        weights[blocks[i], pair] = rows[j - 1, blocks[i]]
        weights[blocks[j], pair] = rows[i, blocks[j]]
    return weights


def _votes(scores: TensorVariable, count: int) -> TensorVariable:
    """Return the number of pairs (row, class) that a class wins, the first by a positive score."""
    pairs = list(combinations(range(count), 2))
    first, second = (np.eye(count, dtype="int64")[[pair[k] for pair in pairs]] for k in (0, 1))
    wins = (scores > like(scores, 0)).astype("int64")
    return wins @ first + (1 - wins) @ second


def _shares_of_classes(shares: TensorVariable, count: int) -> TensorVariable:
    """Return shares (row, class) that fit shares of pairs best, by the method of LIBSVM.

    They minimise the sum of squares of ``r[j, i] * p[i] - r[i, j] * p[j]``, where ``r[i, j]`` is
    the share of ``i`` in the pair. Steps end where ONNX Runtime's do, 0.005 / count from the
    minimum.

    References
    ----------
    T.-F. Wu, C.-J. Lin, R. C. Weng: Probability estimates for multi-class classification by
    pairwise coupling. JMLR 5 (2004), second method.
    """
    places = np.zeros((count, count), dtype="int64")
    pairs = np.triu_indices(count, 1)
    places[pairs] = 1 + np.arange(len(pairs[0]))
    places.T[pairs] = 1 + len(pairs[0]) + np.arange(len(pairs[0]))
    bounded = pt.clip(shares, like(shares, 1e-7), like(shares, 1) - like(shares, 1e-7))
    none = pt.zeros_like(shares[:, :1])
    r = pt.concatenate([none, bounded, like(shares, 1) - bounded], axis=1)[:, places]
    own = pt.sqr(r).sum(axis=1)
    q = own[:, :, None] * like(shares, np.eye(count)) - r * r.transpose((0, 2, 1))
    start = pt.zeros_like(own) + like(shares, 1 / count)

    def step(p: TensorVariable, q: TensorVariable) -> object:
        moved, error = _towards_best_shares(p, q, count)
        is_far = error >= like(p, 0.005 / count)
        return pt.switch(is_far[:, None], moved, p), until(pt.invert(pt.any(is_far)))

    steps = pytensor.scan(
        step, outputs_info=[start], non_sequences=[q], n_steps=_STEPS, return_updates=False
    )
    return steps[-1]


def _towards_best_shares(
    p: TensorVariable, q: TensorVariable, count: int
) -> tuple[TensorVariable, TensorVariable]:
    """Return shares after a step along each class in turn, and the error before it."""
    slopes = pt.sum(q * p[:, None, :], axis=2)
    value = pt.sum(p * slopes, axis=1)
    error = pt.max(pt.abs(slopes - value[:, None]), axis=1)
    for k in range(count):
        diff = (value - slopes[:, k]) / q[:, k, k]
        scale = like(p, 1) + diff
        value = (value + diff * (diff * q[:, k, k] + like(p, 2) * slopes[:, k])) / pt.sqr(scale)
        slopes = (slopes + diff[:, None] * q[:, k, :]) / scale[:, None]
        p = pt.inc_subtensor(p[:, k], diff) / scale[:, None]
    return p, error


def _kernel(
    x: TensorVariable, vectors: np.ndarray, name: str, gamma: float, offset: float, degree: float
) -> TensorVariable:
    """Return the kernel (row, vector) of rows and vectors."""
    if name == "RBF":
        distances = pt.sqr(x[:, None, :] - vectors).sum(axis=2)
        return pt.exp(like(x, -gamma) * distances)
    product = x @ vectors.T
    if name == "LINEAR":
        return product
    inner = like(x, gamma) * product + like(x, offset)
    return inner ** like(x, degree) if name == "POLY" else pt.tanh(inner)
