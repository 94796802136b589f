"""Replace upsampling layers of pytensor-ml, gathers along one axis after the other, by `Resize`.

The layers have no Op of their own. A candidate expression is compared with pytensor-ml's expression
for the same array, axis and size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors
from pytensor.scalar import Mul
from pytensor.tensor.basic import ARange
from pytensor.tensor.shape import Shape
from pytensor.tensor.subtensor import AdvancedSubtensor

from pytensor_onnx.ml.layers.spatial import LAYER_MODULE, to_first, to_last
from pytensor_onnx.rewriting.engine.predicates import (
    applies,
    elementwise,
    integer_of,
    made_by,
    size_of,
)
from pytensor_onnx.rules import rewrites_graphs

_MODES = (("nearest", False), ("linear", False), ("linear", True))
_COORDINATES = {
    ("nearest", False): {"coordinates": "asymmetric", "rounding": "floor"},
    ("linear", False): {"coordinates": "half_pixel"},
    ("linear", True): {"coordinates": "align_corners"},
}


@dataclass
class _Step:
    """Resampling of one axis of an array.

    Attributes
    ----------
    source
        The input.
    axis
        The resampled axis.
    size
        The new size.
    mode
        ``"nearest"`` or ``"linear"``, and whether the outer elements are aligned.
    """

    source: Variable
    axis: int
    size: Variable
    mode: tuple[str, bool]


@rewrites_graphs(
    family="networks",
    purpose="size",
    identity="x[:, i][:, :, j] = resize(x), where i and j are pytensor-ml's indices",
    requires="equal to pytensor-ml's own expression",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def resize_upsampled(fgraph: FunctionGraph) -> None:
    """Replace each upsampling layer by a Resize."""
    resample = getattr(sys.modules.get(LAYER_MODULE), "_resample_axis", None)
    if resample is None:
        return
    inner: set[Variable] = set()
    for node in reversed(fgraph.toposort()):
        result = node.outputs[0]
        if result in inner or not fgraph.clients.get(result):
            continue
        steps = list(_steps(result, resample))
        resized = _resized(steps) if steps else None
        if resized is not None and resized.type.dtype == result.type.dtype:
            inner.update(step.source for step in steps)
            resized.owner.inputs[0].name = result.name
            fgraph.replace(result, resized, reason="resize_upsampled", import_missing=True)


def _steps(x: Variable, resample: Callable[..., Variable]) -> Iterator[_Step]:
    """Yield the resampling steps of an array, last first, in one mode and on different axes."""
    axes: set[int] = set()
    mode = None
    while (step := _step(x, resample)) is not None:
        if step.axis in axes or (mode is not None and step.mode != mode):
            return
        axes.add(step.axis)
        mode, x = step.mode, step.source
        yield step


def _step(x: Variable, resample: Callable[..., Variable]) -> _Step | None:
    gather = _first_gather(x)
    if gather is None:
        return None
    source, index = gather.inputs
    if source.type.ndim < 3 or index.type.ndim != 1:
        return None
    ranges = [node for v in _shallow(index) if (node := made_by(v, ARange))]
    if len(ranges) != 1:
        return None
    axis, size = len(gather.op.idx_list) - 1, ranges[0].inputs[1]
    number = integer_of(size)
    extent: Any = size if number is None else number
    for mode, aligned in _MODES:
        if (mode == "nearest") == isinstance(x.owner.op, AdvancedSubtensor):
            expected = resample(source, axis, extent, mode, aligned)
            if equal_computations([x], [expected], in_xs=[source], in_ys=[source]):
                return _Step(source, axis, size, (mode, aligned))
    return None


def _first_gather(x: Variable) -> Any:
    """Return the node that gathers the nearest elements, or the lower neighbours to interpolate."""
    node = x.owner
    if applies(node) and len(node.inputs) == 2:
        node = node.inputs[0].owner
    if node is None or not isinstance(node.op, AdvancedSubtensor) or len(node.inputs) != 2:
        return None
    slices, last = node.op.idx_list[:-1], node.op.idx_list[-1]
    return node if all(s == slice(None) for s in slices) and last == 0 else None


def _shallow(index: Variable) -> Iterator[Variable]:
    """Yield the ancestors of an index, up to the sizes of the array."""
    return ancestors([index], blockers=[v for v in ancestors([index]) if made_by(v, Shape)])


def _resized(steps: list[_Step]) -> Variable | None:
    from pytensor_onnx.nn import resize

    source, mode = steps[-1].source, steps[0].mode
    rank = source.type.ndim - 2
    if any(not 1 <= step.axis <= rank for step in steps) or "float" not in source.type.dtype:
        return None
    scales: list[Fraction | int] = [1] * rank
    sizes: list[int | None] = list(source.type.shape[1:-1])
    for step in steps:
        known = source.type.shape[step.axis]
        if (size := integer_of(step.size)) is not None:
            sizes[step.axis - 1] = size
            scales[step.axis - 1] = 0 if not known else Fraction(size, known)
        else:
            scales[step.axis - 1] = _factor(step.size, source, step.axis)
    options: dict[str, Any] = {"mode": mode[0], **_COORDINATES[mode]}
    if all(scale and scale == int(scale) for scale in scales):
        options["scales"] = [int(scale) for scale in scales]
    elif all(size is not None for size in sizes):
        options["sizes"] = sizes
    else:
        return None
    resized = resize(to_first(source), **options)
    is_operator = resized.owner.op.is_operator(resized.owner.inputs[0])
    return to_last(resized) if is_operator else None


def _factor(size: Variable, source: Variable, axis: int) -> int:
    """Return the factor of the size of an axis, 0 if the new size is no multiple."""
    node = elementwise(size, Mul)
    if node is None or len(node.inputs) != 2:
        return 0
    own, factor = node.inputs
    return (integer_of(factor) or 0) if size_of(own) == (source, axis) else 0
