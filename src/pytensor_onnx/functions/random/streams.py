"""Random bits from a counter, uniform and normal draws, and generators spawned from others.

A number that is drawn at counter ``c`` of a state has the blocks of the counters ``(c, 1)``, ``(c,
2)``, ... of its key. Draws from the state itself use the blocks ``(i, 0)``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable, TensorVariable as V

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.arithmetic import constant
from pytensor_onnx.functions.special.exponential import log_of_normal, sine_and_cosine
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.ops.random.draw_reference import PARITY, ROTATIONS, ROUNDS
from pytensor_onnx.ops.random.draws import (
    Draw,
    DrawsOfRows,
    DrawsOfSteps,
    Expression,
    KeyedSampler,
    NormalPairs,
    OpenUniform,
    RandomBits,
    Sampler,
    StandardNormal,
    StandardUniform,
    Threefry,
)

ATTEMPTS = 500
"""Largest number of attempts. All methods accept with a probability of 0.3 or more."""

Step = Callable[..., tuple[V, V, Sequence[V]]]


def samples(op_type: type[Sampler], parameters: int) -> Callable[[Expression], Expression]:
    """Register an expression as the definition of a sampler, in ONNX and in PyTensor.

    Parameters
    ----------
    op_type
        Class of the Op.
    parameters
        Number of parameters.
    """

    def register(expression: Expression) -> Expression:
        op_type.expression = staticmethod(expression)
        signature = f"(3){',(n)' * parameters}->(3),(n)"
        return define(op_type, signature, batches=False)(expression)

    return register


@dataclass(frozen=True)
class Streams:
    """Streams of a key at counters of their own, in the place of a state."""

    key: V
    counters: V


@define(KeyedSampler, lambda op, count: f"(2){',(n)' * (count - 1)}->(n)", batches=False)
def keyed(key: V, counters: V, *parameters: V, sampler: Sampler) -> V:
    """Draw the numbers of a sampler from streams at given counters."""
    # The definitions of samplers are those of modules that import this one.
    import_modules("pytensor_onnx.functions.random")
    return type(sampler).expression(Streams(key, counters), *parameters)[1]


KeyedSampler.expression = staticmethod(keyed)


def keys(state: V | Streams, n: V) -> tuple[V, V, V]:
    """Return the next state, the two words of its key, and the counters of n streams."""
    if isinstance(state, Streams):
        return state.key, state.key, state.counters
    counters = state[2] + pt.arange(n).astype("uint64")
    after = pt.concatenate([state[:2], pt.stack([state[2] + n.astype("uint64")])])
    return after, state[:2], counters


def counter_uniforms(state: V | Streams, n: V) -> V:
    """Return a number in (0, 1) of each of n streams, from the word at its counter."""
    if isinstance(state, Streams):
        return open_double(block(state.key, state.counters, 0)[0])
    return open_double(words(state, n)[1])


def uniforms(k: V, key: V, counters: V, count: int, first: V | None = None) -> list[V]:
    """Return numbers in (0, 1) of each stream for an attempt, as vectors.

    Parameters
    ----------
    k
        Number of the attempt.
    key, counters
        Key and counters of the streams.
    count
        Number of vectors; one block gives two of them.
    first
        The last vector of the first attempt (`counter_uniforms`), for which no block is computed
        then. Only if ``count`` is odd.
    """
    most, least = -(-count // 2), count // 2
    start = 1 + np.int64(most) * k
    if most == 1:
        return [open_double(word) for word in block(key, counters, start)][:count]
    n = np.int64(most) if first is None else least + (k > 0).astype("int64")
    x, y = block(key, counters[None, :], (start + pt.arange(n))[:, None])
    drawn = [open_double(word[i]) for i in range(least) for word in (x, y)]
    if count % 2 == 0:
        return drawn
    last = open_double(x[-1])
    return [*drawn, last if first is None else pt.switch(k > 0, last, first)]


def normals(u: V, v: V) -> V:
    """Return a standard normal number for each pair of numbers in (0, 1).

    Half a circle of the transform of Box and Muller: the angle is between -90 and 90 degrees, and
    its sine a product of the functions of half of it.
    """
    sine, cosine = sine_and_cosine((v - 0.5) * (np.pi / 2))
    return pt.sqrt(-8 * log_of_normal(u)) * (sine * cosine)


def spare_uniform(key: V, counters: V) -> V:
    """Return a number in (0, 1) of each stream, from a block that no attempt uses."""
    return open_double(block(key, counters, 2**64 - 1)[0])


def block(key: V, counters: V, number: int | V) -> list[V]:
    """Return the two words of a block of each stream; blocks are numbered from one."""
    place = pt.constant(np.uint64(number)) if isinstance(number, int) else number.astype("uint64")
    words: list[V] = Threefry()(key[0], key[1], counters, place)
    return words


def until_drawn(
    step: Step,
    result: V,
    where: V,
    elements: Sequence[V],
    constants: Sequence[V] = (),
    *,
    n_steps: int | V = ATTEMPTS,
) -> V:
    """Repeat a step for the numbers that are not drawn yet; return the result with all numbers.

    Numbers that are not drawn after the last step are NaN.

    Parameters
    ----------
    step
        Receives the number of the step, 0-d int64, the constants, and elements of those not drawn.
        Returns numbers, whether these are drawn, and the elements for the next step.
    result
        Vector to put the numbers into.
    where
        Positions of the numbers.
    elements
        Vectors with an element for each position.
    constants
        Values that are the same in every step.
    n_steps
        Number of steps at most.
    """

    def one(k: V, result: V, where: V, *others: V) -> tuple[list[V], until]:
        vectors, fixed = others[: len(elements)], others[len(elements) :]
        numbers, is_drawn, following = step(k, *fixed, *vectors)
        if _IS_MASKED.get():
            rest = where & ~is_drawn
            states = [k + 1, put(result, where, numbers), rest, *following]
            return states, until(~pt.any(rest))
        rest = pt.nonzero(~is_drawn)[0]
        states = [k + 1, result[where].set(numbers), where[rest], *(x[rest] for x in following)]
        return states, until(pt.eq(rest.shape[0], 0))

    start = [pt.constant(np.int64(0)), result, where, *elements]
    _, result, rest, *_ = iterate(one, start, constants, n_steps=n_steps)
    return put(result, rest, np.float64(np.nan))


_IS_MASKED = ContextVar("is_masked", default=False)


@contextmanager
def masked(is_masked: bool = True) -> Iterator[None]:
    """Let attempts repeat for whole arrays, for runtimes without sizes that depend on values.

    Numbers are the same: each has a stream of its own. Positions are then masks.
    """
    token = _IS_MASKED.set(is_masked)
    try:
        yield
    finally:
        _IS_MASKED.reset(token)


def positions(mask: V, *elements: V) -> tuple[V, list[V]]:
    """Return the positions where a mask holds, and the elements there; all if `masked`."""
    if _IS_MASKED.get():
        return mask, list(elements)
    where = pt.nonzero(mask)[0]
    return where, [x[where] for x in elements]


def everywhere(x: V) -> V:
    """Return the positions of all elements of a vector."""
    return pt.ones_like(x, dtype="bool") if _IS_MASKED.get() else pt.arange(x.shape[0])


def taken(x: V, where: V) -> V:
    """Return the elements of a vector at positions; all if `masked`."""
    return x if _IS_MASKED.get() else x[where]


def put(x: V, where: V, numbers: V | np.floating) -> V:
    """Return a vector with other numbers at positions."""
    return pt.switch(where, numbers, x) if _IS_MASKED.get() else x[where].set(numbers)


def is_any(where: V) -> V:
    """Return whether there are positions."""
    return pt.any(where) if _IS_MASKED.get() else where.shape[0] > 0


def count_unless(mask: V) -> V:
    """Return the number of elements, or zero where a mask holds for all and sizes may tell it."""
    return mask.shape[0] if _IS_MASKED.get() else pt.switch(pt.all(mask), 0, mask.shape[0])


@define(Threefry)
def threefry(
    first_key: TensorVariable, second_key: TensorVariable, low: TensorVariable, high: TensorVariable
) -> list[TensorVariable]:
    """Return the two words that the cipher makes of the two words of a counter.

    A rotation is a product and a quotient by powers of two, whose bits do not overlap.
    """
    keys = [first_key, second_key, _word(PARITY) ^ first_key ^ second_key]
    x, y = low + keys[0], high + keys[1]
    for i in range(ROUNDS):
        x = x + y
        n = ROTATIONS[i % 8]
        y = (y * _word(2**n) + y // _word(2 ** (64 - n))) ^ x
        if i % 4 == 3:
            k = i // 4 + 1
            x = x + keys[k % 3]
            y = y + (keys[(k + 1) % 3] + _word(k))
    return [x, y]


def _word(number: int | np.uint64) -> TensorVariable:
    return pt.constant(np.uint64(number))


def spawned(state: Variable, count: int) -> list[Variable]:
    """Return the next state, and states whose keys are blocks of streams of the first.

    Threefry permutes the blocks of a key, so that all keys from one state differ.
    """
    after, key, counters = keys(state, pt.constant(np.int64(count)))
    x, y = block(key, counters, 1)
    states = pt.specify_shape(pt.stack([x, y, pt.zeros_like(x)], axis=1), (count, 3))
    return [after, *(states[i] for i in range(count))]


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
    x, y = Threefry()(first, second, places // _word_of_draw(2), _word_of_draw(0))
    start = (counter & _word_of_draw(1)).astype("int64")
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
    steps = pt.concatenate(_halves(words), axis=-1)[..., :n] // _word_of_draw(2**9)
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
    return ((words // _word_of_draw(2**12)).astype("float64") + 0.5) * 2.0**-52


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
    return words // _word_of_draw(2**32), words & _word_of_draw(2**32 - 1)


def _doubles(words: V) -> V:
    return (words // _word_of_draw(2**11)).astype("float64") * 2.0**-53


def _turns(halves: V) -> V:
    return (halves // _word_of_draw(2**8)).astype("float32") * np.float32(2.0**-24)


def _word_of_draw(number: int) -> V:
    return pt.constant(np.uint64(number))
