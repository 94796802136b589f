"""Padding of windows, by numbers or as ONNX's automatic padding says."""

from __future__ import annotations

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import Size, size

type Pairs = list[tuple[Size, Size]]


def pairs(pads: Sequence[int] | None, rank: int) -> Pairs:
    """Return numbers before and after each axis.

    Examples
    --------
    >>> pairs((1, 2, 3, 4), 2)
    [(1, 3), (2, 4)]
    """
    if pads is None:
        return [(0, 0)] * rank
    return list(zip(pads[:rank], pads[rank:], strict=True))


def window_pads(
    x: TensorVariable,
    auto_pad: str,
    pads: Sequence[int] | None,
    spans: Sequence[int],
    strides: Sequence[int],
) -> Pairs:
    """Return the padding of each spatial axis of an array (N, C, *S)."""
    if auto_pad == "NOTSET":
        return pairs(pads, len(spans))
    if auto_pad == "VALID":
        return [(0, 0)] * len(spans)
    return [
        _same(size(x, axis + 2), span, stride, auto_pad == "SAME_UPPER")
        for axis, (span, stride) in enumerate(zip(spans, strides, strict=True))
    ]


def _same(length: Size, span: int, stride: int, upper: bool) -> tuple[Size, Size]:
    """Return the padding for ``ceil(length / stride)`` windows."""
    if stride == 1:
        total: Size = span - 1
    elif isinstance(length, int):
        total = max((-(-length // stride) - 1) * stride + span - length, 0)
    else:
        total = pt.maximum(((length + stride - 1) // stride - 1) * stride + span - length, 0)
    small = total // 2
    return (small, total - small) if upper else (total - small, small)


def are_known(padding: Pairs) -> bool:
    """Return whether all numbers are known."""
    return all(isinstance(n, int) for pair in padding for n in pair)
