"""Draw random numbers from a state in NumPy: the reference for exported models.

A state is three 64-bit words: the key in two, and a counter of words. Word ``i`` of a key is a word
of block ``i // 2``, Threefry-2x64-20 of the counter ``(i // 2, 0)``: its first word for even ``i``,
its second for odd. A draw uses the words from the counter on, as many as it needs, and the next
state has the counter after the last of them.

Threefry is from J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC '11, 2011: section 3.3 and table 2.
"""

import numpy as np

Words = np.ndarray

ROUNDS = 20
ROTATIONS = (16, 42, 12, 31, 16, 32, 24, 21)
PARITY = np.uint64(0x1BD11BDAA9FC1A22)


def threefry(first_key: Words, second_key: Words, low: Words, high: Words) -> tuple[Words, Words]:
    """Return the two words of a Threefry-2x64-20 block.

    Parameters
    ----------
    first_key, second_key, low, high
        Arrays of uint64, which broadcast.

    Examples
    --------
    >>> zero = np.zeros(1, "uint64")
    >>> [hex(word[0]) for word in threefry(zero, zero, zero, zero)]
    ['0xc2b6e3a8c2c69865', '0x6f81ed42f350084d']
    """
    keys = [np.atleast_1d(first_key), np.atleast_1d(second_key)]
    keys.append(PARITY ^ keys[0] ^ keys[1])
    x, y = low + keys[0], high + keys[1]
    for i in range(ROUNDS):
        x = x + y
        n = ROTATIONS[i % 8]
        y = ((y << np.uint64(n)) | (y >> np.uint64(64 - n))) ^ x
        if i % 4 == 3:
            k = i // 4 + 1
            x = x + keys[k % 3]
            y = y + keys[(k + 1) % 3] + np.uint64(k)
    return x, y


def bits(state: Words, n: int) -> tuple[Words, Words]:
    """Return the next state, and n words."""
    places = state[2] + np.arange(n, dtype="uint64")
    x, y = threefry(state[0], state[1], places >> np.uint64(1), np.zeros(1, "uint64"))
    after = np.array([*state[:2], (int(state[2]) + int(n)) % 2**64], dtype="uint64")
    return after, np.where(places % np.uint64(2) == 0, x, y)


def uniform(state: Words, n: int, dtype: str) -> tuple[Words, np.ndarray]:
    """Return the next state and multiples of 2**-53 in [0, 1), or of 2**-24 for float32."""
    after, words = bits(state, n if dtype == "float64" else (n + 1) // 2)
    return after, uniform_of(words, n, dtype)


def uniform_of(words: Words, n: int, dtype: str) -> np.ndarray:
    """Return n uniform numbers in [0, 1) of words.

    A float64 uses one word, two float32 share one: first the upper halves of all words, then the
    lower halves.
    """
    if dtype == "float64":
        return (words >> np.uint64(11)).astype(dtype) * 2.0**-53
    return (_halves(words)[:n] >> np.uint32(8)).astype(dtype) * np.float32(2.0**-24)


def open_uniform(state: Words, n: int, dtype: str) -> tuple[Words, np.ndarray]:
    """Return the next state and odd multiples of 2**-53 in (0, 1), or of 2**-24 for float32."""
    after, words = bits(state, n if dtype == "float64" else (n + 1) // 2)
    return after, open_uniform_of(words, n, dtype)


def open_uniform_of(words: Words, n: int, dtype: str) -> np.ndarray:
    """Return n uniform numbers in (0, 1) of words."""
    if dtype == "float64":
        return ((words >> np.uint64(12)).astype(dtype) + 0.5) * 2.0**-52
    steps = (_halves(words)[:n] >> np.uint32(9)).astype(dtype)
    return (steps + np.float32(0.5)) * np.float32(2.0**-23)


def normal(state: Words, n: int, dtype: str) -> tuple[Words, np.ndarray]:
    """Return the next state and standard normal numbers by the Box-Muller transform."""
    pairs = (n + 1) // 2
    after, words = bits(state, 2 * pairs if dtype == "float64" else pairs)
    return after, normal_of(words, n, dtype)


def normal_of(words: Words, n: int, dtype: str) -> np.ndarray:
    """Return n normal numbers of words.

    Two uniform numbers give two normal numbers: all cosines come before all sines.
    """
    return np.concatenate(_normals(words, dtype, paired=False))[:n]


def normal_pairs_of(words: Words, n: int, dtype: str) -> np.ndarray:
    """Return n normal numbers of words, each cosine before the sine of its pair."""
    return np.stack(_normals(words, dtype, paired=True), axis=1).ravel()[:n]


def _normals(words: Words, dtype: str, *, paired: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines and sines of pairs of normal numbers."""
    distance: np.ndarray
    turn: np.ndarray
    if dtype == "float64":
        numbers = uniform_of(words, len(words), dtype)
        pairs = len(words) // 2
        first, turn = numbers.reshape(pairs, 2).T if paired else numbers.reshape(2, pairs)
        distance = 1.0 - first
    else:
        upper, lower = _halves(words).reshape(2, len(words))
        distance = (upper.astype(dtype) + np.float32(0.5)) * np.float32(2.0**-32)
        turn = (lower >> np.uint32(8)).astype(dtype) * np.float32(2.0**-24)
    radius = np.sqrt(distance.dtype.type(-2) * np.log(distance))
    sine, cosine = _sine_and_cosine(turn)
    return radius * cosine, radius * sine


def _sine_and_cosine(turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sine and the cosine of an angle in turns, exact at multiples of a quarter."""
    whole = np.round(4 * turn)
    angle = turn.dtype.type(np.pi / 2) * (4 * turn - whole)
    sine, cosine = np.sin(angle), np.cos(angle)
    quarter = whole.astype("int64") % 4
    return (
        np.choose(quarter, [sine, cosine, -sine, -cosine]),
        np.choose(quarter, [cosine, -sine, -cosine, sine]),
    )


def _halves(words: Words) -> Words:
    """Return twice as many uint32: the upper halves of all words, then the lower halves."""
    halves = [words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)]
    return np.concatenate(halves).astype("uint32")
