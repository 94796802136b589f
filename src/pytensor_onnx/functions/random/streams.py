"""Draw numbers by rejection, each from a stream of its own.

A number that is drawn at counter ``c`` of a state has the blocks of the counters ``(c, 1)``, ``(c,
2)``, ... of its key. Draws from the state itself use the blocks ``(i, 0)``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.random.samplers import open_double, words
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.portable_formulas import log_of_normal, sine_and_cosine
from pytensor_onnx.ops.random.draws import Threefry
from pytensor_onnx.ops.random.sampler_ops import Expression, KeyedSampler, Sampler

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
        rest = pt.nonzero(~is_drawn)[0]
        states = [k + 1, result[where].set(numbers), where[rest], *(x[rest] for x in following)]
        return states, until(pt.eq(rest.shape[0], 0))

    start = [pt.constant(np.int64(0)), result, where, *elements]
    _, result, rest, *_ = iterate(one, start, constants, n_steps=n_steps)
    return result[rest].set(np.float64(np.nan))


def positions(mask: V, *elements: V) -> tuple[V, list[V]]:
    """Return the positions where a mask holds, and the elements there."""
    where = pt.nonzero(mask)[0]
    return where, [x[where] for x in elements]
