"""Operators of transformers and fused layers of ONNX Runtime, of the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.imported_activations import (
    elu,
    hard_sigmoid,
    leaky_relu,
    relu,
    rms_norm,
)
from pytensor_onnx.importing.networks.imported_windows import conv
from pytensor_onnx.importing.products import gemm
from pytensor_onnx.importing.registry.known_values import like, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Optional = TensorVariable | None
type Ints = Sequence[int] | None

_PARAMETERS = {"LeakyRelu": ("alpha",), "Elu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "Elu": elu,
    "HardSigmoid": hard_sigmoid,
    "LeakyRelu": leaky_relu,
    "Relu": relu,
    "Sigmoid": nn.sigmoid,
    "Tanh": pt.tanh,
}


def _activated(x: TensorVariable, name: str, numbers: Sequence[float]) -> TensorVariable:
    """Apply an activation, with its parameters in their order."""
    if name == "":
        return x
    if name == "Clip" and len(numbers) == 2:
        return pt.clip(x, *(like(x, number) for number in numbers))
    if name not in _ACTIVATIONS:
        raise UnsupportedCase(f"its activation is {name}")
    keywords = zip(_PARAMETERS.get(name, ()), numbers, strict=False)
    return _ACTIVATIONS[name](x, **dict(keywords))


@onnx_import("FusedConv", domain=MICROSOFT)
def fused_conv(
    x: TensorVariable,
    filters: TensorVariable,
    bias: Optional = None,
    summand: Optional = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Correlate images with filters, add an array, and apply an activation."""
    y = conv(
        x,
        filters,
        bias,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return _activated(y if summand is None else y + summand, activation, activation_params)


@onnx_import("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    a: TensorVariable,
    b: TensorVariable,
    c: Optional = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803  (name of the attribute)
    transB: int = 0,  # noqa: N803
) -> TensorVariable:
    """Multiply two matrices, add a third, and apply an activation."""
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    numbers = [v for v in (activation_alpha, activation_beta) if v is not None]
    return _activated(y, activation, numbers)


@onnx_import("SimplifiedLayerNormalization")
@onnx_import("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_norm(
    x: TensorVariable,
    scale: TensorVariable,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Divide by the root mean square, which the file may also name, as its inverse."""
    axes = tuple(range(axis % x.type.ndim, x.type.ndim))
    inverse = 1 / pt.sqrt(pt.mean(pt.sqr(x), axis=axes, keepdims=True) + like(x, epsilon))
    return [rms_norm(x, scale, axis=axis, epsilon=epsilon), inverse][:outputs]


@onnx_import("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    x: TensorVariable,
    skip: TensorVariable,
    gamma: TensorVariable,
    bias: Optional = None,
    *,
    epsilon: float = 1e-12,
    outputs: int = 1,
) -> list[TensorVariable | None]:
    """Add an array and a bias, and divide the sum by its root mean square."""
    total = x + skip if bias is None else x + skip + bias
    return [rms_norm(total, gamma, epsilon=epsilon), None, None, total][:outputs]


@onnx_import("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    words: TensorVariable,
    segments: Optional,
    of_words: TensorVariable,
    of_positions: TensorVariable,
    of_segments: Optional,
    gamma: TensorVariable,
    beta: TensorVariable,
    mask: Optional = None,
    positions: Optional = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 1,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Sum the embeddings of words, positions and segments, and normalise the sum."""
    places = of_positions[: size(words, 1)] if positions is None else of_positions[positions]
    total = of_words[words] + places
    if segments is not None and of_segments is not None:
        total = total + of_segments[segments]
    lengths = pt.zeros((size(words, 0),), "int32") if mask is None else mask.sum(axis=1)
    return [
        nn.layer_norm(total, gamma, beta, -1, epsilon),
        lengths.astype("int32"),
        total,
    ][:outputs]


@onnx_import("Attention", domain=MICROSOFT)
def attention(
    x: TensorVariable,
    weights: TensorVariable,
    bias: Optional = None,
    mask: Optional = None,
    past: Optional = None,
    added: Optional = None,
    past_length: Optional = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] = (),
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Apply self-attention, with the products that make queries, keys and values."""
    if do_rotary or past_present_share_buffer:
        raise UnsupportedCase("its positions are rotated, or its past keys share a buffer")
    product = pt.matmul(x, weights) if bias is None else pt.matmul(x, weights) + bias
    hidden: list[Any] = list(qkv_hidden_sizes) or [size(weights, 1) // 3] * 3
    ends = [sum(hidden[: i + 1]) for i in range(3)]
    queries, keys, values = (
        _heads(product[:, :, end - n : end], num_heads) for end, n in zip(ends, hidden, strict=True)
    )
    if past is not None:
        keys, values = _with_past((past[0], past[1]), (keys, values))
    scores = _scores(queries, keys, scale, mask, mask_filter_value, added, unidirectional)
    return [_joined(scores, values), pt.stack([keys, values])][:outputs]


@onnx_import("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    query: TensorVariable,
    key: Optional = None,
    value: Optional = None,
    bias: Optional = None,
    mask: Optional = None,
    added: Optional = None,
    past_keys: Optional = None,
    past_values: Optional = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Apply attention of queries to keys and values."""
    if key is None or value is None or {query.type.ndim, key.type.ndim, value.type.ndim} != {3}:
        raise UnsupportedCase("its queries, keys and values are packed in one array")
    parts = [query, key, value]
    if bias is not None:
        widths = [part.type.shape[2] for part in parts]
        if None in widths:
            raise UnsupportedCase("the sizes of its queries, keys and values are not known")
        ends = [sum(int(w or 0) for w in widths[: i + 1]) for i in range(3)]
        starts = [0, *ends[:2]]
        parts = [
            part + bias[start:end] for part, start, end in zip(parts, starts, ends, strict=True)
        ]
    queries, keys, values = (_heads(part, num_heads) for part in parts)
    if past_keys is not None and past_values is not None:
        keys, values = _with_past((past_keys, past_values), (keys, values))
    scores = _scores(queries, keys, scale, mask, mask_filter_value, added, unidirectional)
    return [_joined(scores, values), keys, values][:outputs]


def _heads(x: TensorVariable, count: int) -> TensorVariable:
    """Move heads, which are parts of the last axis, behind the batch."""
    width = x.type.shape[2]
    each = -1 if width is None else width // count
    return x.reshape((size(x, 0), size(x, 1), count, each)).dimshuffle(0, 2, 1, 3)


def _with_past(
    past: Sequence[TensorVariable], present: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Join the past keys and values with the present ones."""
    return [pt.concatenate(parts, axis=2) for parts in zip(past, present, strict=True)]


def _scores(
    queries: TensorVariable,
    keys: TensorVariable,
    scale: float,
    mask: Optional,
    filler: float,
    added: Optional,
    is_causal: int,
) -> TensorVariable:
    """Return the scaled products of queries and keys, with what masks and summands add."""
    width = pt.as_tensor(size(queries, 3)).astype(queries.type.dtype)
    scores = pt.matmul(queries, keys.mT) * (like(queries, scale) if scale else width**-0.5)
    if mask is not None:
        scores = _masked(scores, mask, filler)
    if is_causal:
        scores = _causal(scores)
    return scores if added is None else scores + added


def _masked(scores: TensorVariable, mask: TensorVariable, filler: float) -> TensorVariable:
    """Add a number to the scores of keys that a mask leaves out."""
    is_on = _is_on(mask, pt.arange(size(scores, 3)))
    return scores + pt.switch(is_on, like(scores, 0), like(scores, filler))


def _causal(scores: TensorVariable) -> TensorVariable:
    """Leave out keys behind the query, whose last one is the last key."""
    queries, keys = size(scores, 2), size(scores, 3)
    is_past = pt.arange(keys)[None, :] <= keys - queries + pt.arange(queries)[:, None]
    return pt.switch(is_past, scores, like(scores, float("-inf")))


def _joined(scores: TensorVariable, values: TensorVariable) -> TensorVariable:
    """Return the values of all heads by the softmax of the scores, with the heads joined."""
    y = pt.matmul(nn.softmax(scores, 3), values).dimshuffle(0, 2, 1, 3)
    return y.reshape((size(y, 0), size(y, 1), -1))


def _is_on(mask: TensorVariable, places: TensorVariable) -> TensorVariable:
    """Return which keys the queries of each head take: by lengths, by keys, or by pairs."""
    if mask.type.ndim == 1:  # lengths of the rows
        return (places[None, :] < mask[:, None])[:, None, None, :]
    if mask.type.ndim == 2:
        return (mask > 0)[:, None, None, :]
    if mask.type.ndim == 3:
        return (mask > 0)[:, None, :, :]
    raise UnsupportedCase("its mask has four axes")


@onnx_import("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(
    x: TensorVariable,
    positions: TensorVariable,
    cosines: TensorVariable,
    sines: TensorVariable,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> TensorVariable:
    """Rotate pairs of numbers by the angles of positions."""
    half = cosines.type.shape[1]
    if half is None or rotary_embedding_dim or scale != 1:
        raise UnsupportedCase(
            "it rotates a part of each head, or the number of angles is not known"
        )
    heads = x if x.type.ndim == 4 else _split(x, 2 * half)
    if positions.type.ndim == 1:
        places = positions[0] + pt.arange(size(heads, 2))[None, :]
    else:
        places = positions
    c, s = (table[places][:, None, :, :] for table in (cosines, sines))
    if interleaved:
        first, second = heads[..., ::2], heads[..., 1::2]
    else:
        first, second = heads[..., :half], heads[..., half:]
    parts = [first * c - second * s, first * s + second * c]
    y = pt.stack(parts, axis=-1).reshape(heads.shape) if interleaved else pt.concatenate(parts, -1)
    return y if x.type.ndim == 4 else y.dimshuffle(0, 2, 1, 3).reshape(x.shape)


def _split(x: TensorVariable, width: int) -> TensorVariable:
    split = x.reshape((size(x, 0), size(x, 1), -1, width))
    return split.dimshuffle(0, 2, 1, 3)
