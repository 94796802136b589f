"""Draws of random numbers, by PyTensor's generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import sizes
from pytensor_onnx.importing.registry.operator_imports import dtype_name, onnx_import

_FLOAT = 1


def generator(seed: float | None) -> SharedVariable:
    """Return a generator of its own, for one node."""
    value = np.random.default_rng(None if seed is None else abs(hash(float(seed))))
    return pytensor.shared(value)


def draw(distribution: Any, seed: float | None, *parameters: Any, size: Any) -> TensorVariable:
    """Draw from a distribution, and advance the generator in every call."""
    rng = generator(seed)
    next_rng, draws = distribution(*parameters, size=size, rng=rng).owner.outputs
    rng.default_update = next_rng
    return draws


def uniform(
    shape: Any, dtype: str, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> TensorVariable:
    """Draw uniform numbers of a dtype."""
    return draw(pt.random.uniform, seed, low, high, size=shape).astype(dtype)


def _dtype(number: int | None, x: TensorVariable | None = None) -> str:
    if number is None and x is not None:
        return x.type.dtype
    return dtype_name(ir.DataType(number or _FLOAT))


@onnx_import("RandomUniform")
def random_uniform(
    *,
    shape: Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: int = _FLOAT,
    seed: float | None = None,
) -> TensorVariable:
    """Draw uniform numbers."""
    return uniform(tuple(shape), _dtype(dtype), low, high, seed)


@onnx_import("RandomUniformLike")
def random_uniform_like(
    x: TensorVariable,
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: int | None = None,
    seed: float | None = None,
) -> TensorVariable:
    """Draw uniform numbers, as many as an array has elements."""
    return uniform(sizes(x), _dtype(dtype, x), low, high, seed)


@onnx_import("RandomNormal")
def random_normal(
    *,
    shape: Sequence[int],
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int = _FLOAT,
    seed: float | None = None,
) -> TensorVariable:
    """Draw normal numbers."""
    return draw(pt.random.normal, seed, mean, scale, size=tuple(shape)).astype(_dtype(dtype))


@onnx_import("RandomNormalLike")
def random_normal_like(
    x: TensorVariable,
    *,
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int | None = None,
    seed: float | None = None,
) -> TensorVariable:
    """Draw normal numbers, as many as an array has elements."""
    draws = draw(pt.random.normal, seed, mean, scale, size=sizes(x))
    return draws.astype(_dtype(dtype, x))


@onnx_import("Bernoulli")
def bernoulli(
    p: TensorVariable, *, dtype: int | None = None, seed: float | None = None
) -> TensorVariable:
    """Draw one with a probability, else zero."""
    return draw(pt.random.bernoulli, seed, p, size=sizes(p)).astype(_dtype(dtype, p))


@onnx_import("Multinomial")
def multinomial(
    logits: TensorVariable, *, sample_size: int = 1, dtype: int = 6, seed: float | None = None
) -> TensorVariable:
    """Draw categories from unnormalised logarithms of probabilities."""
    p = pt.special.softmax(logits.astype("float64"), axis=-1)
    draws = draw(pt.random.categorical, seed, p[:, None], size=(p.shape[0], sample_size))
    return draws.astype(_dtype(dtype))
