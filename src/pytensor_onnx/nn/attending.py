"""Attention and rotary embeddings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.tensor.type import integer_dtypes
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.attention_ops import Attention, RotaryEmbedding


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


def as_mask(mask: Any, dtype: str) -> TensorVariable:
    """Convert a mask to a variable; it must be boolean or of the dtype of the arrays."""
    mask = pt.as_tensor(mask)
    if mask.type.dtype not in ("bool", dtype):
        raise TypeError(f"attention takes a mask of bool or {dtype}; got {mask.type.dtype}")
    if mask.type.ndim > 4:
        raise ValueError(f"attention takes a mask of at most 4 dimensions; got {mask.type.ndim}")
    return mask


def check_arrays(
    q: TensorVariable, k: TensorVariable, v: TensorVariable, past: Sequence[TensorVariable]
) -> None:
    """Refuse arrays of different dtypes, or of ranks that do not fit."""
    arrays = {"q": q, "k": k, "v": v, **dict(zip(("past_key", "past_value"), past, strict=False))}
    dtypes = {name: x.type.dtype for name, x in arrays.items()}
    if len({*dtypes.values()}) > 1 or not q.type.dtype.startswith("float"):
        raise TypeError(f"attention takes floats of one dtype; got {dtypes}")
    ranks = {name: x.type.ndim for name, x in arrays.items()}
    if q.type.ndim not in (3, 4) or not q.type.ndim == k.type.ndim == v.type.ndim:
        raise ValueError(f"attention takes q, k and v of rank 3, or all of rank 4; got {ranks}")
    if any(x.type.ndim != 4 for x in past):
        raise ValueError(f"attention takes past keys and values of rank 4; got {ranks}")


def check_masks(q: TensorVariable, masks: Sequence[TensorVariable], heads: int) -> None:
    """Refuse masks that do not broadcast to the scores."""
    batch, second, third, *_ = q.type.shape
    scores = (batch, heads, second) if heads else (batch, second, third)
    for mask in masks:
        pairs = zip(scores[::-1], mask.type.shape[-2::-1], strict=False)
        if any(size is not None and other not in (None, 1, size) for size, other in pairs):
            raise ValueError(
                f"attention takes a mask that broadcasts to {(*scores, None)}; got one of shape "
                f"{mask.type.shape}"
            )


def numbers_of_heads(
    q: TensorVariable, k: TensorVariable, q_num_heads: int | None, kv_num_heads: int | None
) -> tuple[int, int]:
    """Return the numbers of heads in the last axis, zeros if heads have their own axis."""
    merged = q.type.ndim == 3
    if merged == (q_num_heads is None) or (kv_num_heads is not None and not merged):
        raise ValueError("attention takes numbers of heads with arrays of rank 3, and only then")
    if merged:
        heads, fewer = q_num_heads, kv_num_heads or q_num_heads
    else:
        heads, fewer = q.type.shape[1], k.type.shape[1]
    if heads and fewer and heads % fewer:
        raise ValueError(
            f"attention: {heads} heads of queries do not make groups for {fewer} of keys"
        )
    if not merged:
        return 0, 0
    assert heads is not None
    assert fewer is not None
    for name, x, number in (("q", q, heads), ("k", k, fewer)):
        width = x.type.shape[2]
        if width is not None and width % number:
            raise ValueError(
                f"attention: {name} has width {width}, which {number} heads do not share"
            )
    return heads, fewer


def rotary_embedding(
    x: Any, cos: Any, sin: Any, positions: Any = None, *, interleaved: bool = False
) -> TensorVariable:
    """Turn pairs of features by angles that depend on the position.

    A pair (a, b) becomes (a cos - b sin, b cos + a sin), so that the product of a query and a key
    depends on the distance between their positions. Exported as one ``RotaryEmbedding`` from opset
    23 on, else as elementary operators.

    Parameters
    ----------
    x
        Floats of shape (batch, heads, length, size).
    cos, sin
        Cosine and sine of the angles: of shape (positions, pairs) with the positions given, else
        (length, pairs) or (batch, length, pairs). `rotary_tables` makes such. Where there are fewer
        pairs than in x, its last features stay as they are.
    positions
        Integers of shape (batch, length): the row of the tables for each element of x.
    interleaved
        Whether neighbours make a pair, or the first feature of one half and of the other.

    Raises
    ------
    TypeError, ValueError
        If dtypes, ranks or known sizes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor_onnx
    >>> cos, sin = rotary_tables(2, 2)
    >>> x = np.ones((1, 1, 2, 2))
    >>> rotary_embedding(x, cos, sin).eval(mode="ONNX").round(4)
    array([[[[ 1.    ,  1.    ],
             [-0.3012,  1.3818]]]])
    """
    x, cos, sin = (pt.as_tensor(v) for v in (x, cos, sin))
    dtypes = [v.type.dtype for v in (x, cos, sin)]
    if len({*dtypes}) > 1 or not dtypes[0].startswith("float"):
        raise TypeError(f"rotary_embedding takes floats of one dtype; got {dtypes}")
    ranks = [v.type.ndim for v in (x, cos, sin)]
    if ranks not in ([4, 2, 2], [4, 3, 3]) or (positions is not None and ranks[1] != 2):
        raise ValueError(
            "rotary_embedding takes x of rank 4 and tables of rank 2, or of rank 3 without "
            f"positions; got {ranks}"
        )
    half, size = cos.type.shape[-1], x.type.shape[3]
    if half is None and size is not None:
        half = size // 2
    if half is None or (size is not None and 2 * half > size):
        raise ValueError(
            f"rotary_embedding needs a known number of pairs, at most half of the size of x; got "
            f"tables of width {half} for a size of {size}"
        )
    op = RotaryEmbedding(interleaved=bool(interleaved), half=half)
    if positions is None:
        return op(x, *(table[None] if ranks[1] == 2 else table for table in (cos, sin)))
    ids = pt.as_tensor(positions)
    if ids.type.ndim != 2 or ids.type.dtype not in integer_dtypes:
        raise TypeError(f"rotary_embedding takes positions as a matrix of integers; got {ids.type}")
    return op(x, cos, sin, ids)


def rotary_tables(
    length: int, size: int, *, base: float = 10000.0, dtype: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine of the angle of each position p and pair i: p / base**(2 i / size).

    Parameters
    ----------
    length
        Number of positions.
    size
        Number of features that are turned, an even number.
    base
        How fast the angles become smaller from pair to pair.
    dtype
        ``floatX`` unless given.

    Examples
    --------
    >>> cos, sin = rotary_tables(3, 4)
    >>> cos.shape, cos[0].tolist()
    ((3, 2), [1.0, 1.0])
    """
    angles = np.outer(np.arange(length), base ** (-np.arange(0, size, 2) / size))
    wanted = dtype or config.floatX
    return np.cos(angles).astype(wanted), np.sin(angles).astype(wanted)
