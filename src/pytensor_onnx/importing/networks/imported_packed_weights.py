"""Weights of few bits in products, embeddings and mixtures of experts, of ONNX Runtime's domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.networks.imported_activations import relu
from pytensor_onnx.importing.products import matmul
from pytensor_onnx.importing.registry.known_values import like, size, static
from pytensor_onnx.importing.registry.narrow_types import narrow_type
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Optional = TensorVariable | None

_FLOAT4 = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], dtype="float32")
_NORMAL4 = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    dtype="float32",
)
_BY_TYPE = (np.concatenate([_FLOAT4, -_FLOAT4]), _NORMAL4)
"""Numbers of four bits: floats with a sign, and quantiles of the normal distribution.

Dettmers et al. (2023), QLoRA: Efficient finetuning of quantized LLMs, appendix E.
"""


@onnx_import("MatMulNBits", domain=MICROSOFT)
def matmul_of_few_bits(
    a: TensorVariable,
    b: TensorVariable,
    scales: TensorVariable,
    zeros: Optional = None,
    index: Optional = None,
    bias: Optional = None,
    *,
    K: int,  # noqa: N803  (name of the attribute)
    N: int,  # noqa: N803
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> TensorVariable:
    """Multiply with columns of 2, 4 or 8 bits, which have a scale for each block of rows."""
    if bits not in (2, 4, 8) or index is not None or weight_prepacked:
        raise UnsupportedCase("its weights are of other than 2, 4 or 8 bits, or in another order")
    blocks = -(-K // block_size)
    levels = _unpacked(static(b, "its weights"), bits).reshape(N, blocks, block_size)
    points: Any = np.float32(2 ** (bits - 1))
    if zeros is not None:
        given = static(zeros, "its zero points")
        packed = given.dtype == np.uint8
        points = _unpacked(given.reshape(N, -1), bits)[:, :blocks] if packed else given
        points = points.reshape(N, blocks, 1).astype("float32")
    numbers = pt.constant(levels.astype("float32") - points)
    columns = (numbers.astype(a.type.dtype) * scales.reshape((N, blocks, 1))).reshape((N, -1))
    product = matmul(a, columns[:, :K].T)
    return product if bias is None else product + bias


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of 2, 4 or 8 bits along the last axis of bytes, low ones first.

    Examples
    --------
    >>> _unpacked(np.array([[0x21, 0x43]], np.uint8), 4)
    array([[1, 2, 3, 4]], dtype=uint8)
    """
    parts = [packed >> shift & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(*packed.shape[:-1], -1)


@onnx_import("MatMulBnb4", domain=MICROSOFT)
def matmul_of_four_bits(
    a: TensorVariable,
    b: TensorVariable,
    largest: TensorVariable,
    *,
    K: int,  # noqa: N803  (name of the attribute)
    N: int,  # noqa: N803
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,  # noqa: N803
) -> TensorVariable:
    """Multiply with a matrix of floats of four bits; each block has its largest number."""
    if not transB:
        raise UnsupportedCase(
            "ONNX Runtime leaves results of its form for gradients (transB=0) empty"
        )
    packed = static(b, "its weights")
    bits = np.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)[: N * K]
    numbers = pt.constant(_BY_TYPE[quant_type][bits]).astype(a.type.dtype)
    weights = (numbers * pt.repeat(largest, block_size)[: N * K]).reshape((N, K))
    return matmul(a, weights.T)


