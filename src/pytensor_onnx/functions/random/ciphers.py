"""Words and numbers of counter-based ciphers: Threefry-2x32 as in JAX, and Philox-4x32-10.

The ciphers are those of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC '11, 2011. The native library has kernels of these functions
(``native/ciphers.c``) with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.special.arithmetic import (
    add_with_error,
    constant,
    horner,
    upper_half,
)
from pytensor_onnx.functions.special.erf import ndtri_ratio, ndtri_rest
from pytensor_onnx.functions.special.exponential import log_of_normal
from pytensor_onnx.ops.random.draws import StandardGraph

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 2**32 - 1
Maker = Callable[[str, bool], StandardGraph]
FRACTIONS = {
    "float16": (16, 10),
    "bfloat16": (8, 7),
    "float32": (32, 23),
    "float64": (64, 52),
}
"""For each dtype, the number of random bits of a draw, and the number of bits of its fraction.

Numbers of bfloat16 are in arrays of float32, normal ones before they are rounded.
"""


def word(value: int) -> V:
    """Return a constant of uint64."""
    return pt.constant(np.uint64(value))


def words_of(number: V) -> list[V]:
    """Return the upper and the lower word of numbers of 64 bits."""
    return [number // word(2**32), number & word(_WORD)]


@cache
def threefry_2x32() -> StandardGraph:
    """Return the function of a key and of counters that gives two rows of words."""
    key = pt.vector("key", dtype="uint64", shape=(2,))
    counters = pt.vector("counters", dtype="uint64")
    rows = pt.stack(_threefry(key[0], key[1], *words_of(counters)))
    return StandardGraph([key, counters], [rows], name="Threefry2x32")


def _threefry(first: V, second: V, x: V, y: V) -> tuple[V, V]:
    """Encrypt two words of 32 bits in integers of 64.

    The upper half of the first word may be anything until the end, as sums and exclusive ors carry
    nothing down; that of the second one, which is shifted to the right, is cleared.
    """
    kept = word(_WORD)
    keys = (first, second, word(_PARITY) ^ first ^ second)
    x, y = x + first, (y + second) & kept
    for i in range(5):
        for n in _ROTATIONS[i % 2]:
            x = x + y
            y = ((y * word(2**n) + y // word(2 ** (32 - n))) ^ x) & kept
        x = x + keys[(i + 1) % 3]
        y = (y + (keys[(i + 2) % 3] + word(i + 1))) & kept
    return x & kept, y


@cache
def philox_4x32() -> StandardGraph:
    """Return the function of a key and of counters that gives rows of four words."""
    key = pt.vector("key", dtype="int64", shape=(2,))
    counters = pt.matrix("counters", dtype="int64", shape=(None, 4))
    words, kept = counters.astype("uint64"), word(_WORD)
    a, b, c, d = (words[:, i] for i in range(4))
    first, second = key[0].astype("uint64"), key[1].astype("uint64")
    for _ in range(10):
        x, y = word(0xD2511F53) * a, word(0xCD9E8D57) * c
        a, b = (y // word(2**32)) ^ b ^ first, y & kept
        c, d = (x // word(2**32)) ^ d ^ second, x & kept
        first = (first + word(0x9E3779B9)) & kept
        second = (second + word(0xBB67AE85)) & kept
    rows = pt.stack([a, b, c, d], axis=1).astype("int64")
    return StandardGraph([key, counters], [rows], name="Philox4x32")


def graph_named(name: str) -> StandardGraph | None:
    """Return the graph that files have as a function of a name, None for other names.

    Examples
    --------
    >>> print(graph_named("ThreefryUniform_float32"), graph_named("Erfinv_float32"))
    ThreefryUniform_float32{inline=False} None
    """
    kind, _, dtype = name.partition("_")
    if dtype in FRACTIONS and kind in ("ThreefryUniform", "ThreefryNormal"):
        return (uniform_numbers if kind == "ThreefryUniform" else normal_numbers)(dtype)
    if name == "Threefry2x32":
        return threefry_2x32()
    return philox_4x32() if name == "Philox4x32" else None


def random_bits(key: V, n: V, count: int) -> V:
    """Return n random integers of a number of bits, as uint64."""
    rows = threefry_2x32()(key.astype("uint64"), pt.arange(n).astype("uint64"))
    upper, lower = rows[0], rows[1]
    if count == 64:
        return upper * word(2**32) + lower
    return (upper ^ lower) & word(2**count - 1)


@cache
def uniform_numbers(dtype: str, is_narrow: bool = False) -> StandardGraph:
    """Return the function of a key and of a length that gives numbers in [0, 1)."""
    key, n = pt.vector("key", dtype="int64", shape=(2,)), pt.lscalar("n")
    total, kept = FRACTIONS[dtype]
    whole = random_bits(key, n, total) // word(2 ** (total - kept))
    # A whole number of that many bits is exact, and a power of two changes no digit.
    wide = "float32" if is_narrow or total <= 16 else "float64"
    fraction = whole.astype(wide) * constant(pt.scalar(dtype=wide), 2.0**-kept)
    fraction = fraction.astype(_array_dtype(dtype))
    return _draws(f"ThreefryUniform_{dtype}", uniform_numbers, [key, n], fraction, is_narrow)


@cache
def normal_numbers(dtype: str, is_narrow: bool = False) -> StandardGraph:
    """Return the function of a key and of a length that gives standard normal numbers."""
    key, n = pt.vector("key", dtype="int64", shape=(2,)), pt.lscalar("n")
    # The number after -1, and the bits of twice a uniform number less one.
    number = np.dtype(_array_dtype(dtype)).type
    least = number(2.0 ** -(FRACTIONS[dtype][1] + 1) - 1)
    uniforms = uniform_numbers(dtype, is_narrow)(key, n)
    x = scaled(uniforms, least, number(2))
    if dtype == "float64":
        z = _accurate_quantile(x)
    elif is_narrow:
        z = x * ndtri_ratio(_minus_log(x))
    else:
        wide = x.astype("float64")
        w = _minus_log(wide)
        ratio = _horner(w, RATIO_TOP) / _horner(w, RATIO_BOTTOM)
        z = (wide * ratio).astype(_array_dtype(dtype))
    return _draws(f"ThreefryNormal_{dtype}", normal_numbers, [key, n], z, is_narrow)


def _array_dtype(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def _draws(name: str, maker: Maker, inputs: list[V], numbers: V, is_narrow: bool) -> StandardGraph:
    name = f"{name}_narrow" if is_narrow else name
    return StandardGraph(inputs, [numbers], name=name, narrow=partial(maker, "float32", True))


def scaled(uniforms: V, low: np.floating, room: np.floating) -> V:
    """Return uniform numbers from a bound on, within a room, with JAX's roundings."""
    least = pt.constant(low)
    return pt.maximum(uniforms * room + least, least)


