"""The samplers: definitions of the Ops that draw, as PyTensor expressions of Threefry."""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.portable_formulas import log_of_normal, sine_and_cosine
from pytensor_onnx.ops.random.draws import (
    Draw,
    DrawsOfRows,
    DrawsOfSteps,
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
    Threefry,
)

Numbers = Callable[..., V]

SIGNATURE = "(3),()->(3),(n)"
"""A state and a number of draws become the next state and a vector."""

_NUMBERS: dict[type[Draw], Numbers] = {}


def numbers_of_words(op_type: type[Draw]) -> Callable[[Numbers], Numbers]:
    """Register a function of words, the last axis, and a length as the definition of a draw."""

    def register(numbers: Numbers) -> Numbers:
        def sample(state: V, n: V, *, dtype: str) -> tuple[V, V]:
            after, drawn = words(state, op_type(dtype).words(n))
            return after, numbers(drawn, n, dtype)

        define(op_type, SIGNATURE, batches=False)(sample)
        _NUMBERS[op_type] = numbers
        return numbers

    return register


@define(DrawsOfSteps, "(k),()->(t,n)", batches=False)
def sample_steps(words: V, steps: V, *, draw: Draw, n: int, stride: int, offset: int) -> V:
    """Compute the numbers of the words of each step, the rows of a matrix."""
    rows = pt.reshape(words, (steps, stride))[:, offset : offset + draw.words(n)]
    return _NUMBERS[type(draw)](rows, pt.constant(np.int64(n)), draw.dtype)


@define(DrawsOfRows, "(t,k)->(t,n)", batches=False)
def sample_rows(words: V, *, draw: Draw, n: int) -> V:
    """Compute the numbers of the rows of a matrix of words."""
    return _NUMBERS[type(draw)](words, pt.constant(np.int64(n)), draw.dtype)


def words(state: V, n: V) -> tuple[V, V]:
    """Return the next state and n words, the first at the counter; a block has two words."""
    first, second, counter = (state[i] for i in range(3))
    # One more block than pairs, as the counter may be at the second word of the first.
    places = counter + pt.arange(0, n + 1, 2).astype("uint64")
    x, y = Threefry()(first, second, places // _word(2), _word(0))
    start = (counter & _word(1)).astype("int64")
    after = pt.concatenate([state[:2], pt.stack([counter + n.astype("uint64")])])
    return after, _interleaved(x, y)[start : start + n]


@numbers_of_words(RandomBits)
def bits(words: V, n: V, dtype: str) -> V:
    """Return the words as they are."""
    return words


@numbers_of_words(StandardUniform)
def uniform(words: V, n: V, dtype: str) -> V:
    """Scale integers of as many bits as the floats have."""
    if dtype == "float64":
        return _doubles(words)
    return _turns(pt.concatenate(_halves(words), axis=-1)[..., :n])


@numbers_of_words(OpenUniform)
def open_uniform(words: V, n: V, dtype: str) -> V:
    """Scale integers plus a half, of one bit less, so that neither end is reached."""
    if dtype == "float64":
        return open_double(words)
    steps = pt.concatenate(_halves(words), axis=-1)[..., :n] // _word(2**9)
    return (steps.astype("float32") + np.float32(0.5)) * np.float32(2.0**-23)


@numbers_of_words(StandardNormal)
def normal(words: V, n: V, dtype: str) -> V:
    """Take points of the plane by their distance and angle (Box and Muller, 1958).

    The angle is known in turns, whose quarters are exact: its sine and cosine need no more than
    polynomials. They and the logarithm are the same in every runtime.
    """
    return pt.concatenate(_normals(words, dtype, paired=False), axis=-1)[..., :n]


@numbers_of_words(NormalPairs)
def normal_pairs(words: V, n: V, dtype: str) -> V:
    """Put each cosine before the sine of its pair."""
    return _interleaved(*_normals(words, dtype, paired=True))[..., :n]


def open_double(words: V) -> V:
    """Return an odd multiple of 2**-53 in (0, 1) for each word."""
    return ((words // _word(2**12)).astype("float64") + 0.5) * 2.0**-52


def _normals(words: V, dtype: str, *, paired: bool) -> tuple[V, V]:
    """Return the cosines and sines of pairs of normal numbers."""
    number: Callable[[float], np.floating] = np.dtype(dtype).type
    if dtype == "float64":
        numbers, pairs = _doubles(words), words.shape[-1] // 2
        first = numbers[..., ::2] if paired else numbers[..., :pairs]
        turn = numbers[..., 1::2] if paired else numbers[..., pairs:]
        distance = 1.0 - first
    else:
        upper, lower = _halves(words)
        distance = (upper.astype("float32") + np.float32(0.5)) * np.float32(2.0**-32)
        turn = _turns(lower)
    radius = pt.sqrt(number(-2) * log_of_normal(distance))
    sine, cosine = _sine_and_cosine(turn)
    return radius * cosine, radius * sine


def _sine_and_cosine(turn: V) -> tuple[V, V]:
    """Return the sine and the cosine of an angle from 0 to 1, in turns."""
    half = constant(turn, 0.5)
    quarters = turn * constant(turn, 4.0)
    whole = pt.round(quarters)
    angle = (quarters - whole) * constant(turn, np.pi / 2)
    sine, cosine = sine_and_cosine(angle)
    is_even = pt.eq(whole * half, pt.floor(whole * half))
    first, second = pt.switch(is_even, sine, cosine), pt.switch(is_even, cosine, sine)
    return (
        pt.switch(pt.abs(whole - constant(turn, 2.5)) < constant(turn, 1.0), -first, first),
        pt.switch(pt.abs(whole - constant(turn, 1.5)) < constant(turn, 1.0), -second, second),
    )


def _interleaved(x: V, y: V) -> V:
    both = pt.stack([x, y], axis=-1)
    return both.ravel() if x.type.ndim == 1 else pt.reshape(both, (x.shape[0], 2 * x.shape[1]))


def _halves(words: V) -> tuple[V, V]:
    """Return the upper and the lower 32 bits."""
    return words // _word(2**32), words & _word(2**32 - 1)


def _doubles(words: V) -> V:
    return (words // _word(2**11)).astype("float64") * 2.0**-53


def _turns(halves: V) -> V:
    return (halves // _word(2**8)).astype("float32") * np.float32(2.0**-24)


def _word(number: int) -> V:
    return pt.constant(np.uint64(number))