@onnx_import("GatherBlockQuantized", domain=MICROSOFT)
def gather_of_blocks(
    data: TensorVariable,
    indices: TensorVariable,
    scales: TensorVariable,
    zeros: Optional = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> TensorVariable:
    """Take parts of an array of few bits, whose blocks have scales; none lies outside."""
    levels, middle = static(data, "its data"), 0
    is_packed = data.type.dtype == "uint8" and narrow_type(data) is None
    if is_packed:
        levels, middle = _unpacked(levels, bits), 2 ** (bits - 1)
    axis = quantize_axis % levels.ndim
    length = levels.shape[axis]
    points: Any = np.float32(middle)
    if zeros is not None:
        given = static(zeros, "its zero points")
        given = _unpacked(given, bits) if is_packed else given
        points = _of_elements(given, block_size, axis, length).astype("float32")
    numbers = pt.constant(levels.astype("float32") - points).astype(scales.type.dtype)
    before = (slice(None),) * axis
    of_elements = pt.repeat(scales, block_size or length, axis=axis)[(*before, slice(length))]
    table, place = numbers * of_elements, gather_axis % levels.ndim
    count = levels.shape[place]
    inside = (indices >= -count) & (indices < count)
    taken = table.take(pt.switch(inside, indices, 0), axis=place)
    mask = inside.dimshuffle(
        *["x"] * place, *range(indices.type.ndim), *["x"] * (levels.ndim - place - 1)
    )
    return pt.switch(mask, taken, like(taken, 0))


def _of_elements(values: np.ndarray, block_size: int, axis: int, length: int) -> np.ndarray:
    return np.repeat(values, block_size, axis=axis).take(range(length), axis=axis)


_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "gelu": lambda x: nn.gelu(x, approximate="tanh"),
    "identity": lambda x: x,
    "relu": relu,
    "silu": nn.silu,
}


class Experts(NamedTuple):
    """Layers of experts, and the activation between them.

    Attributes
    ----------
    layers
        Weights (expert, output, input) and biases of the first, second and third layer.
    activation
        Name of the activation.
    gated_by
        Factor within the gate of swiglu, summand of its other part, and limit of both.
    is_interleaved
        Whether the two parts of swiglu alternate in the first layer.
    """

    layers: Sequence[tuple[Optional, Optional]]
    activation: str
    gated_by: tuple[float, float, float]
    is_interleaved: bool

    def results(self, rows: TensorVariable) -> TensorVariable:
        """Return the results (expert, row, output) of all experts."""
        (first, of_first), (second, of_second), (third, of_third) = self.layers
        hidden = _of_experts(rows, first, of_first)
        if self.activation != "swiglu":
            if third is not None or self.activation not in _ACTIVATIONS:
                raise UnsupportedCase(f"its experts have the activation {self.activation}")
            return _of_experts(_ACTIVATIONS[self.activation](hidden), second, of_second)
        if third is not None:
            gate, linear = hidden, _of_experts(rows, third, of_third)
        elif self.is_interleaved:
            gate, linear = hidden[..., ::2], hidden[..., 1::2]
        else:
            half = size(hidden, 2) // 2
            gate, linear = hidden[..., :half], hidden[..., half:]
        factor, summand, limit = self.gated_by
        if np.isfinite(limit):
            gate = pt.minimum(gate, like(gate, limit))
            linear = pt.clip(linear, like(linear, -limit), like(linear, limit))
        gate = gate * nn.sigmoid(like(gate, factor) * gate)
        return _of_experts(gate * (linear + like(linear, summand)), second, of_second)


def _of_experts(x: TensorVariable, weights: Optional, bias: Optional) -> TensorVariable:
    """Return the products of rows, or of those of each expert, with the matrices of experts."""
    assert weights is not None
    y = pt.matmul(x, weights.mT)
    return y if bias is None else y + bias[:, None, :]


def _mixed(
    x: TensorVariable,
    experts: Experts,
    router: TensorVariable,
    shares: Optional,
    k: int,
    is_normalized: bool | int,
) -> TensorVariable:
    """Sum the results of the k best experts of each row, weighted by their shares.

    Fedus, Zoph and Shazeer (2022), Switch transformers, section 2.1. All experts are computed, and
    those that are not among the best have the weight zero.
    """
    shares = nn.softmax(router, axis=1) if shares is None else shares
    rank = pt.argsort(
        pt.argsort(disconnected_grad(-router), axis=1, stable=True), axis=1, stable=True
    )
    shares = pt.switch(rank < k, shares, like(shares, 0))
    if is_normalized:
        shares = shares / shares.sum(axis=1, keepdims=True)
    results = experts.results(x.reshape((-1, size(x, -1))))
    return (shares.T[:, :, None] * results).sum(axis=0).reshape(x.shape)


