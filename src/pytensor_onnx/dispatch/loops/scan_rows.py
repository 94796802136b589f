"""Find the shape of the rows of a Scan's outputs before its steps run."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import infer_shape
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scan.op import Scan
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.type import TensorType, lscalar

Size = tuple[Variable, int]
"""An input of a Scan and an axis of it."""


def zeros_like_row(node: Apply, position: int) -> tuple[Variable, dict[Variable, Size]] | None:
    """Return zeros of the shape of a row of an output without recurrence.

    Parameters
    ----------
    node
        Apply node of a Scan.
    position
        Position among the outputs without recurrence.

    Returns
    -------
    tuple
        The zeros, an expression of inputs of the Scan and of sizes, and the origins of the sizes.
        None if only the steps know the shape.
    """
    op = node.op
    inner = op.fgraph.unfreeze()
    row = op.inner_nitsot_outs(inner.outputs)[position]
    origins: dict[Variable, Size] = {}
    shapes: dict[Variable, tuple[Variable, ...] | None] = {}
    for value, outer, first in _pairs(op, node, inner.inputs):
        shapes[value] = None
        if isinstance(outer.type, TensorType):
            axes = {lscalar(): (outer, axis) for axis in range(first, outer.type.ndim)}
            shapes[value] = tuple(axes)
            origins |= axes
    inputs = list(inner.inputs)
    (shape,) = infer_shape([row], inputs, [shapes[x] for x in inputs])
    known = dict(zip(op.inner_non_seqs(inputs), op.outer_non_seqs(node.inputs), strict=True))
    zeros = pt.alloc(np.zeros((), row.type.dtype), *shape)
    known |= {
        read.outputs[0]: sizes[read.op.i]
        for read in toposort([zeros])
        if isinstance(read.op, Shape_i) and (sizes := shapes.get(read.inputs[0])) is not None
    }
    (zeros,) = graph_replace([zeros], known, strict=False)
    used = set(ancestors([zeros], blockers=node.inputs))
    if not used.isdisjoint(inputs):
        return None
    return zeros, {size: origin for size, origin in origins.items() if size in used}


def _pairs(
    op: Scan, node: Apply, inner: list[Variable]
) -> Iterator[tuple[Variable, Variable, int]]:
    """Yield inner inputs, the outer ones they come from, and the first axis that both have."""
    outer = node.inputs
    for groups, buffers in (
        (op.inner_mitmot_grouped(inner), op.outer_mitmot(outer)),
        (op.inner_mitsot_grouped(inner), op.outer_mitsot(outer)),
    ):
        for group, buffer in zip(groups, buffers, strict=True):
            yield from ((value, buffer, 1) for value in group)
    elements = chain(op.inner_seqs(inner), op.inner_sitsot(inner))
    rows = chain(op.outer_seqs(outer), op.outer_sitsot(outer))
    yield from ((value, whole, 1) for value, whole in zip(elements, rows, strict=True))
    values = chain(op.inner_untraced_sit_sot(inner), op.inner_non_seqs(inner))
    wholes = chain(op.outer_untraced_sit_sot(outer), op.outer_non_seqs(outer))
    yield from ((value, whole, 0) for value, whole in zip(values, wholes, strict=True))
