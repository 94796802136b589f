"""The samplers: definitions of the Ops that draw, as PyTensor expressions of Threefry."""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import DEFINITIONS, define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.portable import log_of_normal, sine_and_cosine
from pytensor_onnx.ops.draws import (
    Draw,
    DrawsOfSteps,
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
    Threefry,
)

Drawn = tuple[TensorVariable, TensorVariable]


SIGNATURE = "(4),()->(4),(n)"
"""A state and a number of draws become the next state and a vector."""


@define(RandomBits, SIGNATURE, batches=False)
def sample_bits(state: TensorVariable, n: TensorVariable) -> Drawn:
    """Put the first word of a block above the second."""
    after, x, y = blocks(state, n)
    return after, x.astype("uint64") * np.uint64(2**32) + y.astype("uint64")


@define(StandardUniform, SIGNATURE, batches=False)
def sample_uniform(state: TensorVariable, n: TensorVariable, *, dtype: str) -> Drawn:
    """Scale integers of as many bits as the floats have."""
    if dtype == "float64":
        return _doubles(state, n)
    after, words = _words(state, n)
    return after, _turns(words)


@define(OpenUniform, SIGNATURE, batches=False)
def sample_open_uniform(state: TensorVariable, n: TensorVariable, *, dtype: str) -> Drawn:
    """Scale integers plus a half, of one bit less, so that neither end is reached."""
    if dtype == "float64":
        after, x, y = blocks(state, n)
        return after, open_double(x, y)
    after, words = _words(state, n)
    numbers = (words // _word(2**9)).astype("float32")
    return after, (numbers + np.float32(0.5)) * np.float32(2.0**-23)


@define(StandardNormal, SIGNATURE, batches=False)
def sample_normal(state: TensorVariable, n: TensorVariable, *, dtype: str) -> Drawn:
    """Take points of the plane by their distance and angle (Box and Muller, 1958).

    The angle is known in turns, whose quarters are exact: its sine and cosine need no more than
    polynomials. They and the logarithm are the same in every runtime.
    """
    after, cosines, sines = _normals(state, n, dtype, paired=False)
    return after, pt.concatenate([cosines, sines], axis=-1)[..., :n]


@define(NormalPairs, SIGNATURE, batches=False)
def sample_normal_pairs(state: TensorVariable, n: TensorVariable, *, dtype: str) -> Drawn:
    """Put each cosine before the sine of its pair."""
    after, cosines, sines = _normals(state, n, dtype, paired=True)
    return after, _interleaved(cosines, sines)[..., :n]


def _interleaved(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    both = pt.stack([x, y], axis=-1)
    return both.ravel() if x.type.ndim == 1 else pt.reshape(both, (x.shape[0], -1))


def _normals(
    state: TensorVariable, n: TensorVariable, dtype: str, *, paired: bool
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return the next state and the cosines and sines for n numbers."""
    pairs = (n + 1) // 2
    number: Callable[[float], np.floating] = np.dtype(dtype).type
    if dtype == "float64":
        after, numbers = _doubles(state, 2 * pairs)
        first = numbers[..., ::2] if paired else numbers[..., :pairs]
        turn = numbers[..., 1::2] if paired else numbers[..., pairs:]
        distance = 1.0 - first
    else:
        after, x, y = blocks(state, pairs)
        distance = (x.astype("float32") + np.float32(0.5)) * np.float32(2.0**-32)
        turn = _turns(y)
    radius = pt.sqrt(number(-2) * log_of_normal(distance))
    sine, cosine = _sine_and_cosine(turn)
    return after, radius * cosine, radius * sine


@define(DrawsOfSteps, "(4),()->(4),(t,n)", batches=False)
def sample_steps(
    state: TensorVariable, steps: TensorVariable, *, draw: Draw, n: int, stride: int, offset: int
) -> Drawn:
    """Draw from the states that a loop would have, the rows of a matrix."""
    first, second, low, high = (state[i] for i in range(4))
    skipped = pt.arange(steps) * np.int64(stride)
    ones = pt.ones_like(skipped).astype("uint32")
    counters = _plus(low, high, skipped + np.int64(offset))
    states = pt.stack([first * ones, second * ones, *counters], axis=1)
    definition = DEFINITIONS[type(draw)]
    given = {"dtype": draw.dtype} if "dtype" in definition.keywords else {}
    _, numbers = definition(states, pt.constant(np.int64(n)), **given)
    after = _plus(low, high, steps * np.int64(stride))
    return pt.stack([first, second, *after]), numbers


def _sine_and_cosine(turn: TensorVariable) -> Drawn:
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


def open_double(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return an odd multiple of 2**-53 in (0, 1) for the two words of a block."""
    high, low = x.astype("float64"), (y // _word(2**12)).astype("float64")
    return (high * 2.0**20 + low + 0.5) * 2.0**-52


def blocks(
    state: TensorVariable, n: TensorVariable
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return the state after n blocks, and the two words of each; of a matrix, for each row."""
    first, second, low, high = (
        state[i] if state.type.ndim == 1 else state[:, i : i + 1] for i in range(4)
    )
    x, y = Threefry()(first, second, *_plus(low, high, pt.arange(n)))
    words = _plus(low, high, n)
    if state.type.ndim == 1:
        return pt.concatenate([state[:2], pt.stack(words)]), x, y
    return pt.concatenate([state[:, :2], *words], axis=1), x, y


def _plus(low: TensorVariable, high: TensorVariable, n: TensorVariable) -> list[TensorVariable]:
    """Return the two words of a counter plus numbers below 2**32."""
    total = low + n.astype("uint32")
    return [total, high + (total < low).astype("uint32")]


def _words(state: TensorVariable, n: TensorVariable) -> Drawn:
    after, x, y = blocks(state, (n + 1) // 2)
    return after, pt.concatenate([x, y], axis=-1)[..., :n]


def _doubles(state: TensorVariable, n: TensorVariable) -> Drawn:
    after, x, y = blocks(state, n)
    high, low = x.astype("float64"), (y // _word(2**11)).astype("float64")
    return after, (high * 2.0**21 + low) * 2.0**-53


def _turns(words: TensorVariable) -> TensorVariable:
    return (words // _word(2**8)).astype("float32") * np.float32(2.0**-24)


def _word(number: int) -> TensorVariable:
    return pt.constant(np.uint32(number))
