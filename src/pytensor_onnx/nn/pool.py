"""Pooling over the spatial axes of arrays of shape (N, C, *S)."""

from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.builder import Builder
from pytensor_onnx.nn.base import NetworkOp
from pytensor_onnx.nn.windows import (
    Ints,
    Padding,
    Windows,
    check_fit,
    make_windows,
    pad,
    spatial_rank,
    spatial_size,
    taps,
)


class MaxPool(NetworkOp):
    """The largest value of each window; NaN where a window holds one."""

    __props__ = ("windows",)
    windows: Windows

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Take the largest of the taps, along one axis after the other."""
        counts = [self.windows.count(spatial_size(x, i), i) for i in range(self.windows.rank)]
        y = pad(x, self.windows, -np.inf)
        for axis, count in enumerate(counts):
            y = reduce(pt.maximum, taps(y, self.windows, axis, count))
        return [y]

    def emit(self, onnx: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator, which pads with minus infinity."""
        return onnx.MaxPool(x, **self.windows.attributes())


def max_pool(
    input: Any,
    window: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> TensorVariable:
    """Take the largest value of each window over the spatial axes, exported as one ``MaxPool``.

    Parameters
    ----------
    input
        Floats of shape (N, C, *S) with one to three spatial axes.
    window
        Number of cells of a window along each spatial axis, or along all of them.
    stride
        Distance of windows; by default the window, so that they do not overlap.
    padding
        Cells added around the array, which never win: one int, or for each spatial axis an int or
        a pair (before, after). Smaller than the window.
    dilation
        Distance of the cells of a window.
    ceil_mode
        Whether a last window may reach beyond the padding, if it starts in the array or in the
        padding before it.

    Returns
    -------
    TensorVariable
        Array of shape (N, C, *T), with
        ``T = floor((S + before + after - dilation * (window - 1) - 1) / stride) + 1``, ``ceil``
        in place of ``floor`` in ceil mode. Where a window holds NaN, the result is NaN.

    Raises
    ------
    TypeError, ValueError
        If the array does not have these axes, an argument does not fit them, or a window would lie
        wholly in the padding.

    Notes
    -----
    The gradient of a window goes to its largest cell, the first one of several. ONNX Runtime's
    operator loses NaN: unless exported with ``assume_finite=True``, a guard follows it that looks
    again where the values do not have a finite sum.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.tensor("x", shape=(None, None, None))
    >>> max_pool(x, 2).eval({x: np.array([[[1.0, 5.0, 2.0, 3.0]]])}, mode="ONNX")
    array([[[5., 3.]]])
    """
    x = pt.as_tensor(input)
    windows = make_windows(
        spatial_rank(x, "max_pool"), window, stride, padding, dilation, ceil_mode
    )
    check_fit(x, windows)
    return MaxPool(windows=windows)(x)
