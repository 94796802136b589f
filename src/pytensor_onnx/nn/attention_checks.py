"""Check the arguments of attention while the graph is built."""

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


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
