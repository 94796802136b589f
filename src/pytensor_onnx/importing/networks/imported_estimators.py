"""Imported estimators: linear ones, support vectors and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.raise_op import Assert
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import like
from pytensor_onnx.importing.registry.operator_imports import (
    MACHINE_LEARNING,
    OF_STRING_LABELS,
    onnx_import,
)


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
    return transformed(result, post_transform)


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
        raise UnsupportedCase("its labels are strings", OF_STRING_LABELS)
    rows = x.astype("float32")
    count = len(classlabels_ints)
    scores = rows @ like(rows, np.reshape(coefficients, (len(intercepts) or count, -1)).T)
    scores = scores + like(rows, intercepts) if intercepts else scores
    labels = pt.constant(np.asarray(classlabels_ints, dtype="int64"))
    if scores.type.shape[-1] == 1 and count == 2:
        best = (scores[:, 0] > like(scores, 0)).astype("int64")
        return [labels[best], binary_scores(scores, post_transform, is_share=True)]
    return [labels[pt.argmax(scores, axis=1)], transformed(scores, post_transform)]


@onnx_import("Imputer", domain=MACHINE_LEARNING)
def imputer(
    x: TensorVariable,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> TensorVariable:
    """Replace a number, such as NaN, by one for all features or each."""
    if x.type.dtype.startswith("float"):
        number, values = like(x, replaced_value_float), like(x, imputed_value_floats)
        is_replaced = pt.isnan(x) if np.isnan(number) else pt.eq(x, number)
    else:
        values = like(x, imputed_value_int64s)
        is_replaced = pt.eq(x, like(x, replaced_value_int64))
    return pt.switch(is_replaced, values, x)


@onnx_import("OneHotEncoder", domain=MACHINE_LEARNING)
def one_hot_encoder(
    x: TensorVariable,
    *,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
    zeros: int = 1,
) -> TensorVariable:
    """Return ones at the categories of numbers, along a new last axis."""
    if cats_strings:
        raise UnsupportedCase("its categories are strings", "encode categories as integers")
    categories = pt.constant(np.asarray(cats_int64s, dtype="int64"))
    is_category = pt.eq(x.astype("int64")[..., None], categories)
    if not zeros:
        is_known = pt.all(pt.any(is_category, axis=-1))
        is_category = Assert("a number is none of the categories of OneHotEncoder")(
            is_category, is_known
        )
    return is_category.astype("float32")


@onnx_import("FeatureVectorizer", domain=MACHINE_LEARNING)
def feature_vectorizer(
    *parts: TensorVariable, inputdimensions: Sequence[int] = ()
) -> TensorVariable:
    """Join features, of each part as many as given."""
    rows = [pt.atleast_2d(part).astype("float32") for part in parts]
    if inputdimensions:
        rows = [part[:, :count] for part, count in zip(rows, inputdimensions, strict=True)]
    return pt.concatenate(rows, axis=1)


@onnx_import("LabelEncoder", since=2, domain=MACHINE_LEARNING)
def label_encoder_of_lists(
    x: TensorVariable,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "",
    keys_floats: Sequence[float] = (),
    keys_int64s: Sequence[int] = (),
    keys_strings: Sequence[str] = (),
    values_floats: Sequence[float] = (),
    values_int64s: Sequence[int] = (),
    values_strings: Sequence[str] = (),
) -> TensorVariable:
    """Return the number for each number, a default for others.

    From opset 4 on, NaN is a key as well. Before, the standard compares bits and ONNX Runtime
    numbers.
    """
    if np.isnan(keys_floats).any():
        raise UnsupportedCase(
            "NaN is a key, which ONNX Runtime does not find in this opset",
            "update the model to ai.onnx.ml 4",
        )
    return label_encoder(
        x,
        default_float=default_float,
        default_int64=default_int64,
        keys_floats=keys_floats,
        keys_int64s=keys_int64s,
        keys_strings=keys_strings,
        values_floats=values_floats,
        values_int64s=values_int64s,
        values_strings=values_strings,
    )


@onnx_import("LabelEncoder", since=4, domain=MACHINE_LEARNING)
def label_encoder(
    x: TensorVariable,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "",
    default_tensor: np.ndarray | None = None,
    keys_floats: Sequence[float] = (),
    keys_int64s: Sequence[int] = (),
    keys_strings: Sequence[str] = (),
    keys_tensor: np.ndarray | None = None,
    values_floats: Sequence[float] = (),
    values_int64s: Sequence[int] = (),
    values_strings: Sequence[str] = (),
    values_tensor: np.ndarray | None = None,
) -> TensorVariable:
    """Return the number for each number, a default for others; NaN is a key as well."""
    if keys_strings or values_strings:
        raise UnsupportedCase("its keys or values are strings", "use labels that are integers")
    if keys_tensor is None:
        keys_tensor = np.asarray(keys_floats or keys_int64s)
    if values_tensor is None:
        dtype, default = ("float32", default_float) if values_floats else ("int64", default_int64)
        values_tensor = np.asarray(values_floats or values_int64s, dtype=dtype)
    elif default_tensor is not None:
        default = default_tensor.reshape(-1)[0]
    else:
        default = default_float if values_tensor.dtype.kind == "f" else default_int64
    if len(np.unique(keys_tensor)) < keys_tensor.size:
        raise UnsupportedCase(
            "a key stands twice: some runtimes take its first value, others its last"
        )
    keys = pt.constant(keys_tensor.astype(x.type.dtype))
    found = pt.eq(x[..., None], keys)
    if keys_tensor.dtype.kind == "f" and np.isnan(keys_tensor).any():
        found = found | (pt.isnan(x)[..., None] & pt.isnan(keys))
    values = pt.constant(values_tensor)[pt.argmax(found, axis=-1)]
    return pt.switch(pt.any(found, axis=-1), values, values_tensor.dtype.type(default))


@onnx_import("ZipMap", domain=MACHINE_LEARNING)
def zip_map(
    x: TensorVariable,
    *,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
) -> TensorVariable:
    """Refuse maps, which are no tensors."""
    raise UnsupportedCase(
        "its results are maps from labels to probabilities",
        "convert with options={'zipmap': False}, which leaves them a matrix",
    )


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
        raise UnsupportedCase("its labels are strings", OF_STRING_LABELS)
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


def transformed(scores: TensorVariable, name: str) -> TensorVariable:
    """Return scores after a transform of the standard.

    Examples
    --------
    >>> transformed(pt.constant([[0.0, 1.0]]), "SOFTMAX_ZERO").eval()
    array([[0., 1.]])
    """
    if name == "NONE":
        return scores
    if scores.type.shape[-1] == 1 and name != "PROBIT":
        raise UnsupportedCase(
            f"its transform {name} of a single score is not applied by ONNX Runtime",
            "write NONE to the file, and apply the transform after the import",
        )
    if name == "LOGISTIC":
        return pt.sigmoid(scores)
    if name == "SOFTMAX":
        return pt.special.softmax(scores, axis=-1)
    if name == "SOFTMAX_ZERO":
        # Zeros stay, and have no part in the sum.
        is_zero = pt.abs(scores) <= like(scores, 1e-7)
        top = pt.max(scores, axis=-1, keepdims=True)
        powers = pt.switch(is_zero, like(scores, 0), pt.exp(scores - top))
        return powers / powers.sum(axis=-1, keepdims=True)
    if name == "PROBIT":
        return like(scores, 2**0.5) * pt.erfinv(like(scores, 2) * scores - like(scores, 1))
    raise UnsupportedCase(f"its transform {name.lower()} of scores is not known")


def binary_scores(score: TensorVariable, name: str, is_share: bool) -> TensorVariable:
    """Return the scores of two labels for the score (rows, 1) of the second.

    Parameters
    ----------
    score
        The score.
    name
        The transform.
    is_share
        Whether both scores add up to one; otherwise one is the negative of the other.

    Examples
    --------
    >>> binary_scores(pt.constant([[0.25]]), "NONE", is_share=True).eval()
    array([[0.75, 0.25]])
    """
    if name == "PROBIT":
        raise UnsupportedCase("runtimes have no results for its transform PROBIT of two labels")
    if name == "LOGISTIC":
        return pt.concatenate([pt.sigmoid(-score), pt.sigmoid(score)], axis=1)
    first = like(score, 1) - score if is_share else -score
    return pt.concatenate([first, score], axis=1)
