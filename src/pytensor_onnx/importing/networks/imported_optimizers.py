"""Steps of optimisers, of the preview of ONNX's training domain."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import like
from pytensor_onnx.importing.registry.operator_imports import onnx_import

_TRAINING = "ai.onnx.preview.training"

type Groups = list[tuple[TensorVariable, ...]]


def _groups(operands: tuple[TensorVariable, ...], kinds: int) -> Groups:
    """Return the arrays of each parameter: the file has all of one kind after the other."""
    count = len(operands) // kinds
    rows = [operands[i * count : (i + 1) * count] for i in range(kinds)]
    return list(zip(*rows, strict=True))


def _in_file_order(results: Groups) -> list[TensorVariable]:
    return [variable for kind in zip(*results, strict=True) for variable in kind]


@onnx_import("Adagrad", domain=_TRAINING)
def adagrad(
    rate: TensorVariable,
    count: TensorVariable,
    *operands: TensorVariable,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> list[TensorVariable]:
    """Divide gradients by the root of the sum of their squares so far."""
    results: Groups = []
    for x, g, h in _groups(operands, 3):
        step = (rate / (1 + count * decay_factor)).astype(x.type.dtype)
        gradient = like(x, norm_coefficient) * x + g
        total = h + gradient * gradient
        results.append((x - step * gradient / (pt.sqrt(total) + like(x, epsilon)), total))
    return _in_file_order(results)


@onnx_import("Adam", domain=_TRAINING)
def adam(
    rate: TensorVariable,
    count: TensorVariable,
    *operands: TensorVariable,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> list[TensorVariable]:
    """Divide means of gradients by the root of means of their squares."""
    results: Groups = []
    for x, g, v, h in _groups(operands, 4):
        gradient = like(x, norm_coefficient) * x + g
        mean = like(x, alpha) * v + like(x, 1 - alpha) * gradient
        square = like(x, beta) * h + like(x, 1 - beta) * gradient * gradient
        correction = pt.sqrt(1 - pt.power(beta, count)) / (1 - pt.power(alpha, count))
        step = pt.switch(count > 0, rate * correction, rate).astype(x.type.dtype)
        moved = x - step * mean / (pt.sqrt(square) + like(x, epsilon))
        results.append((like(x, 1 - norm_coefficient_post) * moved, mean, square))
    return _in_file_order(results)


@onnx_import("Momentum", domain=_TRAINING)
def momentum(
    rate: TensorVariable,
    count: TensorVariable,
    *operands: TensorVariable,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> list[TensorVariable]:
    """Step along decaying sums of gradients, or by Nesterov ahead of them."""
    results: Groups = []
    for x, g, v in _groups(operands, 3):
        gradient = like(x, norm_coefficient) * x + g
        factor = pt.switch(count > 0, beta, 1.0).astype(x.type.dtype)
        total = like(x, alpha) * v + factor * gradient
        along = gradient + like(x, alpha) * total if mode == "nesterov" else total
        results.append((x - rate.astype(x.type.dtype) * along, total))
    return _in_file_order(results)
