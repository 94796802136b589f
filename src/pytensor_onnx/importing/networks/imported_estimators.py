"""Models of ai.onnx.ml, which scikit-learn's converters write: linear models and scalers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.score_transforms import binary_scores, transformed
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
        raise UnsupportedCase("its labels are strings", "train with labels that are integers")
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
    if not zeros:
        raise UnsupportedCase("it fails for other categories (zeros=0), and PyTensor does not")
    categories = pt.constant(np.asarray(cats_int64s, dtype="int64"))
    return pt.eq(x.astype("int64")[..., None], categories).astype("float32")


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
