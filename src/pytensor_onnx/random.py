"""Convert NumPy generators and seeds to the states of random generators in ONNX, and back.

``docs/understanding/random.md`` describes the format, and how to make a state without this package.
"""

import copy
from typing import Any

import numpy as np

from pytensor_onnx.bit_generators import DEFAULT, holding, words_in

__all__ = ["generator_of", "state_of"]


def state_of(generator: np.random.Generator | dict[str, Any] | int) -> np.ndarray:
    """Return the state of a generator or a seed.

    Parameters
    ----------
    generator
        A NumPy generator of any kind, which is not changed; its state as a dictionary; or a seed
        for `numpy.random.default_rng`.

    Returns
    -------
    ndarray
        uint64 of shape (3,): the key in two words, and a counter. The key is the next two words
        that the generator would draw, the counter is zero. What `generator_of` made gives the state
        that it was made of.

    Examples
    --------
    >>> import numpy as np
    >>> state = state_of(np.random.default_rng(1))
    >>> key = np.random.default_rng(1).integers(2**64, size=2, dtype="uint64")
    >>> np.array_equal(state, np.append(key, np.uint64(0))), np.array_equal(state, state_of(1))
    (True, True)
    """
    if isinstance(generator, dict):
        generator = _from_dict(generator)
    elif not isinstance(generator, np.random.Generator):
        generator = np.random.default_rng(generator)
    words = words_in(generator.bit_generator.state)
    if words is not None:
        return np.array(words, dtype="uint64")
    key = copy.deepcopy(generator).integers(2**64, size=2, dtype="uint64")
    return np.append(key, np.uint64(0))


def generator_of(state: np.ndarray, bit_generator: str = DEFAULT) -> np.random.Generator:
    """Return a NumPy generator that holds a state.

    Parameters
    ----------
    state
        uint64 of shape (3,), or int32 of shape (3, 4) as in portable files.
    bit_generator
        Class of its bit generator: ``"MT19937"``, ``"PCG64"``, ``"PCG64DXSM"``, ``"Philox"`` or
        ``"SFC64"``; ``"PCG64"`` in place of a class that is not NumPy's.

    Examples
    --------
    >>> state = np.array([1, 2, 3], dtype="uint64")
    >>> state_of(generator_of(state))
    array([1, 2, 3], dtype=uint64)
    """
    words = np.asarray(state) if np.ndim(state) == 1 else large_words(np.asarray(state))
    first, second, counter = map(int, words.astype("uint64"))
    return np.random.Generator(holding((first, second, counter), bit_generator))


def small_words(state: np.ndarray) -> np.ndarray:
    """Return words of 64 bits as rows of numbers of 16 bits in int32, the lowest first.

    Examples
    --------
    >>> small_words(np.array([2**16 + 5, 2**63], "uint64"))
    array([[    5,     1,     0,     0],
           [    0,     0,     0, 32768]], dtype=int32)
    """
    shifts = np.arange(4, dtype="uint64") * np.uint64(16)
    return ((state[:, None] >> shifts) & np.uint64(2**16 - 1)).astype("int32")


def large_words(rows: np.ndarray) -> np.ndarray:
    """Return the words of 64 bits of rows of numbers.

    Examples
    --------
    >>> words = np.array([2**16 + 5, 2**63], "uint64")
    >>> np.array_equal(large_words(small_words(words)), words)
    True
    """
    shifts = np.arange(4, dtype="uint64") * np.uint64(16)
    return np.bitwise_or.reduce(rows.astype("uint64") << shifts, axis=1)


def _from_dict(state: dict[str, Any]) -> np.random.Generator:
    bit_generator = getattr(np.random, str(state["bit_generator"]))()
    bit_generator.state = state
    return np.random.Generator(bit_generator)
