"""Compute a recurrence of a constant factor by products with matrices of its powers.

The steps are divided into blocks of 32, and the blocks into groups of 32. A product with powers of
the factor gives the last value of each block, and of each group, as if it started at zero. The
last values of groups follow a recurrence again. Then a second product for groups, and one for
blocks, takes in the value before each.
"""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.inference import dtype_of

_BLOCK = 32
_ZERO = _BLOCK + 1
_DISTANCES = np.arange(_BLOCK) - np.arange(-1, _BLOCK)[:, None]
_POWERS = np.where(_DISTANCES >= 0, _DISTANCES, _ZERO)
"""Power by which each step multiplies the value before its block, and those of the block."""

_TO_LAST = _POWERS[1:, -1:]
"""The same for the last step of a block that starts at zero."""

_POWERS_BEFORE = np.where(_DISTANCES >= 1, _DISTANCES - 1, _ZERO)
_POWERS_BEFORE[0] = np.arange(_BLOCK)
"""The same for the value before each step."""

_LONGEST = 62


def by_blocks(onnx: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] of a vector, with a factor of shape (1,)."""
    zero, front = onnx.number_like(x, 0), onnx.ints([1, 0, -1, 0])
    dtype = dtype_of(x).numpy()
    powers, of_block = _powers(onnx, onnx.cast(factor, "float64"))
    powers_of_blocks, of_group = _powers(onnx, of_block)
    powers, powers_of_blocks, of_group = (
        onnx.cast(v, dtype) for v in (powers, powers_of_blocks, of_group)
    )
    length, as_blocks = onnx.Shape(x, start=0, end=1), onnx.ints([-1, _BLOCK])
    missing = onnx.Mod(onnx.Neg(length), onnx.ints([_BLOCK**2]))
    padded = onnx.Pad(x, onnx.Concat(onnx.ints([0]), missing, axis=0), zero)
    blocks = onnx.Reshape(padded, as_blocks)
    groups = onnx.Reshape(onnx.MatMul(blocks, _weights(onnx, powers, _TO_LAST)), as_blocks)
    lasts = doubled(onnx, onnx.MatMul(groups, _weights(onnx, powers_of_blocks, _TO_LAST)), of_group)
    groups = onnx.Concat(onnx.Pad(lasts, front, zero), groups, axis=1)
    weights = _weights(onnx, powers_of_blocks, _POWERS_BEFORE)
    before = onnx.Reshape(onnx.MatMul(groups, weights), onnx.ints([-1, 1]))
    weights = _weights(onnx, powers, _POWERS)
    values = onnx.MatMul(onnx.Concat(before, blocks, axis=1), weights)
    flat, start = onnx.Reshape(values, onnx.ints([-1])), onnx.ints([0])
    return onnx.Slice(flat, start, length, start)


def _powers(onnx: Builder, factor: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the powers 0 to 32 and a zero, and the power 32, in float64."""
    counts = np.arange(_ZERO + 1)[:, None]
    is_used = (np.arange(_BLOCK) < counts) & (counts < _ZERO)
    others = np.where(counts == _ZERO, 0.0, np.ones(_BLOCK))
    chosen = onnx.Where(onnx.constant(is_used), factor, onnx.constant(others))
    powers = onnx.ReduceProd(chosen, onnx.ints([1]), keepdims=0)
    return powers, onnx.Gather(powers, onnx.ints([_BLOCK]), axis=0)


def _weights(onnx: Builder, powers: ir.Value, exponents: np.ndarray) -> ir.Value:
    weights = onnx.Gather(powers, onnx.constant(exponents), axis=0)
    weights.shape = ir.Shape(exponents.shape)
    return weights


def doubled(onnx: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] along the first axis, in log n rounds."""
    axis, zero = onnx.ints([0]), onnx.number_like(x, -0.0)
    rounds, pads = rounds_of(onnx, x)

    def step(loop: Builder, i: ir.Value, values: ir.Value, power: ir.Value) -> list[ir.Value]:
        earlier = loop.Pad(values, loop.Gather(pads, i, axis=0), zero, axis)
        return [loop.Add(values, loop.Mul(power, earlier)), loop.Mul(power, power)]

    return onnx.loop(rounds, None, [x, factor], step)[0]


def rounds_of(onnx: Builder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the number of rounds for a first axis, and the pads that move it by 1, 2, 4, 8, …."""
    distances = 2 ** np.arange(_LONGEST)
    is_enough = onnx.GreaterOrEqual(onnx.constant(distances), onnx.Shape(x, start=0, end=1))
    rounds = onnx.ArgMax(onnx.cast(is_enough, "int32"), keepdims=0)
    return rounds, onnx.constant(np.stack([distances, -distances], 1))
