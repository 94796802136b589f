"""Compute convolutions of short images for all images of a batch at once.

ONNX Runtime multiplies filters by one image after the other. Where an image has few windows, these
products have few columns, and reading the filters takes most of the time. In a convolution the
batch becomes the depth of one image of more axes; a transposed convolution becomes one Gemm, and
Col2Im or, in large batches, a Gather and a sum. Constant filters stay, as the runtime lays them out
for its own kernels.
"""

import math
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.passes.fusions.gathered_products import products_of_elements
from pytensor_onnx.passes.matching import required
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder

# From these sizes on the other form is faster (benchmarks/NOTES.md).
MOST_WINDOWS = {"Conv": 15, "ConvTranspose": 63}
FEWEST_PRODUCTS = 1 << 18

_FEWEST_IMAGES = 8
_MOST_GATHERED = 32
"""Images, and elements of each, for which products are gathered faster than by Col2Im."""

_FEWEST_WEIGHTS = 1 << 19
_FEW_ELEMENTS = range(32, 129)
"""Sizes of filters and images for which the runtime should not pack the filters for a product."""


@node_rule(
    "Conv",
    "ConvTranspose",
    family="networks",
    purpose="speed",
    identity="conv(x, w) = conv(batch of x as depth, w), conv_transpose(x, w) = col2im(w.T @ x)",
    requires="float32, filters that vary, images with few windows of known sizes",
    measured="benchmarks/NOTES.md, Convolutions and their gradients",
)
def merge_short_images(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Merge the images of a convolution in float32 that has few windows and many products."""
    if not _is_merged(node):
        return None
    return _with_depth(build, node) if node.op_type == "Conv" else _by_columns(build, node)


def _is_merged(node: ir.Node) -> bool:
    filters = node.inputs[1]
    if filters is None or filters.dtype != ir.DataType.FLOAT or filters.const_value is not None:
        return False
    if node.attributes.get_int("group", 1) > 1 or "auto_pad" in node.attributes:
        return False
    windowed = node.outputs[0] if node.op_type == "Conv" else node.inputs[0]
    batch, shape = _batch(windowed), _known(filters)
    windows, sizes = _known(windowed, 2), _known(node.outputs[0], 2)
    if not (shape and windows and sizes and batch != 1):
        return False
    if node.op_type == "Conv":
        # A batch of unknown size may be empty, and the runtime refuses images without depth.
        is_served = len(shape) < 5 and batch is not None
    else:
        is_served = len(shape) == 4 and len(node.inputs) == 2
    number = math.prod(windows)
    batch = batch or (_FEWEST_IMAGES if number <= _MOST_GATHERED else 2)
    return (
        is_served
        and number <= MOST_WINDOWS[node.op_type]
        and batch * number * math.prod(shape) >= FEWEST_PRODUCTS
    )


def _batch(images: ir.Value | None) -> int | None:
    """Return the number of images, None if it is unknown until run time."""
    batch = (dims_of(images) or (None,))[0]
    return batch if isinstance(batch, int) else None


def _known(value: ir.Value | None, start: int = 0) -> list[int]:
    """Return the sizes of axes, none of them if one is unknown or zero."""
    dims = (dims_of(value) or ())[start:]
    sizes = [dim for dim in dims if isinstance(dim, int) and dim > 0]
    return sizes if len(sizes) == len(dims) else []


def _with_depth(build: Builder, node: ir.Node) -> ir.Value:
    """Emit a convolution of one image, whose depth is the batch."""
    (images, filters), bias = map(required, node.inputs[:2]), node.inputs[2:]
    if not bias and _has_one_tap(node):
        return _by_elements(build, images, filters)
    order = [1, 0, *range(2, len(dims_of(images) or ()))]
    image = build.Unsqueeze(build.Transpose(images, perm=order), build.ints([0]))
    result = build.Conv(image, build.Unsqueeze(filters, build.ints([2])), *bias, **_deeper(node))
    return build.Transpose(build.Squeeze(result, build.ints([0])), perm=order)


def _has_one_tap(node: ir.Node) -> bool:
    """Return whether a window is one element, and every element is a window."""
    filters = _known(node.inputs[1], 2)
    sizes = [_known(value, 2) for value in (node.inputs[0], node.outputs[0])]
    strides = node.attributes["strides"].as_ints() if "strides" in node.attributes else [1]
    return set(filters) == {1} and sizes[0] == sizes[1] and max(strides) == 1


def _by_elements(build: Builder, images: ir.Value, filters: ir.Value) -> ir.Value:
    """Emit the product of filters of one tap and the elements of all images.

    The gradient of such filters needs the same matrix of elements.
    """
    outputs, channels = _known(filters)[:2]
    sizes, rank = _known(images, 2), len(dims_of(images) or ())
    batch = _batch(images) or 0
    moved = build.Transpose(images, perm=[*range(2, rank), 0, 1])
    elements = _reshape(build, moved, [math.prod(sizes) * batch, channels])
    products = build.Gemm(_reshape(build, filters, [outputs, channels]), elements, transB=1)
    apart = _reshape(build, products, [outputs, *sizes, batch])
    return build.Transpose(apart, perm=[rank - 1, *range(rank - 1)])


def _reshape(build: Builder, x: ir.Value, shape: list[int]) -> ir.Value:
    """Emit a reshape as the lowering of PyTensor's does, so that equal ones are merged."""
    return build.Reshape(x, build.ints(shape), allowzero=0)


def _deeper(node: ir.Node) -> dict[str, Any]:
    """Return the attributes of a convolution with one more axis, of one tap, before the others."""
    attributes: dict[str, Any] = {}
    for name in ("kernel_shape", "strides", "dilations"):
        if name in node.attributes:
            attributes[name] = [1, *node.attributes[name].as_ints()]
    if "pads" in node.attributes:
        pads = list(node.attributes["pads"].as_ints())
        half = len(pads) // 2
        attributes["pads"] = [0, *pads[:half], 0, *pads[half:]]
    return attributes


def _by_columns(build: Builder, node: ir.Node) -> ir.Value:
    """Emit one product for all elements under all taps, and their sums where windows overlap."""
    images, filters = map(required, node.inputs)
    outputs, *taps = _known(filters)
    columns, sizes = math.prod(taps), _known(images, 2)
    batch = _batch(images) or -1
    # The gradient of the filters needs the same matrix of images.
    channels_first = build.Transpose(images, perm=[1, 2, 3, 0])
    shape = [outputs, math.prod(sizes) * batch if batch > 0 else -1]
    elements = _reshape(build, channels_first, shape)
    matrix = _reshape(build, filters, [outputs, columns])
    has_one_tap = _has_one_tap(node)
    is_large = batch < 0 or batch >= _FEWEST_IMAGES
    if is_large and not has_one_tap and math.prod(sizes) <= _MOST_GATHERED:
        return _sums_of_products(build, node, build.Gemm(matrix, elements, transA=1))
    parts = sizes if has_one_tap else [math.prod(sizes)]
    inner, rank = [*range(len(parts))], len(parts)
    if outputs * columns >= _FEWEST_WEIGHTS and shape[1] in _FEW_ELEMENTS:
        # The runtime packs the second factor, which takes as long as the product with few rows.
        products = build.Gemm(matrix, elements, transA=1)
        apart, perm = [columns, *parts, batch], [rank + 1, 0, *(i + 1 for i in inner)]
    else:
        products = build.Gemm(elements, matrix, transA=1)
        apart, perm = [*parts, batch, columns], [rank, rank + 1, *inner]
    windows = build.Transpose(_reshape(build, products, apart), perm=perm)
    if has_one_tap:
        return windows
    attributes = {
        name: list(node.attributes[name].as_ints())
        for name in ("pads", "strides", "dilations")
        if name in node.attributes
    }
    return build.Col2Im(
        windows,
        build.ints(_known(node.outputs[0], 2)),
        build.ints(taps[1:]),
        **attributes,
    )


def _sums_of_products(build: Builder, node: ir.Node, products: ir.Value) -> ir.Value:
    """Emit the sums of products (channels and taps, elements of all images) for each element."""
    _, channels, *taps = _known(node.inputs[1])
    counts, sizes = _known(node.inputs[0], 2), _known(node.outputs[0], 2)
    strides, dilations, starts = (
        list(node.attributes[name].as_ints())[:2] if name in node.attributes else [number] * 2
        for name, number in (("strides", 1), ("dilations", 1), ("pads", 0))
    )
    positions = products_of_elements(counts, taps, sizes, strides, dilations, starts)
    each = math.prod(taps) * math.prod(counts)
    batch = _batch(node.inputs[0]) or -1
    rows = _reshape(build, products, [channels, each, batch])
    if (positions == each).any():
        rows = build.Pad(rows, build.ints([0, 0, 0, 0, 1, 0]))
    gathered = build.Gather(rows, build.ints(positions.ravel().tolist()), axis=1)
    shape = [channels, len(positions), math.prod(sizes) * batch if batch > 0 else -1]
    sums = build.ReduceSum(_reshape(build, gathered, shape), build.ints([1]), keepdims=0)
    apart = _reshape(build, sums, [channels, *sizes, batch])
    return build.Transpose(apart, perm=[3, 0, 1, 2])
