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


def by_blocks(build: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] of a vector, with a factor of shape (1,)."""
    zero, front = build.number_like(x, 0), build.ints([1, 0, -1, 0])
    dtype = dtype_of(x).numpy()
    powers, of_block = _powers(build, build.cast(factor, "float64"))
    powers_of_blocks, of_group = _powers(build, of_block)
    powers, powers_of_blocks, of_group = (
        build.cast(v, dtype) for v in (powers, powers_of_blocks, of_group)
    )
    length, as_blocks = build.Shape(x, start=0, end=1), build.ints([-1, _BLOCK])
    missing = build.Mod(build.Neg(length), build.ints([_BLOCK**2]))
    padded = build.Pad(x, build.Concat(build.ints([0]), missing, axis=0), zero)
    blocks = build.Reshape(padded, as_blocks)
    groups = build.Reshape(build.MatMul(blocks, _weights(build, powers, _TO_LAST)), as_blocks)
    lasts = doubled(
        build, build.MatMul(groups, _weights(build, powers_of_blocks, _TO_LAST)), of_group
    )
    groups = build.Concat(build.Pad(lasts, front, zero), groups, axis=1)
    weights = _weights(build, powers_of_blocks, _POWERS_BEFORE)
    before = build.Reshape(build.MatMul(groups, weights), build.ints([-1, 1]))
    weights = _weights(build, powers, _POWERS)
    values = build.MatMul(build.Concat(before, blocks, axis=1), weights)
    flat, start = build.Reshape(values, build.ints([-1])), build.ints([0])
    return build.Slice(flat, start, length, start)


def _powers(build: Builder, factor: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the powers 0 to 32 and a zero, and the power 32, in float64."""
    counts = np.arange(_ZERO + 1)[:, None]
    is_used = (np.arange(_BLOCK) < counts) & (counts < _ZERO)
    others = np.where(counts == _ZERO, 0.0, np.ones(_BLOCK))
    chosen = build.Where(build.constant(is_used), factor, build.constant(others))
    powers = build.ReduceProd(chosen, build.ints([1]), keepdims=0)
    return powers, build.Gather(powers, build.ints([_BLOCK]), axis=0)


def _weights(build: Builder, powers: ir.Value, exponents: np.ndarray) -> ir.Value:
    weights = build.Gather(powers, build.constant(exponents), axis=0)
    weights.shape = ir.Shape(exponents.shape)
    return weights


def doubled(build: Builder, x: ir.Value, factor: ir.Value) -> ir.Value:
    """Return y[t] = factor * y[t - 1] + x[t] along the first axis, in log n rounds."""
    axis, zero = build.ints([0]), build.number_like(x, -0.0)
    rounds, pads = rounds_of(build, x)

    def step(loop: Builder, i: ir.Value, values: ir.Value, power: ir.Value) -> list[ir.Value]:
        earlier = loop.Pad(values, loop.Gather(pads, i, axis=0), zero, axis)
        return [loop.Add(values, loop.Mul(power, earlier)), loop.Mul(power, power)]

    return build.loop(rounds, None, [x, factor], step)[0]


def rounds_of(build: Builder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the number of rounds for a first axis, and the pads that move it by 1, 2, 4, 8, …."""
    distances = 2 ** np.arange(_LONGEST)
    is_enough = build.GreaterOrEqual(build.constant(distances), build.Shape(x, start=0, end=1))
    rounds = build.ArgMax(build.cast(is_enough, "int32"), keepdims=0)
    return rounds, build.constant(np.stack([distances, -distances], 1))
