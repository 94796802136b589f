"""Layers of neural networks: windows, normalisations, attention, recurrences."""

from collections.abc import Sequence

import numpy as np

from pytensor_onnx.operators.dims import (
    Dim,
    Dims,
    constant_ints,
    dims_of,
    product_dim,
    slice_dim,
    sum_dim,
)
from pytensor_onnx.operators.facts import (
    ALL,
    NONE,
    Attributes,
    Operands,
    Operator,
    Pairs,
    Shapes,
    by_letters,
    same_as_first,
    same_shapes,
)

_END = 2**63 - 1


def _convolution(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Conv: images of the batch, filters as channels.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from pytensor_onnx.operators.entries import output_dims
    >>> x = ir.val("x", shape=("batch", 3, 32, "width"))
    >>> w = ir.val("w", shape=(8, 3, 3, 3))
    >>> output_dims("Conv", [x, w], {"strides": [2, 2], "pads": [1, 1, 1, 1]})
    ('batch', 8, 16, width[::2])
    >>> output_dims("Conv", [x, w], {"pads": [1, 1, 1, 1]})
    ('batch', 8, 32, 'width')
    """
    images, filters = dims_of(inputs[0]), dims_of(inputs[1])
    if images is None or filters is None:
        return None
    filter_sizes = attributes.get("kernel_shape", filters[2:])
    return (images[0], filters[0], *_windows(images[2:], filter_sizes, attributes))


def _quantized_convolution(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of QLinearConv, whose filters come after a scale and a zero point."""
    return _convolution([inputs[0], inputs[3]], attributes)


def _recurrence(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of the outputs of all steps of a recurrent layer.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from pytensor_onnx.operators.entries import output_dims
    >>> x, w, r = (ir.val("v", shape=s) for s in (("t", "n", 3), (2, 20, 3), (2, 20, 5)))
    >>> output_dims("LSTM", [x, w, r], {})
    ('t', 2, 'n', 5)
    """
    x, r = dims_of(inputs[0]), dims_of(inputs[2])
    if x is None or r is None:
        return None
    directions, hidden = r[0], r[-1]
    if attributes.get("layout"):
        return (x[0], x[1], directions, hidden)
    return (x[0], directions, x[1], hidden)


def _transposed_convolution(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of ConvTranspose.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from pytensor_onnx.operators.entries import output_dims
    >>> x = ir.val("x", shape=("batch", 8, 16, "width"))
    >>> w = ir.val("w", shape=(8, 3, 2, 2))
    >>> output_dims("ConvTranspose", [x, w], {"strides": [2, 2]})
    ('batch', 3, 32, 2*width)
    """
    images, filters = dims_of(inputs[0]), dims_of(inputs[1])
    if images is None or filters is None:
        return None
    groups, rank = attributes["group"], len(images) - 2
    channels = filters[1] * groups if isinstance(filters[1], int) else None
    if "output_shape" in attributes or attributes["auto_pad"] != "NOTSET":
        return (images[0], channels, *(None,) * rank)
    ones, pads = [1] * rank, attributes.get("pads", [0] * (2 * rank))
    strides, dilations = (attributes.get(name, ones) for name in ("strides", "dilations"))
    more = attributes.get("output_padding", [0] * rank)
    filter_sizes = attributes.get("kernel_shape", filters[2:])
    axes = zip(
        images[2:], filter_sizes, pads[:rank], pads[rank:], strides, dilations, more, strict=True
    )
    sizes = [
        sum_dim(
            [
                product_dim([size, stride]),
                (taps - 1) * dilation + 1 - stride - before - after + extra,
            ]
        )
        if isinstance(taps, int)
        else None
        for size, taps, before, after, stride, dilation, extra in axes
    ]
    return (images[0], channels if groups > 1 else filters[1], *sizes)


def _pooling(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of a pool with windows."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    return (*dims[:2], *_windows(dims[2:], attributes["kernel_shape"], attributes))


def _global_pooling(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of a pool over all of the spatial axes."""
    dims = dims_of(inputs[0])
    return None if dims is None else (*dims[:2], *(1,) * (len(dims) - 2))


def _resizing(inputs: Operands, attributes: Attributes) -> Dims | None:
    """Return the dimensions of Resize, from constant sizes or scales."""
    dims = dims_of(inputs[0])
    if dims is None:
        return None
    if "axes" in attributes or attributes["keep_aspect_ratio_policy"] != "stretch":
        return (None,) * len(dims)
    if len(inputs) > 3 and inputs[3] is not None:
        return tuple(constant_ints(inputs[3]) or (None,) * len(dims))
    scales = inputs[2] if len(inputs) > 2 else None
    if scales is None or scales.const_value is None:
        return (None,) * len(dims)
    return tuple(
        int(np.floor(d * float(scale))) if isinstance(d, int) else _scaled(d, float(scale))
        for d, scale in zip(dims, scales.const_value.numpy(), strict=True)
    )


def _scaled(size: Dim, scale: float) -> Dim:
    return product_dim([size, int(scale)]) if scale.is_integer() else None


def _windows(sizes: Dims, filter_sizes: Sequence[Dim], attributes: Attributes) -> Dims:
    """Return the number of windows along each spatial axis."""
    rank = len(sizes)
    if attributes["auto_pad"] != "NOTSET" or attributes.get("ceil_mode"):
        return (None,) * rank
    ones, pads = [1] * rank, attributes.get("pads", [0] * (2 * rank))
    strides, dilations = (attributes.get(name, ones) for name in ("strides", "dilations"))
    axes = zip(sizes, filter_sizes, pads[:rank], pads[rank:], strides, dilations, strict=True)
    return tuple(
        _count(size, before + after - (taps - 1) * dilation, stride)
        if isinstance(taps, int)
        else None
        for size, taps, before, after, stride, dilation in axes
    )


def _count(size: Dim, room: int, stride: int) -> Dim:
    """Return the output size ``(size + room - 1) // stride + 1``, the length of a slice."""
    if isinstance(size, int):
        return (size + room - 1) // stride + 1
    if stride == 1:
        return sum_dim([size, room])
    whole = sum_dim([size, max(room, 0)])
    return slice_dim(whole, max(-room, 0), _END, stride)


def _equal_channels(inputs: Shapes, attributes: Attributes) -> Pairs:
    """Yield the sizes of the channels, filters and bias of Conv."""
    images, filters, *bias = inputs
    if images and filters:
        yield images[1], product_dim([filters[1], attributes["group"]])
        if bias and bias[0]:
            yield filters[0], bias[0][0]


def _equal_transposed_channels(inputs: Shapes, attributes: Attributes) -> Pairs:
    """Yield the sizes of the channels, filters and bias of ConvTranspose."""
    images, filters, *bias = inputs
    if images and filters:
        yield images[1], filters[0]
        if bias and bias[0]:
            yield product_dim([filters[1], attributes["group"]]), bias[0][0]


def _equal_heads(inputs: Shapes, attributes: Attributes) -> Pairs:
    """Yield the batches, and the numbers of keys and values; PyTensor repeats a batch of one."""
    q, k, v = inputs[:3]
    past = inputs[4:]
    batches = [dims[0] for dims in (q, k, v, *past) if dims and dims[0] != 1]
    yield from ((batches[0], size) for size in batches[1:])
    length = 1 if attributes.get("q_num_heads") else 2
    if k and v:
        yield k[length], v[length]
    if len(past) > 1 and past[0] and past[1]:
        yield past[0][2], past[1][2]


_POOL = Operator(shape=_pooling)
_GLOBAL_POOL = Operator(shape=_global_pooling)
_NORM = Operator(shape=same_as_first)
_RECURRENT = Operator(
    shape=_recurrence, equal=by_letters("tbi", "dgi", "dgh", "d.", "b", "dbh", "dbh", "d.")
)

OPERATORS: dict[str, Operator] = {
    "Attention": Operator(equal=_equal_heads),
    "AveragePool": _POOL,
    "BatchNormalization": Operator(shape=same_as_first, equal=by_letters(".c", "c", "c", "c", "c")),
    "Conv": Operator(shape=_convolution, equal=_equal_channels),
    "ConvTranspose": Operator(shape=_transposed_convolution, equal=_equal_transposed_channels),
    "ConvInteger": Operator(shape=_convolution),
    "DequantizeLinear": Operator(shape=same_as_first, finite=slice(1, 2)),
    "Dropout": Operator(is_random=True),
    "GlobalAveragePool": _GLOBAL_POOL,
    "GlobalLpPool": _GLOBAL_POOL,
    "GlobalMaxPool": _GLOBAL_POOL,
    "GRU": _RECURRENT,
    # From opset 21 on; the operator is not emitted for older ones.
    "GroupNormalization": Operator(shape=same_as_first, equal=by_letters(".c", "c", "c")),
    "InstanceNormalization": Operator(shape=same_as_first, equal=by_letters(".c", "c", "c")),
    "LayerNormalization": _NORM,
    "LogSoftmax": Operator(shape=same_as_first, cost="function"),
    "LpPool": _POOL,
    "LSTM": _RECURRENT,
    "MaxPool": _POOL,
    "MaxUnpool": Operator(equal=same_shapes(0, 1)),
    "NonMaxSuppression": Operator(equal=by_letters("bn4", "b.n"), positions=ALL),
    "QLinearConv": Operator(shape=_quantized_convolution),
    "Resize": Operator(shape=_resizing, is_sized_by_values=True),
    "RMSNormalization": _NORM,
    "RNN": _RECURRENT,
    "RotaryEmbedding": _NORM,
    "Softmax": Operator(shape=same_as_first, cost="function", sign=NONE),
}
