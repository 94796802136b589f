"""Scaled dot-product attention with masks, grouped heads and cached keys and values."""

from typing import Any

import pytensor.tensor as pt

from pytensor_onnx.nn.attention_checks import (
    as_mask,
    check_arrays,
    check_masks,
    numbers_of_heads,
)
from pytensor_onnx.ops.networks.attention_ops import Attention


def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    past_key: Any = None,
    past_value: Any = None,
) -> Any:
    """Average the values with weights from the softmax of the scores of queries and keys.

    It computes ``softmax(s Q Kᵀ + M) V``, as the operator ``Attention`` of ONNX defines it.

    Parameters
    ----------
    q, k, v
        Floats of one dtype and of shape (batch, heads, length, size); or (batch, length,
        heads * size) with the number of heads as an argument. With fewer heads of keys and values,
        each is used by a group of consecutive heads of queries.
    mask
        Floats to add to the scores, or booleans that are True for allowed pairs of query and key;
        of a shape that broadcasts to (batch, heads, length of q, length of past and k).
    is_causal
        Whether query i uses only the keys up to position i. After p past keys, query i has the
        position p + i.
    scale
        Factor s; by default one over the square root of the head size.
    softcap
        If not 0, scores s become ``softcap * tanh(s / softcap)`` before masking.
    q_num_heads, kv_num_heads
        Numbers of heads, for arrays of rank 3; the second defaults to the first.
    past_key, past_value
        Keys and values of earlier steps, of shape (batch, heads, length, size).

    Returns
    -------
    TensorVariable or tuple of TensorVariable
        The result, in the layout of q. With past keys and values also the concatenated keys and
        values of rank 4, which are the past of the next step. A query without an allowed key gives
        NaN.

    Raises
    ------
    TypeError, ValueError
        If dtypes, ranks or known sizes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor_onnx
    >>> q = np.zeros((1, 1, 2, 1))
    >>> v = np.array([1.0, 3.0]).reshape(1, 1, 2, 1)
    >>> attention(q, q, v, is_causal=True).eval(mode="ONNX").ravel()
    array([1., 2.])
    """
    q, k, v = (pt.as_tensor(x) for x in (q, k, v))
    if (past_key is None) != (past_value is None):
        raise ValueError("attention takes past_key and past_value together, or neither")
    past = [] if past_key is None else [pt.as_tensor(past_key), pt.as_tensor(past_value)]
    masks = [] if mask is None else [as_mask(mask, q.type.dtype)]
    check_arrays(q, k, v, past)
    heads = numbers_of_heads(q, k, q_num_heads, kv_num_heads)
    check_masks(q, masks, heads[0])
    op = Attention(
        q_num_heads=heads[0],
        kv_num_heads=heads[1],
        scale=None if scale is None else float(scale),
        is_causal=bool(is_causal),
        ends_together=False,
        softcap=float(softcap),
        has_mask=bool(masks),
        has_past=bool(past),
    )
    results = op(q, k, v, *masks, *past, return_list=True)
    return tuple(results) if past else results[0]
