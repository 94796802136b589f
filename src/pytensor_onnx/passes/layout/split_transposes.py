"""Reverse the order of three axes by a transposed matrix and a Gather of its rows.

ONNX Runtime copies blocks where one axis moves past the others, and transposes matrices in blocks.
An array whose three axes are reversed, as filters are between (height, width, in, out) and (out,
in, height, width), is copied element by element, which takes four to nine times as long. It joins
two Transposes into one again, but no Transpose and Gather.
"""

import math
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.rewriting import given, replace_node

FEWEST_ELEMENTS, SHORTEST_ROW = 1024, 16
"""Sizes of an array and of a row from which on three nodes more are faster."""

MOST_ROWS = 1 << 16
"""Length of the vector of rows, a constant of the model."""


class _Axes(NamedTuple):
    """Sizes of three axes."""

    first: int
    middle: int
    last: int


def split_transposes(model: ir.Model, scope: ModelScope) -> int:
    """Split Transposes of float32 arrays of known sizes that reverse three axes.

    Axes of size one do not count, and axes that stay together count as one.

    Parameters
    ----------
    model
        Model to change in place, without its subgraphs.
    scope
        Names and constants of the model.

    Returns
    -------
    int
        Number of Transposes that were split.
    """
    count = 0
    for node in list(model.graph):
        axes = _reversed_axes(node)
        if axes is None or not _is_faster(axes):
            continue
        builder = Builder(scope)
        builder.provenance = dict(node.metadata_props)
        replace_node(model.graph, node, builder, [_reversed(builder, node, axes)], scope.names)
        count += 1
    return count


def _reversed_axes(node: ir.Node) -> _Axes | None:
    """Return the three axes that a Transpose reverses, None for other nodes."""
    x = node.inputs[0] if node.op_type == "Transpose" and not node.domain else None
    if x is None or x.dtype != ir.DataType.FLOAT or x.const_value is not None:
        return None
    dims = dims_of(x) or ()
    if "perm" not in node.attributes or not all(isinstance(d, int) and d > 0 for d in dims):
        return None
    sizes = [d for d in dims if isinstance(d, int)]
    longer = [axis for axis, size in enumerate(sizes) if size > 1]
    ranks = [longer.index(a) for a in node.attributes["perm"].as_ints() if a in longer]
    groups: list[list[int]] = []
    for rank in ranks:
        if groups and rank == groups[-1][-1] + 1:
            groups[-1].append(rank)
        else:
            groups.append([rank])
    if len(groups) != 3 or not groups[0] > groups[1] > groups[2]:
        return None
    return _Axes(*(math.prod(sizes[longer[rank]] for rank in g) for g in reversed(groups)))


def _is_faster(axes: _Axes) -> bool:
    """Return whether rows are long enough to be copied faster than elements."""
    size, row = math.prod(axes), max(axes.first, axes.last)
    return size >= FEWEST_ELEMENTS and row >= SHORTEST_ROW and size // row <= MOST_ROWS


def _reversed(build: Builder, node: ir.Node, axes: _Axes) -> ir.Value:
    """Emit the reversal, with the first or the last axis in the rows, whichever is longer."""
    x, (first, middle, last) = given(node.inputs[0]), axes
    if last >= first:
        rows = build.Reshape(x, build.ints([first * middle, last]))
        rows = build.Gather(rows, build.ints(_exchanged(first, middle)), axis=0)
        result = build.Transpose(rows, perm=[1, 0])
    else:
        rows = build.Transpose(build.Reshape(x, build.ints([first, middle * last])), perm=[1, 0])
        result = build.Gather(rows, build.ints(_exchanged(middle, last)), axis=0)
    sizes = [d for d in dims_of(node.outputs[0]) or () if isinstance(d, int)]
    return build.Reshape(result, build.ints(sizes))


def _exchanged(outer: int, inner: int) -> list[int]:
    """Return the order of rows in which two axes are exchanged."""
    order: list[int] = np.arange(outer * inner).reshape(outer, inner).T.ravel().tolist()
    return order
