"""Draw random numbers from a state in NumPy: the reference for exported models.

A state is four 32-bit words: the key in two, and a counter of 64 bits, its low word first. Block
``i`` of a state is Threefry-2x32-20 of the counter plus ``i``: two words. A draw uses as many
blocks as it needs, and the next state has the counter after the last of them.

Threefry is from J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC '11, 2011: section 3.3 and table 2.
"""

import numpy as np

Words = np.ndarray

ROUNDS = 20
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = np.uint32(0x1BD11BDA)


def threefry(first_key: Words, second_key: Words, low: Words, high: Words) -> tuple[Words, Words]:
    """Return the two words of a Threefry-2x32-20 block.

    Parameters
    ----------
    first_key, second_key, low, high
        Arrays of uint32, which broadcast.

    Examples
    --------
    >>> zero = np.zeros(1, "uint32")
    >>> [hex(word[0]) for word in threefry(zero, zero, zero, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    keys = [np.atleast_1d(first_key), np.atleast_1d(second_key)]
    keys.append(PARITY ^ keys[0] ^ keys[1])
    x, y = low + keys[0], high + keys[1]
    for i in range(ROUNDS):
        x = x + y
        n = ROTATIONS[i % 8]
        y = ((y << np.uint32(n)) | (y >> np.uint32(32 - n))) ^ x
        if i % 4 == 3:
            k = i // 4 + 1
            x = x + keys[k % 3]
            y = y + keys[(k + 1) % 3] + np.uint32(k)
    return x, y


def blocks(state: Words, count: int) -> tuple[Words, Words, Words]:
    """Return the state after a number of blocks, and the two words of each."""
    start = int(state[2]) | int(state[3]) << 32
    counter = (np.arange(count, dtype="uint64") + np.uint64(start)).astype("uint64")
    low = (counter & np.uint64(0xFFFFFFFF)).astype("uint32")
    high = (counter >> np.uint64(32)).astype("uint32")
    end = (start + int(count)) % 2**64
    after = np.array([state[0], state[1], end & 0xFFFFFFFF, end >> 32], dtype="uint32")
    x, y = threefry(state[0], state[1], low, high)
    return after, x, y


def bits(state: Words, n: int) -> tuple[Words, Words]:
    """Return the next state and uint64 numbers, with the first word of a block as upper half."""
    after, x, y = blocks(state, n)
    return after, (x.astype("uint64") << np.uint64(32)) | y


def uniform(state: Words, n: int, dtype: str) -> tuple[Words, np.ndarray]:
    """Return the next state and multiples of 2**-53 in [0, 1), or of 2**-24 for float32.

    A float64 uses one block, two float32 share one: first the first words of all blocks, then the
    second words.
    """
    if dtype == "float64":
        after, words = bits(state, n)
        return after, (words >> np.uint64(11)).astype(dtype) * 2.0**-53
    after, words32 = _words(state, n)
    return after, (words32 >> np.uint32(8)).astype(dtype) * np.float32(2.0**-24)


def open_uniform(state: Words, n: int, dtype: str) -> tuple[Words, np.ndarray]:
    """Return the next state and odd multiples of 2**-53 in (0, 1), or of 2**-24 for float32."""
    if dtype == "float64":
        after, words = bits(state, n)
        return after, ((words >> np.uint64(12)).astype(dtype) + 0.5) * 2.0**-52
    after, words32 = _words(state, n)
    return after, ((words32 >> np.uint32(9)).astype(dtype) + np.float32(0.5)) * np.float32(2.0**-23)


def normal(state: Words, n: int, dtype: str) -> tuple[Words, np.ndarray]:
    """Return the next state and standard normal numbers by the Box-Muller transform.

    Two uniform numbers give two normal numbers: all cosines come before all sines.
    """
    after, cosines, sines = _normals(state, n, dtype, paired=False)
    return after, np.concatenate([cosines, sines])[:n]


def normal_pairs(state: Words, n: int, dtype: str) -> tuple[Words, np.ndarray]:
    """Return the next state and normal numbers, each cosine before the sine of its pair."""
    after, cosines, sines = _normals(state, n, dtype, paired=True)
    return after, np.stack([cosines, sines], axis=1).ravel()[:n]


def _normals(
    state: Words, n: int, dtype: str, *, paired: bool
) -> tuple[Words, np.ndarray, np.ndarray]:
    """Return the next state and the cosines and sines for n numbers."""
    pairs = (n + 1) // 2
    distance: np.ndarray
    turn: np.ndarray
    if dtype == "float64":
        after, numbers = uniform(state, 2 * pairs, dtype)
        first, turn = numbers.reshape(pairs, 2).T if paired else numbers.reshape(2, pairs)
        distance = 1.0 - first
    else:
        after, x, y = blocks(state, pairs)
        distance = (x.astype(dtype) + np.float32(0.5)) * np.float32(2.0**-32)
        turn = (y >> np.uint32(8)).astype(dtype) * np.float32(2.0**-24)
    radius = np.sqrt(distance.dtype.type(-2) * np.log(distance))
    sine, cosine = _sine_and_cosine(turn)
    return after, radius * cosine, radius * sine


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


def _words(state: Words, n: int) -> tuple[Words, Words]:
    """Return the next state and words: the first words of all blocks, then the second words."""
    after, x, y = blocks(state, (n + 1) // 2)
    return after, np.concatenate([x, y])[:n]
