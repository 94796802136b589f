"""Fold sums, products and batch norms of channels into the preceding convolution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder, Fallback, carry_fallback, fallback_of
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.operators.inference import attribute_of, dtype_of
from pytensor_onnx.passes.matching import (
    constant_of,
    inherit_name,
    is_operator,
    producer_of,
    required,
    sole_producer,
)
from pytensor_onnx.passes.node_rules import node_rule
from pytensor_onnx.passes.node_walk import NodeBuilder, emit_alike


class _Affine(NamedTuple):
    """A convolution, with the factors and terms that follow for each channel.

    The source is the constant term, if any.
    """

    conv: ir.Node
    scale: np.ndarray | None = None
    shift: np.ndarray | ir.Value | None = None
    source: ir.Value | None = None


@node_rule(
    "Add",
    "BatchNormalization",
    "Div",
    "Mul",
    "Sub",
    family="networks",
    purpose="speed",
    identity="c * conv(x, w) + b = conv(x, c * w, b)",
    requires="constant filters and factors",
    measured="benchmarks/NOTES.md, Batch norm and SiLU in training",
)
def fold_into_conv(build: NodeBuilder, node: ir.Node) -> ir.Value | None:
    """Fold sums, products and batch normalisation into the preceding convolution.

    A term for each channel becomes the bias, constant or not. Factors and filters must be constant;
    they are multiplied in float64 and rounded once.
    """
    affine = _normalisation(node) if node.op_type == "BatchNormalization" else _arithmetic(node)
    return None if affine is None else _folded(build, node, affine)


def _arithmetic(node: ir.Node) -> _Affine | None:
    """Return the folded form of a sum or product of a convolution, None if it cannot be folded."""
    pairs = [node.inputs, node.inputs[::-1]]
    for result, operand in pairs[: 2 if node.op_type in ("Add", "Mul") else 1]:
        conv = _conv_of(result)
        affine = None if conv is None else _elementwise(node.op_type, conv, required(operand))
        if affine is not None:
            return affine
    return None


def _conv_of(value: ir.Value | None) -> ir.Node | None:
    """Return the convolution whose values only one node uses; others may read its sizes."""
    conv = producer_of(value, "Conv", "ConvTranspose")
    return None if conv is None else sole_producer(value, conv.op_type, ignored=_size_readers(conv))


def _size_readers(conv: ir.Node) -> list[ir.Node]:
    return [node for node in conv.outputs[0].consumers() if is_operator(node, "Shape")]


def _elementwise(op_type: str, conv: ir.Node, operand: ir.Value) -> _Affine | None:
    axis = _channel_axis(operand, conv)
    if axis is None:
        return None
    constant = _constant(operand)
    if constant is None:
        dims = dims_of(operand) or ()
        shifts = op_type == "Add" and axis >= 0 and dims[axis] != 1
        # A term that varies may be computed from the sizes that are read.
        shifts = shifts and not _size_readers(conv)
        return _Affine(conv, shift=operand) if shifts else None
    channels = _channels(conv)
    if channels is None or constant.size not in (1, channels):
        return None
    vector = np.broadcast_to(constant.ravel(), (channels,))
    if op_type in ("Add", "Sub"):
        shift = vector if op_type == "Add" else -vector
        return _Affine(conv, shift=shift, source=operand)
    if op_type == "Div" and not vector.all():
        return None
    return _scaled(conv, vector if op_type == "Mul" else 1 / vector, None)


def _normalisation(node: ir.Node) -> _Affine | None:
    conv = _conv_of(node.inputs[0])
    if conv is None or len(node.outputs) > 1 or attribute_of(node, "training_mode") != 0:
        return None
    gamma, beta, mean, var = map(_constant, node.inputs[1:])
    if gamma is None or beta is None or mean is None or var is None:
        return None
    epsilon = attribute_of(node, "epsilon")
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(var + epsilon)
        return _scaled(conv, scale, beta - mean * scale)


def _scaled(conv: ir.Node, scale: np.ndarray, shift: np.ndarray | None) -> _Affine | None:
    """Return the scaled form if filters and bias are constant and stay finite."""
    bias = _bias(conv)
    if _constant(conv.inputs[1]) is None or (bias is not None and _constant(bias) is None):
        return None
    with np.errstate(all="ignore"):
        filters = _scaled_filters(conv, scale).astype(dtype_of(conv.inputs[1]).numpy())
    return _Affine(conv, scale, shift) if np.isfinite(filters).all() else None


def _channel_axis(operand: ir.Value, conv: ir.Node) -> int | None:
    """Return the channel axis of an operand, -1 without one, None for operands with other axes."""
    dims, result = dims_of(operand), dims_of(conv.outputs[0])
    if dims is None or result is None or len(dims) > len(result):
        return None
    axis = len(dims) - len(result) + 1
    if any(dim != 1 for i, dim in enumerate(dims) if i != axis):
        return None
    return max(axis, -1)


def _channels(conv: ir.Node) -> int | None:
    """Return the number of channels of the result, if known."""
    filters = dims_of(conv.inputs[1])
    if filters is None:
        return None
    channels = filters[0] if conv.op_type == "Conv" else filters[1]
    if not isinstance(channels, int):
        return None
    return channels if conv.op_type == "Conv" else channels * attribute_of(conv, "group")


def _bias(conv: ir.Node) -> ir.Value | None:
    return conv.inputs[2] if len(conv.inputs) > 2 else None


def _constant(value: ir.Value | None) -> np.ndarray | None:
    array = constant_of(value)
    return None if array is None else array.astype("float64")


def _folded(build: NodeBuilder, node: ir.Node, affine: _Affine) -> ir.Value:
    """Emit a convolution in place of a node and the convolution before it."""
    conv = affine.conv
    images, filters = map(required, conv.inputs[:2])
    build.credit(node, conv)
    new_filters = filters
    if affine.scale is not None:
        scaled = _scaled_filters(conv, affine.scale).astype(dtype_of(filters).numpy())
        new_filters = build.constant(scaled, name=filters.name)
    bias = _new_bias(build, affine, dtype_of(filters))
    inherit_name(filters, new_filters, [conv])
    inherit_name(_bias(conv) or affine.source, bias, [conv, node])
    (result,) = emit_alike(build, conv, [images, new_filters, bias])
    fallback = fallback_of(conv)
    if fallback is not None:
        has_bias = _bias(conv) is not None
        carry_fallback(result.producer(), fallback if has_bias else _plus_bias(fallback))
    _read_sizes_after(node, conv, result)
    return result


def _read_sizes_after(node: ir.Node, conv: ir.Node, result: ir.Value) -> None:
    """Read sizes from the result of a node in place of a convolution.

    Its other operands are constant then, so that the node can stand right behind the convolution.
    """
    readers, graph = _size_readers(conv), node.graph
    if readers and graph is not None:
        graph.remove(node)
        graph.insert_after(conv, node)
    for reader in readers:
        reader.replace_input_with(0, result)


def _scaled_filters(conv: ir.Node, scale: np.ndarray) -> np.ndarray:
    filters = _constant(conv.inputs[1])
    assert filters is not None
    if conv.op_type == "Conv":
        return filters * scale.reshape(-1, *(1,) * (filters.ndim - 1))
    # Of filters (C, O / groups, *K), each group of C computes its own output channels.
    groups = attribute_of(conv, "group")
    apart = filters.reshape(groups, -1, *filters.shape[1:])
    factors = scale.reshape(groups, 1, -1, *(1,) * (filters.ndim - 2))
    return (apart * factors).reshape(filters.shape)


def _new_bias(builder: Builder, affine: _Affine, dtype: ir.DataType) -> ir.Value:
    bias, shift = _bias(affine.conv), affine.shift
    if isinstance(shift, ir.Value):
        vector = _vector(builder, shift)
        return vector if bias is None else builder.Add(bias, vector)
    constant = np.zeros(()) if bias is None else _constant(bias)
    if constant is None:
        return builder.Add(bias, builder.constant(np.asarray(shift, dtype.numpy())))
    if affine.scale is not None:
        constant = constant * affine.scale
    total = constant if shift is None else constant + shift
    name = None if bias is None else bias.name
    if name is None and affine.scale is not None:
        filters = affine.conv.inputs[1]
        name = _bias_name(filters.name) if filters is not None and filters.name else None
    return builder.constant(total.astype(dtype.numpy()), name=name)


def _bias_name(filters: str) -> str:
    """Return the name of a bias from the name of its filters.

    Examples
    --------
    >>> _bias_name("block.conv.weight"), _bias_name("kernels")
    ('block.conv.bias', 'kernels_bias')
    """
    return (
        f"{filters.removesuffix('weight')}bias" if filters.endswith("weight") else f"{filters}_bias"
    )


def _vector(builder: Builder, value: ir.Value) -> ir.Value:
    """Return a value without its axes of size one, a vector."""
    dims = dims_of(value) or ()
    (axis,) = (i for i, dim in enumerate(dims) if dim != 1)
    node = producer_of(value, "Unsqueeze")
    if node is not None and len(dims_of(node.inputs[0]) or ()) == 1:
        return required(node.inputs[0])
    others = [i for i in range(len(dims)) if i != axis]
    return builder.Squeeze(value, builder.ints(others)) if others else value


def _plus_bias(fallback: Fallback) -> Fallback:
    """Return the fallback of a convolution with a bias, given one without."""

    def biased(build: Builder, images: ir.Value, filters: ir.Value, bias: ir.Value) -> ir.Value:
        results = fallback(build, images, filters)
        result = results if isinstance(results, ir.Value) else results[0]
        axes = range(1, len(dims_of(images) or ()) - 1)
        return build.Add(result, build.Unsqueeze(bias, build.ints(axes)))

    return biased
