"""Attention of ONNX Runtime, of the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.imported_quantization import dequantize
from pytensor_onnx.importing.registry.known_values import like, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Optional = TensorVariable | None


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


@onnx_import("QAttention", domain=MICROSOFT)
def quantized_attention(
    x: TensorVariable,
    weights: TensorVariable,
    bias: TensorVariable,
    x_scale: TensorVariable,
    weights_scale: TensorVariable,
    mask: Optional = None,
    x_zero: Optional = None,
    weights_zero: Optional = None,
    past: Optional = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Apply self-attention to quantised numbers, with quantised weights."""
    return attention(
        dequantize(x, x_scale, x_zero),
        dequantize(weights, weights_scale, weights_zero),
        bias,
        mask,
        past,
        do_rotary=do_rotary,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        past_present_share_buffer=past_present_share_buffer,
        scale=scale,
        unidirectional=unidirectional,
        outputs=outputs,
    )


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
    """Apply attention of queries to keys and values, which may be packed in one array."""
    queries, keys, values = _queries_keys_values(query, key, value, bias, num_heads)
    if past_keys is not None and past_values is not None:
        keys, values = _with_past((past_keys, past_values), (keys, values))
    scores = _scores(queries, keys, scale, mask, mask_filter_value, added, unidirectional)
    return [_joined(scores, values), keys, values][:outputs]


def _queries_keys_values(
    query: TensorVariable, key: Optional, value: Optional, bias: Optional, count: int
) -> list[TensorVariable]:
    """Return queries, keys and values by heads, with the parts of a bias added to them."""
    packed = query if query.type.ndim == 5 else key
    if packed is not None and packed.type.ndim == 5:  # (batch, steps, heads, 2 or 3, width)
        kinds = 3 if packed is query else 2
        parts = [packed[:, :, :, i].dimshuffle(0, 2, 1, 3) for i in range(kinds)]
        parts = parts if packed is query else [_heads(query, count), *parts]
    elif key is not None and value is not None:
        # Keys of another sequence, which an earlier step has made, have their heads in front.
        parts = [_heads(x, count) if x.type.ndim == 3 else x for x in (query, key, value)]
        if bias is not None and key.type.ndim == 4:
            raise UnsupportedCase("it has a bias beside keys that are given by heads")
    else:
        raise UnsupportedCase("it has no keys or no values")
    if bias is None:
        return parts
    widths = [part.type.shape[3] for part in parts]
    if None in widths:
        raise UnsupportedCase("the sizes of its queries, keys and values are not known")
    ends = [count * sum(int(w or 0) for w in widths[: i + 1]) for i in range(3)]
    return [
        part + bias[start:end].reshape((count, 1, -1))
        for part, start, end in zip(parts, [0, *ends[:2]], ends, strict=True)
    ]


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
    return _merged(pt.matmul(nn.softmax(scores, 3), values))


def _merged(heads: TensorVariable) -> TensorVariable:
    y = heads.dimshuffle(0, 2, 1, 3)
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