@onnx_import("MoE", domain=MICROSOFT)
def mixture_of_experts(
    x: TensorVariable,
    router: TensorVariable,
    first: TensorVariable,
    first_bias: Optional,
    second: TensorVariable,
    second_bias: Optional = None,
    third: Optional = None,
    third_bias: Optional = None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    k: int = 1,
    normalize_routing_weights: int = 0,
    swiglu_fusion: int = 0,
    swiglu_limit: float = np.inf,
    swiglu_limit_after_activation: int = 0,
    use_sparse_mixer: int = 0,
) -> TensorVariable:
    """Sum the results of the best experts of each row, weighted by their probabilities."""
    if use_sparse_mixer or swiglu_limit_after_activation:
        raise UnsupportedCase("it routes by a sparse mixer, or clips after the activation")
    layers = ((first, first_bias), (second, second_bias), (third, third_bias))
    gated_by = (activation_alpha, activation_beta, swiglu_limit)
    experts = Experts(layers, activation_type, gated_by, swiglu_fusion == 1)
    return _mixed(x, experts, router, None, k, normalize_routing_weights)


@onnx_import("QMoE", domain=MICROSOFT)
def quantized_mixture_of_experts(
    x: TensorVariable,
    router: TensorVariable,
    first: TensorVariable,
    first_scales: TensorVariable,
    first_bias: Optional,
    second: TensorVariable,
    second_scales: TensorVariable,
    second_bias: Optional = None,
    third: Optional = None,
    third_scales: Optional = None,
    third_bias: Optional = None,
    first_zeros: Optional = None,
    second_zeros: Optional = None,
    third_zeros: Optional = None,
    shares: Optional = None,
    *,
    accuracy_level: int = 0,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    block_size: int = 0,
    expert_weight_bits: int = 4,
    k: int = 1,
    normalize_routing_weights: int = 0,
    quant_type: str = "int",
    swiglu_fusion: int = 0,
    swiglu_limit: float = np.inf,
    swiglu_limit_after_activation: int = 0,
    use_sparse_mixer: int = 0,
    weights_prepacked: int = -1,
) -> TensorVariable:
    """Sum the results of the best experts, whose weights have 2, 4 or 8 bits."""
    if use_sparse_mixer or swiglu_limit_after_activation:
        raise UnsupportedCase("it routes by a sparse mixer, or clips after the activation")
    if quant_type != "int" or expert_weight_bits not in (2, 4, 8) or weights_prepacked > 0:
        raise UnsupportedCase("its weights are no integers of 2, 4 or 8 bits, or are prepacked")

    def dequantized(weights: Optional, scales: Optional, zeros: Optional) -> Optional:
        if weights is None or scales is None:
            return None
        levels = _unpacked(static(weights, "its weights"), expert_weight_bits)
        blocks = levels.shape[2] // (block_size or levels.shape[2])
        points: Any = np.float32(2 ** (expert_weight_bits - 1))
        if zeros is not None:
            given = _unpacked(static(zeros, "its zero points"), expert_weight_bits)
            given = given.reshape(*levels.shape[:1], -1) if scales.type.ndim == 2 else given
            given = given[..., : blocks if scales.type.ndim == 3 else levels.shape[1]]
            points = given.reshape(*levels.shape[:2], blocks, 1).astype("float32")
        parts = levels.reshape(*levels.shape[:2], blocks, -1).astype("float32") - points
        numbers = pt.constant(parts).astype(x.type.dtype)
        return (numbers * scales.reshape((*levels.shape[:2], blocks, 1))).reshape(levels.shape)

    layers = (
        (dequantized(first, first_scales, first_zeros), first_bias),
        (dequantized(second, second_scales, second_zeros), second_bias),
        (dequantized(third, third_scales, third_zeros), third_bias),
    )
    gated_by = (activation_alpha, activation_beta, swiglu_limit)
    experts = Experts(layers, activation_type, gated_by, swiglu_fusion == 1)
    # The softmax is that of the best experts here.
    is_normalized = normalize_routing_weights or shares is None
    return _mixed(x, experts, router, shares, k, is_normalized)
