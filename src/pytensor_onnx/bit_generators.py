"""Hold the state of a random generator, a key and a counter, in NumPy's bit generators.

Each form marks itself, so that other states of a bit generator are told from it. NumPy draws from
it as from any state: numbers of different keys or counters are unrelated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Words = tuple[int, int, int]
"""Two words of a key and a counter, of 64 bits each."""

DEFAULT = "PCG64"
"""Bit generator of `numpy.random.default_rng`."""

_MARK = 0x7079_7465_6E73_6F72  # "pytensor" in ASCII
_ALL = 2**64 - 1
_MERSENNE_WORDS = 624


@dataclass(frozen=True)
class _Form:
    """Form of a state in one bit generator.

    Attributes
    ----------
    write
        Return the entries of NumPy's state for the words.
    read
        Return the words of NumPy's state, None if it has no mark.
    """

    write: Callable[[Words], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Words | None]


def holding(words: Words, name: str = DEFAULT) -> np.random.BitGenerator:
    """Return a bit generator that holds the words of a state.

    Parameters
    ----------
    words
        Two words of a key, and a counter.
    name
        Class of the bit generator; `DEFAULT` in place of one that is not NumPy's.

    Examples
    --------
    >>> words_in(holding((1, 2, 3), "SFC64").state)
    (1, 2, 3)
    """
    name = name if name in _FORMS else DEFAULT
    # New generators that NumPy spawns from it depend on the seed sequence alone.
    bit_generator: np.random.BitGenerator = getattr(np.random, name)(
        np.random.SeedSequence([*words])
    )
    bit_generator.state = {"bit_generator": name, **_FORMS[name].write(words)}
    return bit_generator


def words_in(state: Mapping[str, Any]) -> Words | None:
    """Return the words of a bit generator's state, or None for an unknown bit generator."""
    form = _FORMS.get(str(state["bit_generator"]))
    return None if form is None else form.read(state)


def _write_pcg(words: Words) -> dict[str, Any]:
    # The low word of the increment, which NumPy requires to be odd, is the mark.
    first, second, third = _scrambled(words)
    numbers = {"state": second << 64 | first, "inc": third << 64 | _MARK | 1}
    return {"state": numbers, "has_uint32": 0, "uinteger": 0}


def _read_pcg(state: Mapping[str, Any]) -> Words | None:
    number, increment = (int(state["state"][name]) for name in ("state", "inc"))
    if increment & _ALL != _MARK | 1:
        return None
    return _unscrambled((number & _ALL, number >> 64, increment >> 64))


def _write_philox(words: Words) -> dict[str, Any]:
    # NumPy counts its draws in the words before and after ours.
    *key, counter = words
    numbers = {"key": _array(*key), "counter": _array(0, counter, 0, _MARK)}
    drawn = {"buffer": _array(0, 0, 0, 0), "buffer_pos": 4}
    return {"state": numbers, **drawn, "has_uint32": 0, "uinteger": 0}


def _read_philox(state: Mapping[str, Any]) -> Words | None:
    first, second = map(int, state["state"]["key"])
    drawn, counter, jumped, mark = map(int, state["state"]["counter"])
    return (first, second, counter) if (drawn, jumped, mark) == (0, 0, _MARK) else None


def _write_sfc(words: Words) -> dict[str, Any]:
    # The last word counts the numbers that are drawn.
    numbers = {"state": _array(*_scrambled(words), _MARK)}
    return {"state": numbers, "has_uint32": 0, "uinteger": 0}


def _read_sfc(state: Mapping[str, Any]) -> Words | None:
    first, second, third, mark = map(int, state["state"]["state"])
    return _unscrambled((first, second, third)) if mark == _MARK else None


def _write_mersenne(words: Words) -> dict[str, Any]:
    # A state of few bits would take thousands of draws to become random.
    filled = holding(words).random_raw(_MERSENNE_WORDS // 2)
    filled[:4] = _array(*words, _MARK)
    return {"state": {"key": filled.view("uint32"), "pos": _MERSENNE_WORDS}}


def _read_mersenne(state: Mapping[str, Any]) -> Words | None:
    first, second, third, mark = map(int, np.asarray(state["state"]["key"])[:8].view("uint64"))
    is_new = mark == _MARK and state["state"]["pos"] == _MERSENNE_WORDS
    return (first, second, third) if is_new else None


_FORMS = {
    "MT19937": _Form(_write_mersenne, _read_mersenne),
    "PCG64": _Form(_write_pcg, _read_pcg),
    "PCG64DXSM": _Form(_write_pcg, _read_pcg),
    "Philox": _Form(_write_philox, _read_philox),
    "SFC64": _Form(_write_sfc, _read_sfc),
}


def _scrambled(words: Words) -> Words:
    """Return unrelated words for the counters of a key; a bijection."""
    first, second, counter = words
    first, second = first ^ _mixed(counter), second ^ _mixed(~counter & _ALL)
    return first, second, counter ^ _mixed(first ^ _mixed(second))


def _unscrambled(words: Words) -> Words:
    first, second, third = words
    counter = third ^ _mixed(first ^ _mixed(second))
    return first ^ _mixed(counter), second ^ _mixed(~counter & _ALL), counter


def _mixed(word: int) -> int:
    """Return the number that SplitMix64 (Steele, Lea and Flood, 2014) makes of a word."""
    word = (word + 0x9E37_79B9_7F4A_7C15) & _ALL
    word = (word ^ word >> 30) * 0xBF58_476D_1CE4_E5B9 & _ALL
    word = (word ^ word >> 27) * 0x94D0_49BB_1331_11EB & _ALL
    return word ^ word >> 31


def _array(*words: int) -> np.ndarray:
    return np.array(words, dtype="uint64")
