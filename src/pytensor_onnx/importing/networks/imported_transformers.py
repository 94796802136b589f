"""Fused layers, norms and embeddings of ONNX Runtime, of the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.imported_activations import (
    elu,
    hard_sigmoid,
    leaky_relu,
    relu,
    rms_norm,
)
from pytensor_onnx.importing.networks.imported_windows import (
    channels_first,
    conv,
    with_channels_last,
)
from pytensor_onnx.importing.products import gemm, matmul
from pytensor_onnx.importing.registry.known_values import like, size
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Optional = TensorVariable | None
type Ints = Sequence[int] | None

_PARAMETERS = {"LeakyRelu": ("alpha",), "Elu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "Elu": elu,
    "HardSigmoid": hard_sigmoid,
    "LeakyRelu": leaky_relu,
    "Relu": relu,
    "Sigmoid": nn.sigmoid,
    "Tanh": pt.tanh,
}


def _activated(x: TensorVariable, name: str, numbers: Sequence[float]) -> TensorVariable:
    """Apply an activation, with its parameters in their order."""
    if name == "":
        return x
    if name == "Clip" and len(numbers) == 2:
        return pt.clip(x, *(like(x, number) for number in numbers))
    if name not in _ACTIVATIONS:
        raise UnsupportedCase(f"its activation is {name}")
    keywords = zip(_PARAMETERS.get(name, ()), numbers, strict=False)
    return _ACTIVATIONS[name](x, **dict(keywords))


@onnx_import("FusedConv", domain=MICROSOFT)
def fused_conv(
    x: TensorVariable,
    filters: TensorVariable,
    bias: Optional = None,
    summand: Optional = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> TensorVariable:
    """Correlate images with filters, add an array, and apply an activation."""
    y = conv(
        x,
        filters,
        bias,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return _activated(y if summand is None else y + summand, activation, activation_params)


@onnx_import("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    a: TensorVariable,
    b: TensorVariable,
    c: Optional = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803  (name of the attribute)
    transB: int = 0,  # noqa: N803
) -> TensorVariable:
    """Multiply two matrices, add a third, and apply an activation."""
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    numbers = [v for v in (activation_alpha, activation_beta) if v is not None]
    return _activated(y, activation, numbers)


@onnx_import("SimplifiedLayerNormalization")
@onnx_import("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_norm(
    x: TensorVariable,
    scale: TensorVariable,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Divide by the root mean square, which the file may also name, as its inverse."""
    axes = tuple(range(axis % x.type.ndim, x.type.ndim))
    inverse = 1 / pt.sqrt(pt.mean(pt.sqr(x), axis=axes, keepdims=True) + like(x, epsilon))
    return [rms_norm(x, scale, axis=axis, epsilon=epsilon), inverse][:outputs]


@onnx_import("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    x: TensorVariable,
    skip: TensorVariable,
    gamma: TensorVariable,
    bias: Optional = None,
    *,
    epsilon: float = 1e-12,
    outputs: int = 1,
) -> list[TensorVariable | None]:
    """Add an array and a bias, and divide the sum by its root mean square."""
    total = x + skip if bias is None else x + skip + bias
    return [rms_norm(total, gamma, epsilon=epsilon), None, None, total][:outputs]


@onnx_import("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    words: TensorVariable,
    segments: Optional,
    of_words: TensorVariable,
    of_positions: TensorVariable,
    of_segments: Optional,
    gamma: TensorVariable,
    beta: TensorVariable,
    mask: Optional = None,
    positions: Optional = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 1,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Sum the embeddings of words, positions and segments, and normalise the sum."""
    places = of_positions[: size(words, 1)] if positions is None else of_positions[positions]
    total = of_words[words] + places
    if segments is not None and of_segments is not None:
        total = total + of_segments[segments]
    lengths = pt.zeros((size(words, 0),), "int32") if mask is None else mask.sum(axis=1)
    return [
        nn.layer_norm(total, gamma, beta, -1, epsilon),
        lengths.astype("int32"),
        total,
    ][:outputs]


@onnx_import("BiasAdd", domain=MICROSOFT)
def bias_add(x: TensorVariable, bias: TensorVariable, skip: TensorVariable) -> TensorVariable:
    """Add a bias and an array."""
    return x + bias + skip


@onnx_import("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(x: TensorVariable, bias: TensorVariable) -> TensorVariable:
    """Multiply the first half of the columns with the activation of the second."""
    total, half = x + bias, size(x, -1) // 2
    return total[..., :half] * nn.gelu(total[..., half:])


@onnx_import("GroupNorm", domain=MICROSOFT)
def group_norm_of_last(
    x: TensorVariable,
    gamma: TensorVariable,
    beta: TensorVariable,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> TensorVariable:
    """Normalise groups of channels, which are the last axis, and apply SiLU if asked for."""
    images = channels_first(x) if channels_last else x
    y = nn.group_norm(images, groups, gamma.astype(x.dtype), beta.astype(x.dtype), epsilon)
    y = with_channels_last(y) if channels_last else y
    return nn.silu(y) if activation else y


@onnx_import("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(
    x: TensorVariable,
    gamma: TensorVariable,
    beta: TensorVariable,
    skip: TensorVariable,
    bias: Optional = None,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
    outputs: int = 1,
) -> list[TensorVariable]:
    """Add an array and a bias, and normalise groups of channels of the sum."""
    if skip.type.ndim == 2:
        skip = skip[:, None, None, :] if channels_last else skip[:, :, None, None]
    if bias is not None:
        skip = skip + (bias if channels_last else bias[:, None, None])
    total = x + skip
    settings: Any = {"activation": activation, "channels_last": channels_last, "groups": groups}
    y = group_norm_of_last(total, gamma, beta, epsilon=epsilon, **settings)
    return [y, total][:outputs]


@onnx_import("GatedRMSNorm", domain=MICROSOFT)
def gated_rms_norm(
    x: TensorVariable,
    scale: TensorVariable,
    gate: TensorVariable,
    *,
    activation: str = "silu",
    epsilon: float = 1e-5,
) -> TensorVariable:
    """Divide groups of columns by their root mean square, and multiply them by a gate."""
    groups = x.reshape((*x.shape[:-1], -1, size(scale, 0)))
    y = rms_norm(groups, scale, epsilon=epsilon).reshape(x.shape)
    return y * (nn.sigmoid(gate) if activation == "sigmoid" else nn.silu(gate))


@onnx_import("ScaledSiLU", domain=MICROSOFT)
def scaled_silu(x: TensorVariable, scale: Optional = None, *, alpha: float = 1.0) -> TensorVariable:
    """Apply SiLU to a multiple of an array."""
    factor = like(x, alpha) if scale is None else scale.reshape(()).astype(x.type.dtype)
    return nn.silu(x * factor)


@onnx_import("GatedAdd", domain=MICROSOFT)
def gated_add(
    x: TensorVariable, y: TensorVariable, gate: TensorVariable, weights: Optional = None
) -> TensorVariable:
    """Add an array, multiplied by a gate for each row."""
    if weights is not None:
        gate = nn.sigmoid(matmul(gate, weights))
    return x + y * gate


@onnx_import("SampleOp", domain=MICROSOFT)
def sample_operator(x: TensorVariable) -> TensorVariable:
    """Return the operand."""
    return x
