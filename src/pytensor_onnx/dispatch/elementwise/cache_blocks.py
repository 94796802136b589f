"""Apply elementwise functions to long arrays in blocks that stay in a processor's cache."""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import Dims, product_dim

BLOCK = 2**15
"""Number of elements of a block, at least: 256 KiB of float64."""
LONGEST_WHOLE = 2 * BLOCK
"""Number of elements up to which an array is one block."""

Function = Callable[..., list[ir.Value]]
"""Receives a builder and vectors of one length, and returns vectors of that length."""


def may_be_long(dims: Dims) -> bool:
    """Return whether an array may have more elements than one block.

    Examples
    --------
    >>> may_be_long(("n", 3)), may_be_long((1000, 3)), may_be_long(())
    (True, False, False)
    """
    size = product_dim(dims)
    return not isinstance(size, int) or size > LONGEST_WHOLE


def in_blocks(
    build: Builder, function: Function, inputs: Sequence[ir.Value], *, has_whole_form: bool
) -> list[ir.Value]:
    """Apply a function of vectors to the elements of arrays, block by block.

    Each operator of a function reads and writes whole arrays, which takes two to three times as
    long where they leave the cache.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    function
        Elementwise function of vectors.
    inputs
        Arrays of one shape.
    has_whole_form
        Whether the function is applied to short arrays outside the loop, which saves some
        microseconds of a call, and takes twice the time to create a session.
    """
    x, *_ = inputs
    vectors = [build.Reshape(v, build.ints([-1])) for v in inputs]

    def by_block(inner: Builder) -> list[ir.Value]:
        return _loop_over_blocks(inner, function, vectors)

    if has_whole_form:
        is_long = build.Greater(build.Size(x), LONGEST_WHOLE)
        results = build.cond(is_long, by_block, lambda inner: function(inner, *vectors))
    else:
        results = by_block(build)
    return [build.Reshape(y, build.Shape(x), allowzero=1) for y in results]


def _loop_over_blocks(
    build: Builder, function: Function, vectors: Sequence[ir.Value]
) -> list[ir.Value]:
    """Fill up the last block with the last element, and apply the function to each of them."""
    length = build.Shape(vectors[0])
    count = build.Max(build.Div(length, build.ints([BLOCK])), build.ints([1]))
    missing = build.Mod(build.Neg(length), count)
    padding = build.Concat(build.ints([0]), missing, axis=0)
    rows = build.Concat(count, build.ints([-1]), axis=0)
    blocks = [build.Reshape(build.Pad(v, padding, mode="edge"), rows) for v in vectors]

    def of_block(inner: Builder, *block: ir.Value) -> list[ir.Value]:
        # The rank of the results, which a Scan must know, is not inferred through all functions.
        return [inner.Reshape(y, build.ints([-1])) for y in function(inner, *block)]

    stacked = build.scan([], blocks, of_block)
    flat = [build.Reshape(y, build.ints([-1])) for y in stacked]
    return [build.Slice(y, build.ints([0]), length) for y in flat]
