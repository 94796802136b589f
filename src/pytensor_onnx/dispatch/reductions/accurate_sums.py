"""Sum float32 values with the accuracy of PyTensor, which accumulates them in float64."""

from collections.abc import Sequence
from math import prod

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import Dim

LONGEST_SHORT_SUM = 1024
"""Number of float32 terms that a runtime adds up one after the other without much rounding."""


def sum_floats(
    build: Builder, x: ir.Value, axes: Sequence[int], sizes: Sequence[Dim], *, keepdims: int = 0
) -> ir.Value:
    """Sum float32 elements: short sums in float32, all others in float64.

    The error of a runtime's float32 sum grows with the number of terms: 1e-6 at 1024 consecutive
    terms, 2e-3 at two million. Axes known to be short are summed first, so that few elements are
    converted.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    x
        Value of dtype float32.
    axes
        Axes to sum over, counted from the start.
    sizes
        Sizes of all axes, None for unknown ones.
    keepdims
        Whether to keep the summed axes with size one.

    Returns
    -------
    onnx_ir.Value
        The sum, in the dtype of its accumulation: float32 or float64.
    """
    stages, long = _stages(axes, sizes)
    if long:
        stages.append(long)
    done: list[int] = []
    for stage in stages:
        if stage is long and build.scope.widens:
            x = build.cast(x, "float64")
        gone = [] if keepdims else done
        along = [axis - sum(other < axis for other in gone) for axis in sorted(stage)]
        x = build.ReduceSum(x, build.ints(along), keepdims=keepdims)
        done += stage
    return x


def _stages(axes: Sequence[int], sizes: Sequence[Dim]) -> tuple[list[list[int]], list[int]]:
    """Return groups of axes that are short sums, last axes first, and the remaining axes."""
    stages: list[list[int]] = []
    long: list[int] = []
    length = 0
    for axis in sorted(axes, reverse=True):
        size = sizes[axis]
        if not isinstance(size, int) or size > LONGEST_SHORT_SUM:
            long.append(axis)
        elif stages and length * size <= LONGEST_SHORT_SUM:
            stages[-1].append(axis)
            length *= size
        else:
            stages.append([axis])
            length = size
    if long and all(prod(int(sizes[axis] or 0) for axis in stage) == 1 for stage in stages):
        return [], [*long, *(axis for stage in stages for axis in stage)]
    return stages, long
