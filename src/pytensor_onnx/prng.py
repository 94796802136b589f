"""Stateless, splittable random numbers: those of the ONNX draft of 6 July 2026, and of JAX.

A state is an int64 vector of two words of 32 bits, a key of Threefry-2x32 with 20 rounds (Salmon et
al., SC'11). Whatever draws takes a state and returns the next one; nothing is hidden. A seed gives
the numbers of `jax.random` in every mode of PyTensor and in exported files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.functions.random.ciphers import (
    integers,
    normal_numbers,
    philox_4x32,
    scaled,
    threefry_2x32,
    uniform_numbers,
    word,
    words_of,
)
from pytensor_onnx.ops.random.draws import StandardGraph

__all__ = [
    "Drawn",
    "init_prng",
    "philox",
    "random_integers",
    "random_normal",
    "random_uniform",
    "split_prng",
]

_DTYPES = ("float16", "float32", "float64")


class Drawn(NamedTuple):
    """Numbers and the state for further draws.

    Attributes
    ----------
    values
        The numbers.
    state
        The next state.
    """

    values: TensorVariable
    state: TensorVariable


def init_prng(seed: Any) -> TensorVariable:
    """Return the first state of a seed (operator ``InitPRNG``), as ``jax.random.key`` makes it.

    Parameters
    ----------
    seed
        An integer, whose 64 bits are the words of the state.

    Examples
    --------
    >>> init_prng(42).eval(mode="FAST_COMPILE")
    array([ 0, 42])
    """
    number = pt.as_tensor(seed, dtype="int64")
    if number.type.ndim:
        raise ArgumentError(f"a seed is one integer; got an array of {number.type.ndim} axes")
    words = pt.stack(words_of(number.astype("uint64")))
    return words.astype("int64")


def split_prng(state: Any, count: int = 2, *, data: Any = None) -> list[TensorVariable]:
    """Return states of independent streams (operator ``SplitPRNG``).

    Parameters
    ----------
    state
        The state, which is not to be used again.
    count
        Number of states; they are those of ``jax.random.split``.
    data
        Integers in place of 0, 1, …: the state of each is that of ``jax.random.fold_in``. Different
        integers give different states.

    Examples
    --------
    >>> first, second = split_prng(init_prng(42))
    >>> first.eval(mode="FAST_COMPILE")
    array([1832780943,  270669613])
    >>> [third] = split_prng(init_prng(42), data=[1])
    >>> bool((third.eval() == second.eval()).all())
    True
    """
    numbers = pt.arange(count) if data is None else pt.as_tensor(data, dtype="int64")
    if numbers.type.ndim != 1:
        raise ArgumentError("data is a vector of one integer for each state")
    if data is not None:
        (known,) = numbers.type.shape
        if known is None:
            raise ArgumentError("the number of elements of data must be known: specify its shape")
        count = known
    key = _state(state).astype("uint64")
    states: TensorVariable = threefry_2x32()(key, numbers.astype("uint64")).astype("int64")
    return [states[:, i] for i in range(count)]


def random_uniform(
    state: Any,
    shape: Any = (),
    low: float = 0.0,
    high: float = 1.0,
    dtype: str = "float32",
) -> Drawn:
    """Draw uniform numbers in ``[low, high)`` (operator ``RandomUniform``).

    The numbers are those of ``jax.random.uniform(key, shape, dtype, low, high)`` with the second of
    the two keys that the state is split in; the first is the next state.

    Parameters
    ----------
    state
        The state.
    shape
        Sizes, such as ``x.shape`` (operator ``RandomUniformLike``).
    low, high
        Bounds.
    dtype
        ``float16``, ``float32`` or ``float64``.

    Examples
    --------
    >>> values, _ = random_uniform(init_prng(42), (2,))
    >>> values.eval(mode="FAST_COMPILE")
    array([0.72766423, 0.78786755], dtype=float32)
    """
    after, key = split_prng(state)
    values = _shaped(uniform_numbers(_float(dtype)), key, shape)
    if (low, high) != (0, 1):
        number = np.dtype(dtype).type
        values = scaled(values, number(low), number(high) - number(low))
    return Drawn(values, after)


def random_normal(
    state: Any,
    shape: Any = (),
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: str = "float32",
) -> Drawn:
    """Draw normal numbers (operator ``RandomNormal``).

    The numbers are ``mean + scale * jax.random.normal(key, shape, dtype)`` with the key of
    `random_uniform`, but for errors of the inverse error function.

    Parameters
    ----------
    state, shape, dtype
        As in `random_uniform`.
    mean, scale
        Mean and standard deviation.

    Examples
    --------
    >>> values, _ = random_normal(init_prng(42), (2,))
    >>> values.eval(mode="FAST_COMPILE").round(4)
    array([0.6058, 0.799 ], dtype=float32)
    """
    after, key = split_prng(state)
    values = _shaped(normal_numbers(_float(dtype)), key, shape)
    number = np.dtype(dtype).type
    if scale != 1:
        values = values * number(scale)
    return Drawn(values + number(mean) if mean != 0 else values, after)


def random_integers(
    state: Any, shape: Any = (), low: int = 0, high: int = 2, dtype: str = "int32"
) -> Drawn:
    """Draw integers in ``[low, high)`` (operator ``RandomUniform`` of integers).

    The numbers are those of ``jax.random.randint(key, shape, low, high, dtype)`` with the key of
    `random_uniform`.

    Parameters
    ----------
    state, shape
        As in `random_uniform`.
    low, high
        Bounds, with ``low < high``.
    dtype
        A dtype of integers.

    Examples
    --------
    >>> values, _ = random_integers(init_prng(42), (4,), 0, 10)
    >>> values.eval(mode="FAST_COMPILE")
    array([5, 2, 4, 2], dtype=int32)
    """
    info = np.iinfo(dtype)
    if not info.min <= low < high <= info.max + 1:
        raise ArgumentError(f"the bounds {low} and {high} are no range of {dtype}")
    after, key = split_prng(state)
    sizes, n = _lengths(shape)
    numbers = integers(key, n, word(high - low), word(low % 2**64), dtype)
    return Drawn(_in_shape(numbers, sizes), after)


def philox(key: Any, counters: Any) -> TensorVariable:
    """Return the blocks of Philox-4x32-10 (Salmon et al., SC'11): four words of 32 bits each.

    In operators of ONNX it takes a fifth of the time of Threefry-2x32.

    Parameters
    ----------
    key
        Two words, int64.
    counters
        Four words of each block, int64 of shape ``(n, 4)``.

    Examples
    --------
    >>> blocks = philox([0, 0], [[0, 0, 0, 0]])
    >>> [f"{word:08x}" for word in blocks.eval(mode="FAST_COMPILE")[0]]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    blocks: TensorVariable = philox_4x32()(_state(key), pt.as_tensor(counters, dtype="int64"))
    return blocks


def _float(dtype: str) -> str:
    if dtype not in _DTYPES:
        raise ArgumentError(f"dtype is {dtype!r}: give one of {', '.join(_DTYPES)}")
    return dtype


def _shaped(draw: StandardGraph, key: TensorVariable, shape: Any) -> TensorVariable:
    """Return numbers of a key in a shape."""
    sizes, n = _lengths(shape)
    return _in_shape(draw(key, n), sizes)


def _in_shape(numbers: TensorVariable, sizes: list[TensorVariable]) -> TensorVariable:
    return numbers.reshape(sizes, ndim=len(sizes)) if sizes else numbers[0]


def _lengths(shape: Any) -> tuple[list[TensorVariable], TensorVariable]:
    """Return the sizes of a shape, and their product, one for that of a number."""
    sizes = [pt.as_tensor(size, dtype="int64") for size in _sizes(shape)]
    return sizes, pt.prod(pt.stack(sizes)) if sizes else pt.constant(np.int64(1))


def _sizes(shape: Any) -> Sequence[Any]:
    if isinstance(shape, TensorVariable):
        (count,) = shape.type.shape if shape.type.ndim == 1 else (None,)
        if count is None:
            raise ArgumentError("the number of axes of shape must be known")
        return [shape[i] for i in range(count)]
    return [shape] if isinstance(shape, int) else list(shape)


def _state(state: Any) -> TensorVariable:
    found = pt.as_tensor(state, dtype="int64")
    if found.type.ndim != 1:
        raise ArgumentError(f"a state is a vector of two words; got {found.type}")
    return found
