"""Broadcast the batch axes of operands, which precede the core axes of an Op."""

from collections.abc import Sequence

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder

Pattern = tuple[bool, ...]
"""For each batch axis of an operand, whether its size is one."""


def batch_sizes(
    build: Builder, inputs: Sequence[ir.Value], patterns: Sequence[Pattern], cores: Sequence[int]
) -> list[ir.Value]:
    """Return the sizes of the batch axes, each as a vector of one element.

    Parameters
    ----------
    build
        Builder that reads them.
    inputs, patterns
        Operands, and which of their batch axes broadcast.
    cores
        Numbers of core axes of the operands.
    """
    return [_size(build, inputs, patterns, cores, axis) for axis in range(len(patterns[0]))]


def _size(
    build: Builder,
    inputs: Sequence[ir.Value],
    patterns: Sequence[Pattern],
    cores: Sequence[int],
    axis: int,
) -> ir.Value:
    """Return the size of a batch axis, shared by all operands that do not broadcast along it."""
    for x, pattern, core in zip(inputs, patterns, cores, strict=True):
        if not pattern[axis]:
            position = len(build.dims(x)) - core - len(pattern) + axis
            return build.sizes(x, position, position + 1)
    return build.ints([1])


def expanded(build: Builder, x: ir.Value, batch: Sequence[ir.Value], core: int) -> ir.Value:
    """Return an operand broadcast to the sizes of all batch axes.

    Parameters
    ----------
    build
        Builder that receives the Expand.
    x
        Operand with that many core axes, its last ones.
    batch
        Sizes, as `batch_sizes` returns them.
    core
        Number of core axes.
    """
    rank = len(build.dims(x))
    sizes = [*batch, *([build.sizes(x, rank - core, rank)] if core else [])]
    return build.Expand(x, sizes[0] if len(sizes) == 1 else build.Concat(*sizes, axis=0))


def with_equal_batches(
    build: Builder, inputs: Sequence[ir.Value], patterns: Sequence[Pattern], cores: Sequence[int]
) -> list[ir.Value]:
    """Broadcast operands whose batch axes differ from the axes of the whole batch.

    The parameters are those of `batch_sizes`.
    """
    if len(set(patterns)) <= 1:
        return list(inputs)
    batch = batch_sizes(build, inputs, patterns, cores)
    whole = tuple(map(all, zip(*patterns, strict=True)))
    return [
        x if pattern == whole else expanded(build, x, batch, core)
        for x, pattern, core in zip(inputs, patterns, cores, strict=True)
    ]
