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
        uint64 of shape (3,).
    bit_generator
        Class of its bit generator: ``"MT19937"``, ``"PCG64"``, ``"PCG64DXSM"``, ``"Philox"`` or
        ``"SFC64"``; ``"PCG64"`` in place of a class that is not NumPy's.

    Examples
    --------
    >>> state = np.array([1, 2, 3], dtype="uint64")
    >>> state_of(generator_of(state))
    array([1, 2, 3], dtype=uint64)
    """
    first, second, counter = map(int, np.asarray(state, dtype="uint64"))
    return np.random.Generator(holding((first, second, counter), bit_generator))


def _from_dict(state: dict[str, Any]) -> np.random.Generator:
    bit_generator = getattr(np.random, str(state["bit_generator"]))()
    bit_generator.state = state
    return np.random.Generator(bit_generator)