@onnx_import("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(
    query: TensorVariable,
    key: Optional = None,
    value: Optional = None,
    past_keys: Optional = None,
    past_values: Optional = None,
    last_keys: Optional = None,
    total: Optional = None,
    cosines: Optional = None,
    sines: Optional = None,
    positions: Optional = None,
    added: Optional = None,
    sinks: Optional = None,
    key_scale: Optional = None,
    value_scale: Optional = None,
    query_norm: Optional = None,
    key_norm: Optional = None,
    query_lengths: Optional = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_norm_epsilon: float = 1e-6,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float = 1e-6,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
    outputs: int = 1,
) -> list[TensorVariable]:
    """Apply attention whose heads share keys and values, which join those of earlier steps.

    A row of the batch has ``last_keys + 1`` keys in all, the new ones at the end; a prompt, which
    has no earlier ones, may be padded behind them.
    """
    if any(v is not None for v in (key_scale, value_scale, query_norm, key_norm, query_lengths)):
        raise UnsupportedCase("it has quantised keys, norms of heads or padded chunks of a prompt")
    if sliding_window_cache or qk_output or last_keys is None or total is None:
        raise UnsupportedCase("its keys are those of a window alone, or its scores are a result")
    count, shared = num_heads, kv_num_heads
    heads = _unpacked_heads(query, key, value, count, shared)
    steps, whole = size(query, 1), total.reshape(()).astype("int64")
    is_prompt = pt.eq(whole, steps)
    lengths = last_keys.astype("int64") + 1
    start = pt.switch(is_prompt, 0, lengths - steps)
    places = start[:, None] + pt.arange(steps)[None, :]
    if do_rotary:
        if cosines is None or sines is None:
            raise UnsupportedCase("it rotates, and has no angles")
        angles = places
        if positions is not None:
            first = positions.ravel()[0] + pt.arange(steps)[None, :]
            angles = pt.switch(is_prompt, first, positions)
        heads[:2] = [
            _rotated(x, cosines[angles][:, None], sines[angles][:, None], rotary_interleaved)
            for x in heads[:2]
        ]
    queries, present = heads[0], []
    for past, new in zip((past_keys, past_values), heads[1:], strict=True):
        present.append(_placed(past, new, start, whole))
    keys, values = (pt.repeat(x[:, :, :whole], count // shared, axis=1) for x in present)
    scores = _scores(queries, keys, scale, None, 0.0, None, 0)
    if softcap:
        scores = like(scores, softcap) * pt.tanh(scores / like(scores, softcap))
    if added is not None:
        scores = scores + added
    last, of_key = places[:, :, None], pt.arange(whole)[None, None, :]
    is_seen = (of_key <= last) if causal else (of_key < lengths[:, None, None])
    if local_window_size > 0:
        is_seen = is_seen & (of_key > last - local_window_size)
    scores = pt.switch(is_seen[:, None], scores, like(scores, float("-inf")))
    if sinks is None and not smooth_softmax:
        return [_joined(scores, values), *present][:outputs]
    # A sink is a key without a value: it takes a part of the softmax.
    sink = pt.zeros(count, scores.type.dtype) if sinks is None else sinks
    column = pt.zeros_like(scores[..., :1]) + sink[None, :, None, None]
    weights = nn.softmax(pt.concatenate([scores, column], axis=3), 3)[..., :-1]
    return [_merged(pt.matmul(weights, values)), *present][:outputs]


def _unpacked_heads(
    query: TensorVariable, key: Optional, value: Optional, count: int, shared: int
) -> list[TensorVariable]:
    """Return queries, keys and values by heads, of three arrays or of one that has all."""
    if key is not None and value is not None:
        return [_heads(query, count), _heads(key, shared), _heads(value, shared)]
    width = query.type.shape[2]
    if width is None:
        raise UnsupportedCase(
            "its queries, keys and values are packed, and their size is not known"
        )
    each = width // (count + 2 * shared)
    ends = [each * count, each * (count + shared), width]
    starts, counts = [0, *ends[:2]], (count, shared, shared)
    return [
        _heads(query[:, :, start:end], n)
        for start, end, n in zip(starts, ends, counts, strict=True)
    ]


def _placed(
    past: Optional, new: TensorVariable, start: TensorVariable, total: TensorVariable
) -> TensorVariable:
    """Return past keys with new ones behind those of each row, and zeros behind these."""
    zero = pt.zeros_like(new[:, :, :1])
    steps = size(new, 2)
    room = 0 if past is None else size(past, 2)
    parts = [new, zero] if past is None else [past, new, zero]
    every = pt.concatenate(parts, axis=2)
    place = pt.arange(pt.maximum(total, room))[None, :]
    behind = place - start[:, None]
    is_new = (behind >= 0) & (behind < steps)
    source = pt.switch(behind < 0, place, pt.switch(is_new, room + behind, room + steps))
    rows = pt.arange(size(new, 0))[:, None]
    return every.dimshuffle(0, 2, 1, 3)[rows, source].dimshuffle(0, 2, 1, 3)


def _rotated(
    heads: TensorVariable, cosines: TensorVariable, sines: TensorVariable, interleaved: int
) -> TensorVariable:
    """Rotate pairs of numbers of each head; those beyond the angles stay."""
    half = size(cosines, 3)
    turned, rest = heads[..., : 2 * half], heads[..., 2 * half :]
    if interleaved:
        first, second = turned[..., ::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    parts = [first * cosines - second * sines, first * sines + second * cosines]
    y = pt.stack(parts, axis=-1).reshape(turned.shape) if interleaved else pt.concatenate(parts, -1)
    is_whole = heads.type.shape[3] is not None and heads.type.shape[3] == 2 * half
    return y if is_whole else pt.concatenate([y, rest], axis=-1)


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
    if x.type.ndim == 4:
        heads = x
    elif rotary_embedding_dim and num_heads:
        heads = x.reshape((size(x, 0), size(x, 1), num_heads, -1)).dimshuffle(0, 2, 1, 3)
    elif half is None:
        raise UnsupportedCase("the number of its angles is not known")
    else:
        heads = _split(x, 2 * half)
    if positions.type.ndim == 1:
        places = positions[0] + pt.arange(size(heads, 2))[None, :]
    else:
        places = positions
    c, s = (table[places][:, None, :, :] for table in (cosines, sines))
    y = _rotated(heads, c, s, interleaved)
    return y if x.type.ndim == 4 else y.dimshuffle(0, 2, 1, 3).reshape(x.shape)


@onnx_import("MRotaryEmbedding", domain=MICROSOFT)
def rotary_embedding_of_sections(
    x: TensorVariable,
    positions: TensorVariable,
    cosines: TensorVariable,
    sines: TensorVariable,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    mrope_layout: int = 0,
    mrope_section: Sequence[int],
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> TensorVariable:
    """Rotate pairs of numbers by angles of three positions: those of time, rows and columns.

    Bai et al. (2025), Qwen2.5-VL technical report, section 2.1.2.
    """
    half = sum(mrope_section)
    of_angle = np.repeat(np.arange(3), mrope_section)
    if mrope_layout:
        of_angle = np.zeros(half, dtype="int64")
        for stream in (1, 2):
            of_angle[stream : 3 * mrope_section[stream] : 3] = stream
    if x.type.ndim == 4:
        heads = x
    elif rotary_embedding_dim and num_heads:
        heads = x.reshape((size(x, 0), size(x, 1), num_heads, -1)).dimshuffle(0, 2, 1, 3)
    else:
        heads = _split(x, 2 * half)
    places = pt.moveaxis(positions[of_angle], 0, -1)
    c, s = (table[places, np.arange(half)][:, None] for table in (cosines, sines))
    y = _rotated(heads, c, s, interleaved)
    return y if x.type.ndim == 4 else y.dimshuffle(0, 2, 1, 3).reshape(x.shape)


def _split(x: TensorVariable, width: int) -> TensorVariable:
    split = x.reshape((size(x, 0), size(x, 1), -1, width))
    return split.dimshuffle(0, 2, 1, 3)