def integers(key: V, n: V, span: V, start: V, dtype: str) -> V:
    """Return n integers from a start on, less than a span from it, both modulo 2**64.

    As in JAX, two numbers make one of twice the bits, whose remainder is nearly uniform.
    """
    bits = max(32, np.iinfo(dtype).bits)
    modulus, half = word(2**bits - 1), word(2 ** (bits // 2)) % span
    factor = ((half * half) & modulus) % span
    keys = threefry_2x32()(key.astype("uint64"), pt.arange(2).astype("uint64")).astype("int64")
    most, least = (random_bits(keys[:, i], n, bits) % span for i in range(2))
    offset = (((most * factor) & modulus) + least) & modulus
    found = offset % span + start
    return found if dtype == "uint64" else found.astype("int64").astype(dtype)


def _minus_log(x: V) -> V:
    """``-log(1 - x**2)``, of sums and products that are equal in all runtimes."""
    one = constant(x, 1.0)
    return -log_of_normal((one - x) * (one + x))


def _accurate_quantile(x: V) -> V:
    """``sqrt(2) erfinv(x)`` within 2 ulp: the quotient of `ndtri_ratio` keeps its rest."""
    w = _minus_log(x)
    top, top_rest = add_with_error(w, constant(x, 3.125))
    bottom, bottom_rest = add_with_error(w * constant(x, 1 / 16), constant(x, 2.5))
    ratio = top / bottom
    first, head = upper_half(ratio), upper_half(bottom)
    last, tail = ratio - first, bottom - head
    left = ((top - first * head) - last * head - first * tail) - last * tail
    rest = (left + top_rest - ratio * bottom_rest) / bottom
    return x * (ratio + (rest + ndtri_rest(w)))


def _horner(w: V, coefficients: tuple[float, ...]) -> V:
    return horner(w, [constant(w, value) for value in coefficients])


# sqrt(2) erfinv(x) / x in w = -log(1 - x**2) <= 15.95, the last of float32, to 3.3e-9.
RATIO_TOP = (
    1.2533141414317333,
    0.3847939213170953,
    0.06987062801464443,
    0.00855206452675686,
    0.0006458728312154761,
    2.0926807736097927e-05,
    -1.1915573825085316e-08,
    4.479634727157929e-08,
)
RATIO_BOTTOM = (
    1.0,
    0.04522183350985884,
    0.030877183851188227,
    0.0007862412096085551,
    0.0001700517695127503,
    -2.4296975061047685e-06,
    1.9347097480621404e-07,
    1.6068000244122541e-09,
)
