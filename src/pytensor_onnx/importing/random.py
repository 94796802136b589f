"""Draws of random numbers: by PyTensor's generators, or from a state that is an operand.

Operators with a state are those of the ONNX draft of 6 July 2026. They are in the standard domain,
with the dtype as an attribute, or in the domains in which the catalogue has them, one for each
dtype. Their numbers are those of `pytensor_onnx.prng`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import prng
from pytensor_onnx.functions.random.ciphers import normal_numbers, uniform_numbers
from pytensor_onnx.importing.registry.known_values import sizes
from pytensor_onnx.importing.registry.narrow_types import narrow_type, rounded
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
    state: TensorVariable | None = None,
    *,
    shape: Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: int = _FLOAT,
    seed: float | None = None,
) -> TensorVariable | list[TensorVariable]:
    """Draw uniform numbers, from a state in the draft."""
    if state is not None:
        return uniform_of_state(state, tuple(shape), low, high, type_of(dtype, None, None))
    return uniform(tuple(shape), _dtype(dtype), low, high, seed)


@onnx_import("RandomUniformLike")
def random_uniform_like(
    x: TensorVariable,
    state: TensorVariable | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: int | None = None,
    seed: float | None = None,
) -> TensorVariable | list[TensorVariable]:
    """Draw uniform numbers, as many as an array has elements, from a state in the draft."""
    if state is not None:
        return uniform_of_state(state, sizes(x), low, high, type_of(dtype, x, None))
    return uniform(sizes(x), _dtype(dtype, x), low, high, seed)


@onnx_import("RandomNormal")
def random_normal(
    state: TensorVariable | None = None,
    *,
    shape: Sequence[int],
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int = _FLOAT,
    seed: float | None = None,
) -> TensorVariable | list[TensorVariable]:
    """Draw normal numbers, from a state in the draft."""
    if state is not None:
        return normal_of_state(state, tuple(shape), mean, scale, type_of(dtype, None, None))
    return draw(pt.random.normal, seed, mean, scale, size=tuple(shape)).astype(_dtype(dtype))


@onnx_import("RandomNormalLike")
def random_normal_like(
    x: TensorVariable,
    state: TensorVariable | None = None,
    *,
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int | None = None,
    seed: float | None = None,
) -> TensorVariable | list[TensorVariable]:
    """Draw normal numbers, as many as an array has elements, from a state in the draft."""
    if state is not None:
        return normal_of_state(state, sizes(x), mean, scale, type_of(dtype, x, None))
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


DRAFT_DOMAIN = "pytensor.draft_2026_07_06"
"""Domain of the draft's operators, and beginning of the domains of dtypes."""
_BFLOAT16 = ir.DataType.BFLOAT16
_DTYPES = (
    *("float16", "float32", "float64", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)


def uniform_of_state(
    state: TensorVariable, shape: Any, low: Any, high: Any, dtype: ir.DataType
) -> list[TensorVariable]:
    """Return uniform numbers of a type, and the next state."""
    if dtype.is_floating_point():
        low, high = 0.0 if low is None else float(low), 1.0 if high is None else float(high)
    else:
        low, high = 0 if low is None else int(low), 2 if high is None else int(high)
    if dtype == ir.DataType.UINT64:
        # Attributes are int64: bounds from 2**63 on are given modulo 2**64.
        low, high = low % 2**64, high % 2**64
    if dtype == ir.DataType.BOOL:
        numbers, after = prng.random_integers(state, shape, low, high, "uint8")
        return [numbers.astype("bool"), after]
    if dtype == _BFLOAT16:
        numbers, after = _of_bfloat16(uniform_numbers, state, shape)
        least, room = _narrow(low), _narrow(_narrow(high) - _narrow(low))
        return [pt.maximum(_narrow(_narrow(numbers * room) + least), least), after]
    draw: Any = prng.random_uniform if dtype.is_floating_point() else prng.random_integers
    return list(draw(state, shape, low, high, dtype_name(dtype)))


def normal_of_state(
    state: TensorVariable, shape: Any, mean: float, scale: float, dtype: ir.DataType
) -> list[TensorVariable]:
    """Return normal numbers of a type, and the next state."""
    if dtype == _BFLOAT16:
        numbers, after = _of_bfloat16(normal_numbers, state, shape)
        scaled = _narrow(_narrow(numbers) * _narrow(scale))
        return [_narrow(scaled + _narrow(mean)), after]
    return list(prng.random_normal(state, shape, mean, scale, dtype_name(dtype)))


def _of_bfloat16(numbers: Any, state: TensorVariable, shape: Any) -> list[TensorVariable]:
    """Return numbers in arrays of float32, the next state."""
    after, key = prng.split_prng(state)
    sizes_ = [pt.as_tensor(size, dtype="int64") for size in shape]
    n = pt.prod(pt.stack(sizes_)) if sizes_ else pt.constant(np.int64(1))
    return [numbers("bfloat16")(key, n).reshape(sizes_, ndim=len(sizes_)), after]


def _narrow(x: Any) -> TensorVariable:
    return rounded(pt.as_tensor(x).astype("float32"), _BFLOAT16)


def type_of(number: int | None, x: TensorVariable | None, own: ir.DataType | None) -> ir.DataType:
    """Return the type of a draw: of the domain, of an attribute, of an array, or float32."""
    if own is not None or number:
        return own or ir.DataType(number or 0)
    if x is None:
        return ir.DataType.FLOAT
    return narrow_type(x) or ir.DataType.from_numpy(np.dtype(x.type.dtype))


def split(
    state: TensorVariable, data: TensorVariable | None = None, *, outputs: int
) -> list[TensorVariable]:
    """Split a state into as many as a node has results."""
    if data is None:
        return prng.split_prng(state, outputs)
    return prng.split_prng(state, data=pt.specify_shape(data, (outputs,)))


def _register(domain: str, own: ir.DataType | None) -> None:
    """Register the operators of a domain, whose numbers have a type of their own or any."""
    onnx_import("InitPRNG", domain=domain)(prng.init_prng)
    onnx_import("SplitPRNG", "SplitPRNGByData", domain=domain)(split)
    if not domain:
        return

    @onnx_import("RandomUniform", domain=domain)
    def random_uniform(
        state: TensorVariable,
        *,
        shape: Sequence[int],
        low: Any = None,
        high: Any = None,
        dtype: int | None = None,
    ) -> list[TensorVariable]:
        return uniform_of_state(state, tuple(shape), low, high, type_of(dtype, None, own))

    @onnx_import("RandomUniformLike", domain=domain)
    def random_uniform_like(
        x: TensorVariable,
        state: TensorVariable,
        *,
        low: Any = None,
        high: Any = None,
        dtype: int | None = None,
    ) -> list[TensorVariable]:
        return uniform_of_state(state, sizes(x), low, high, type_of(dtype, x, own))

    @onnx_import("RandomNormal", domain=domain)
    def random_normal(
        state: TensorVariable,
        *,
        shape: Sequence[int],
        mean: float = 0.0,
        scale: float = 1.0,
        dtype: int | None = None,
    ) -> list[TensorVariable]:
        return normal_of_state(state, tuple(shape), mean, scale, type_of(dtype, None, own))

    @onnx_import("RandomNormalLike", domain=domain)
    def random_normal_like(
        x: TensorVariable,
        state: TensorVariable,
        *,
        mean: float = 0.0,
        scale: float = 1.0,
        dtype: int | None = None,
    ) -> list[TensorVariable]:
        return normal_of_state(state, sizes(x), mean, scale, type_of(dtype, x, own))


_register("", None)
_register(DRAFT_DOMAIN, None)
_register(f"{DRAFT_DOMAIN}.bfloat16", _BFLOAT16)
for _name in _DTYPES:
    _register(f"{DRAFT_DOMAIN}.{_name}", ir.DataType.from_numpy(np.dtype(_name)))
