"""Fold sums, products and batch norms of channels into the preceding convolution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.fallbacks import Fallback, carry_fallback, fallback_of
from pytensor_onnx.graph.inference import dtype_of
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import (
    constant_of,
    exchange_names,
    remove_unused,
    replace_node,
)

_CONVOLUTIONS = ("Conv", "ConvTranspose")
_DEFAULT_EPSILON = 1e-5


class _Affine(NamedTuple):
    """A convolution, with the factors and terms that follow for each channel.

    The source is the constant term, if any.
    """

    conv: ir.Node
    scale: np.ndarray | None = None
    shift: np.ndarray | ir.Value | None = None
    source: ir.Value | None = None


@model_pass(
    family="networks",
    purpose="speed",
    identity="c * conv(x, w) + b = conv(x, c * w, b)",
    begins_at=("Conv", "ConvTranspose"),
    requires="constant filters and factors",
    measured="benchmarks/NOTES.md, Batch norm and SiLU in training",
)
def fold_into_conv(model: ir.Model, scope: ModelScope) -> int:
    """Fold sums, products and batch normalisation into the preceding convolution.

    A term for each channel becomes the bias, constant or not. Factors and filters must be constant;
    they are multiplied in float64 and rounded once.
    """
    renamed: list[tuple[ir.Value, ir.Value]] = []
    count = 0
    for node in list(model.graph):
        affine = _affine(node)
        if affine is not None:
            renamed += _fold(model.graph, node, affine, scope)
            count += 1
    if count:
        remove_unused(model.graph)
    exchange_names(renamed)
    return count


def _affine(node: ir.Node) -> _Affine | None:
    """Return the folded form of a node after a convolution, None if it cannot be folded."""
    if node.domain:
        return None
    if node.op_type == "BatchNormalization":
        return _normalisation(node)
    if node.op_type not in ("Add", "Sub", "Mul", "Div"):
        return None
    first, second = node.inputs
    pairs = [(first, second)]
    if node.op_type in ("Add", "Mul"):
        pairs.append((second, first))
    for result, operand in pairs:
        conv = _conv_of(result)
        if conv is None or operand is None or conv.graph is not node.graph:
            continue
        affine = _elementwise(node.op_type, conv, operand)
        if affine is not None:
            return affine
    return None


def _conv_of(value: ir.Value | None) -> ir.Node | None:
    """Return the convolution whose values only one node uses; others may read its sizes."""
    conv = value.producer() if value is not None else None
    if value is None or conv is None or conv.op_type not in _CONVOLUTIONS or conv.domain:
        return None
    has_one_use = len(value.uses()) - len(_size_readers(value)) == 1
    return conv if has_one_use and not value.is_graph_output() else None


def _size_readers(value: ir.Value) -> list[ir.Node]:
    graph = value.graph
    return [
        node
        for node, _ in value.uses()
        if node.op_type == "Shape" and not node.domain and node.graph is graph
    ]


def _elementwise(op_type: str, conv: ir.Node, operand: ir.Value) -> _Affine | None:
    axis = _channel_axis(operand, conv)
    if axis is None:
        return None
    constant = _constant(operand)
    if constant is None:
        dims = dims_of(operand) or ()
        shifts = op_type == "Add" and axis >= 0 and dims[axis] != 1
        # A term that varies may be computed from the sizes that are read.
        shifts = shifts and not _size_readers(conv.outputs[0])
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
    constants = [_constant(value) for value in node.inputs[1:]]
    training = node.attributes.get("training_mode")
    if conv is None or conv.graph is not node.graph or len(node.outputs) > 1:
        return None
    if training is not None and training.as_int():
        return None
    gamma, beta, mean, var = constants
    if gamma is None or beta is None or mean is None or var is None:
        return None
    attribute = node.attributes.get("epsilon")
    epsilon = _DEFAULT_EPSILON if attribute is None else attribute.as_float()
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
    return channels if conv.op_type == "Conv" else channels * _groups(conv)


def _groups(conv: ir.Node) -> int:
    group = conv.attributes.get("group")
    return 1 if group is None else group.as_int()


def _bias(conv: ir.Node) -> ir.Value | None:
    return conv.inputs[2] if len(conv.inputs) > 2 else None


def _constant(value: ir.Value | None) -> np.ndarray | None:
    array = constant_of(value)
    return None if array is None else array.astype("float64")


def _fold(
    graph: ir.Graph, node: ir.Node, affine: _Affine, scope: ModelScope
) -> list[tuple[ir.Value, ir.Value]]:
    """Replace a node by a convolution; return pairs of old and new constants."""
    conv = affine.conv
    images, filters = conv.inputs[:2]
    assert filters is not None
    dtype = dtype_of(filters)
    builder = Builder(scope)
    builder.provenance = {**node.metadata_props, **conv.metadata_props}
    if "pytensor.variable" in node.metadata_props:
        builder.provenance["pytensor.variable"] = node.metadata_props["pytensor.variable"]
    renamed = []
    if affine.scale is not None:
        old, known = filters, len(scope.initializers)
        scaled = _scaled_filters(conv, affine.scale).astype(dtype.numpy())
        filters = builder.constant(scaled, name=old.name)
        if len(scope.initializers) > known:
            renamed.append((old, filters))
    known = len(scope.initializers)
    bias = _new_bias(builder, affine, dtype)
    replaced = _bias(conv) or affine.source
    if replaced is not None and bias.const_value is not None and len(scope.initializers) > known:
        renamed.append((replaced, bias))
    attributes = {name: attribute.value for name, attribute in conv.attributes.items()}
    result = builder.op(conv.op_type, images, filters, bias, **attributes)
    fallback = fallback_of(conv)
    if fallback is not None:
        has_bias = _bias(conv) is not None
        carry_fallback(result.producer(), fallback if has_bias else _plus_bias(fallback))
    replace_node(graph, node, builder, [result], scope.names)
    readers = _size_readers(conv.outputs[0])
    for reader in readers:
        reader.replace_input_with(0, result)
    if readers:
        graph.sort()
    return renamed


def _scaled_filters(conv: ir.Node, scale: np.ndarray) -> np.ndarray:
    filters = _constant(conv.inputs[1])
    assert filters is not None
    if conv.op_type == "Conv":
        return filters * scale.reshape(-1, *(1,) * (filters.ndim - 1))
    # Of filters (C, O / groups, *K), each group of C computes its own output channels.
    groups = _groups(conv)
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
    node = value.producer()
    if node is not None and node.op_type == "Unsqueeze" and not node.domain:
        operand = node.inputs[0]
        if operand is not None and len(dims_of(operand) or ()) == 1:
            return operand
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
