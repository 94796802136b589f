"""Numba's functions for convolutions and pools: one for each Op and dtype, for arrays of any size.

Arrays of one or two spatial axes are computed as those of three, with axes of size one in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.link.numba.dispatch.basic import (
    default_hash_key_from_props,
    numba_njit,
    register_funcify_and_cache_key,
)

from numba_networks import loops
from numba_networks.operations import NumbaFunction
from pytensor_onnx.ops.networks.conv_ops import Conv, ConvFilterGradient, ConvTranspose
from pytensor_onnx.ops.networks.pool_ops import MaxPool, MaxPoolGradient

_DTYPES = ("float32", "float64")
type _Array = np.ndarray
type _Function = Callable[..., Any]


def has_function(node: Apply) -> bool:
    """Return whether Numba has a function for a node."""
    is_known = function_of.dispatch(type(node.op)) is not function_of.dispatch(object)
    return is_known and all(v.type.dtype in _DTYPES for v in (*node.inputs, *node.outputs))


@singledispatch
def function_of(op: Any, node: Apply) -> _Function:
    """Return the function that computes an Op."""
    raise NotImplementedError(f"{op} has no function of Numba's")


@register_funcify_and_cache_key(NumbaFunction)
def numba_funcify_function(
    op: NumbaFunction, node: Apply, **kwargs: object
) -> tuple[_Function, str]:
    """Return the function, and a key that is the same in each process."""
    key = default_hash_key_from_props(op.op, inputs=len(node.inputs), version=1)
    return function_of(op.op, node), key


@function_of.register(Conv)
def conv(op: Conv, node: Apply) -> _Function:
    """Multiply the filters by the window of each image under the taps."""
    (volumes, areas), groups = loops.RANKS[len(op.filter_sizes)], op.groups
    filter_sizes, geometry = _taps(op), _geometry(op.strides, op.dilations, op.pads)

    @numba_njit
    def convolution(images: _Array, filters: _Array) -> _Array:
        x, w = volumes(images), volumes(filters)
        return areas(loops.correlate(x, w, filter_sizes, geometry, groups))

    return _with_bias(convolution, node)


@function_of.register(ConvTranspose)
def conv_transpose(op: ConvTranspose, node: Apply) -> _Function:
    """Multiply the filters by each cell, and add that up where the taps see it."""
    (volumes, areas), groups = loops.RANKS[len(op.filter_sizes)], op.groups
    filter_sizes, geometry = _taps(op), _geometry(op.strides, op.dilations, op.pads)
    more = _three(op.output_padding, 0)

    @numba_njit
    def transposed_convolution(images: _Array, filters: _Array) -> _Array:
        y, w = volumes(images), volumes(filters)
        return areas(loops.transpose(y, w, filter_sizes, geometry, groups, more))

    return _with_bias(transposed_convolution, node)


@function_of.register(ConvFilterGradient)
def conv_filter_gradient(op: ConvFilterGradient, node: Apply) -> _Function:
    """Multiply the windows under the taps by the gradient, and sum the products over the images."""
    (volumes, areas), groups = loops.RANKS[len(op.filter_sizes)], op.groups
    filter_sizes, geometry = _taps(op), _geometry(op.strides, op.dilations, op.pads)

    @numba_njit
    def filter_gradient(images: _Array, gradient: _Array) -> _Array:
        x, y = volumes(images), volumes(gradient)
        return areas(loops.filter_gradient(x, y, filter_sizes, geometry, groups))

    return filter_gradient


@function_of.register(MaxPool)
def max_pool(op: MaxPool, node: Apply) -> _Function:
    """Look for the largest cell of each window."""
    windows = op.windows
    volumes, areas = loops.RANKS[windows.rank]
    window, ceil_mode = _three(windows.window, 1), windows.ceil_mode
    geometry = _geometry(windows.stride, windows.dilation, windows.padding)

    @numba_njit
    def maximum_pooling(images: _Array) -> _Array:
        x = volumes(images)
        return areas(loops.max_pool(x, window, geometry, ceil_mode))

    return maximum_pooling


@function_of.register(MaxPoolGradient)
def max_pool_gradient(op: MaxPoolGradient, node: Apply) -> _Function:
    """Add the gradient to the first largest cell of each window."""
    windows = op.windows
    volumes, areas = loops.RANKS[windows.rank]
    window = _three(windows.window, 1)
    geometry = _geometry(windows.stride, windows.dilation, windows.padding)

    @numba_njit
    def maximum_pooling_gradient(images: _Array, largest: _Array, gradient: _Array) -> _Array:
        x, y = volumes(images), volumes(gradient)
        return areas(loops.max_pool_gradient(x, y, window, geometry))

    return maximum_pooling_gradient


def _with_bias(function: _Function, node: Apply) -> _Function:
    if len(node.inputs) == 2:
        return function

    @numba_njit
    def with_bias(images: _Array, filters: _Array, bias: _Array) -> _Array:
        return loops.add_bias(function(images, filters), bias)

    return with_bias


def _taps(op: Conv | ConvTranspose | ConvFilterGradient) -> loops.Three:
    """Return the sizes of the filters, 0 where they are not known."""
    return _three([0 if taps is None else taps for taps in op.filter_sizes], 1)


def _geometry(
    strides: Sequence[int], dilations: Sequence[int], pads: Sequence[tuple[int, int]]
) -> loops.Geometry:
    starts, ends = zip(*pads, strict=True)
    return _three(strides, 1), _three(dilations, 1), _three(starts, 0), _three(ends, 0)


def _three(numbers: Sequence[int], fill: int) -> loops.Three:
    first, second, third = (*(fill,) * (3 - len(numbers)), *map(int, numbers))
    return first, second, third
