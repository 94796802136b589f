"""Pooling over the spatial axes of arrays of shape ``(N, C, *S)``."""

from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks import pool_ops, pool_ops as global_pool_ops
from pytensor_onnx.ops.networks.windows import (
    Ints,
    Padding,
    Windows,
    check_fit,
    make_windows,
    spatial_rank,
)


def max_pool(
    input: Any,
    window: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> TensorVariable:
    """Compute the maximum of each window over the spatial axes, exported as one ``MaxPool``.

    Parameters
    ----------
    input
        Floats of shape ``(N, C, *S)`` with one to three spatial axes.
    window
        Size of a window: one int, or one for each spatial axis.
    stride
        Distance between windows; by default the window size, so that they do not overlap.
    padding
        Number of elements added around the array, of value minus infinity: one int, or for each
        spatial axis an int or a pair (before, after). Smaller than the window.
    dilation
        Distance between the elements of a window.
    ceil_mode
        Whether the last window may extend beyond the padding, if it starts in the array or in the
        padding before it.

    Returns
    -------
    TensorVariable
        Array of shape ``(N, C, *T)``, with
        ``T = floor((S + before + after - dilation * (window - 1) - 1) / stride) + 1``, ``ceil``
        in place of ``floor`` in ceil mode. A window with a NaN gives NaN.

    Raises
    ------
    TypeError, ValueError
        If the array does not have these axes, an argument does not fit them, a window would lie
        wholly in the padding, or a window is larger than the padded array. Unknown sizes are
        checked at run time.

    Notes
    -----
    The gradient of a window is routed to its first maximum. If an axis is shorter than the
    dilation, a window may contain no elements: its maximum is minus infinity, its mean NaN. ONNX
    Runtime's operator drops NaN. Unless exported with ``assume_finite=True``, a guard follows it
    that recomputes the result if the sum of the values is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None))
    >>> max_pool(x, 2).eval({x: np.array([[[1.0, 5.0, 2.0, 3.0]]])}, mode="ONNX")
    array([[[5., 3.]]])
    """
    x, windows = _prepare("max_pool", input, window, stride, padding, dilation, ceil_mode)
    return pool_ops.MaxPool(windows=windows)(x)


def avg_pool(
    input: Any,
    window: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> TensorVariable:
    """Compute the mean of each window over the spatial axes, exported as one ``AveragePool``.

    Parameters
    ----------
    input, window, stride, padding, dilation, ceil_mode
        As for `max_pool`; the padding holds zeros.
    count_include_pad
        Whether the sum is divided by the number of all elements of a window, including the
        padding. Elements beyond the padding, in ceil mode, never count.

    Returns
    -------
    TensorVariable
        Array of shape ``(N, C, *T)``, as for `max_pool`.

    Raises
    ------
    TypeError, ValueError
        As for `max_pool`.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None), dtype="float32")
    >>> value = np.array([[[1, 5, 2, 3]]], "float32")
    >>> avg_pool(x, 2, padding=1).eval({x: value}, mode="ONNX")
    array([[[1. , 3.5, 3. ]]], dtype=float32)
    >>> avg_pool(x, 2, padding=1, count_include_pad=True).eval({x: value}, mode="ONNX")
    array([[[0.5, 3.5, 1.5]]], dtype=float32)
    """
    x, windows = _prepare("avg_pool", input, window, stride, padding, dilation, ceil_mode)
    counts_padding = bool(count_include_pad) and any(map(any, windows.padding))
    return pool_ops.AveragePool(windows=windows, count_include_pad=counts_padding)(x)


def lp_pool(
    input: Any,
    window: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    p: int = 2,
) -> TensorVariable:
    """Compute the p-norm of each window over the spatial axes, exported as one ``LpPool``.

    Parameters
    ----------
    input, window, stride, padding, dilation, ceil_mode
        As for `max_pool`; the padding holds zeros.
    p
        Positive int: the result is the p-th root of the sum of p-th powers of absolute values.

    Returns
    -------
    TensorVariable
        Array of shape ``(N, C, *T)``, as for `max_pool`.

    Raises
    ------
    TypeError, ValueError
        As for `max_pool`, and if p is not a positive int.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None))
    >>> lp_pool(x, 2).eval({x: np.array([[[3.0, -4.0, 5.0, 12.0]]])}, mode="ONNX")
    array([[[ 5., 13.]]])
    """
    x, windows = _prepare("lp_pool", input, window, stride, padding, dilation, ceil_mode)
    return pool_ops.LpPool(windows=windows, p=_order(p))(x)


def global_max_pool(input: Any) -> TensorVariable:
    """Compute the maximum of each channel, exported as one ``GlobalMaxPool``.

    Parameters
    ----------
    input
        Floats of shape ``(N, C, *S)`` with one to three spatial axes, which are not empty.

    Returns
    -------
    TensorVariable
        Array of shape (N, C, 1, ...); NaN for a channel with a NaN. The gradient of a channel is
        routed to its first maximum.

    Examples
    --------
    >>> global_max_pool([[[1.0, 3.0]]]).eval(mode="ONNX")
    array([[[3.]]])
    """
    return global_pool_ops.GlobalMaxPool()(_spatial(input, "global_max_pool"))


def global_avg_pool(input: Any) -> TensorVariable:
    """Compute the mean of each channel, exported as one ``GlobalAveragePool``.

    Parameters
    ----------
    input
        As for `global_max_pool`.

    Returns
    -------
    TensorVariable
        Array of shape (N, C, 1, ...).

    Examples
    --------
    >>> global_avg_pool([[[1.0, 3.0]]]).eval(mode="ONNX")
    array([[[2.]]])
    """
    return global_pool_ops.GlobalAveragePool()(_spatial(input, "global_avg_pool"))


def global_lp_pool(input: Any, p: int = 2) -> TensorVariable:
    """Compute the p-norm of each channel, exported as one ``GlobalLpPool``.

    Parameters
    ----------
    input
        As for `global_max_pool`.
    p
        Positive int, see `lp_pool`.

    Returns
    -------
    TensorVariable
        Array of shape (N, C, 1, ...).

    Examples
    --------
    >>> global_lp_pool([[[3.0, 4.0]]]).eval(mode="ONNX")
    array([[[5.]]])
    """
    return global_pool_ops.GlobalLpPool(p=_order(p))(_spatial(input, "global_lp_pool"))


def _spatial(input: Any, name: str) -> TensorVariable:
    x = pt.as_tensor(input)
    spatial_rank(x, name)
    return x


def _prepare(
    name: str,
    input: Any,
    window: Ints,
    stride: Ints | None,
    padding: Padding,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[TensorVariable, Windows]:
    x = _spatial(input, name)
    windows = make_windows(x.type.ndim - 2, window, stride, padding, dilation, ceil_mode)
    check_fit(x, windows)
    return x, windows


def _order(p: int) -> int:
    if not hasattr(p, "__index__") or p < 1:
        raise ValueError(f"p={p!r} must be a positive int")
    return int(p)
