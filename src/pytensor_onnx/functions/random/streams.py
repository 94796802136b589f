"""Loops over the numbers that are not drawn yet, each of which has a stream of its own.

Block ``i`` of the stream of a number is Threefry of the key of the stream and the counter ``i``.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.random.samplers import blocks, open_double
from pytensor_onnx.functions.registry import define
from pytensor_onnx.functions.special.portable import log_of_normal, sine_and_cosine
from pytensor_onnx.ops.draws import Threefry
from pytensor_onnx.ops.samplers import Expression, Sampler

ATTEMPTS = 500
"""Attempts after which a number is NaN. All methods accept with a probability of 0.3 or more."""

Step = Callable[..., tuple[V, V, Sequence[V]]]


def samples(op_type: type[Sampler], parameters: int) -> Callable[[Expression], Expression]:
    """Register an expression as the definition of a sampler, by which PyTensor computes it too.

    Parameters
    ----------
    op_type
        Class of the Op.
    parameters
        Number of parameters.
    """

    def register(expression: Expression) -> Expression:
        op_type.expression = staticmethod(expression)
        signature = f"(4){',(n)' * parameters}->(4),(n)"
        return define(op_type, signature, batches=False)(expression)

    return register


def keys(state: V, n: V) -> tuple[V, V, V]:
    """Return the next state, and the two words of the keys of n streams."""
    return blocks(state, n)


def uniforms(k: V, first_key: V, second_key: V, count: int) -> list[V]:
    """Return numbers in (0, 1) of each stream for an attempt, two or more, as vectors.

    The last number of the first attempt is the key itself, which saves a block: the blocks of a
    cipher are independent of its key.
    """
    start, more = np.int64(count) * k, (k > 0).astype("int64")
    counters = (start + pt.arange(count - 1 + more)).astype("uint32")[:, None]
    drawn = _block(first_key[None, :], second_key[None, :], counters)
    last = pt.switch(k > 0, drawn[-1], open_double(first_key, second_key))
    return [*(drawn[i] for i in range(count - 1)), last]


def normals(u: V, v: V) -> V:
    """Return a standard normal number for each pair of numbers in (0, 1).

    Half a circle of the transform of Box and Muller: the angle is between -90 and 90 degrees, and
    its sine a product of the functions of half of it.
    """
    sine, cosine = sine_and_cosine((v - 0.5) * (np.pi / 2))
    return pt.sqrt(-8 * log_of_normal(u)) * (sine * cosine)


def spare_uniform(first_key: V, second_key: V) -> V:
    """Return a number in (0, 1) of each stream that no attempt has."""
    return _block(first_key, second_key, pt.constant(np.uint32(2**32 - 1)))


def chained(first_key: V, second_key: V) -> tuple[V, V, V]:
    """Return a number in (0, 1) of each stream, and the keys of the streams that follow them."""
    zero = pt.constant(np.uint32(0))
    following = Threefry()(first_key, second_key, zero, zero)
    return open_double(first_key, second_key), *following


def _block(first_key: V, second_key: V, counter: V) -> V:
    return open_double(*Threefry()(first_key, second_key, counter, pt.zeros_like(counter)))


def until_drawn(
    step: Step, result: V, where: V, elements: Sequence[V], n_steps: int | V = ATTEMPTS
) -> V:
    """Repeat a step for the numbers that are not drawn yet; return the result with all numbers.

    Numbers that are not drawn after the last step are NaN.

    Parameters
    ----------
    step
        Receives the number of the step, 0-d int64, and elements of those not drawn. Returns
        numbers, whether these are drawn, and the elements for the next step.
    result
        Vector to put the numbers into.
    where
        Positions of the numbers.
    elements
        Vectors with an element for each position.
    n_steps
        Number of steps at most.
    """

    def one(k: V, result: V, where: V, *elements: V) -> tuple[list[V], until]:
        numbers, is_drawn, following = step(k, *elements)
        rest = pt.nonzero(~is_drawn)[0]
        states = [k + 1, result[where].set(numbers), where[rest], *(x[rest] for x in following)]
        return states, until(pt.eq(rest.shape[0], 0))

    start = [pt.constant(np.int64(0)), result, where, *elements]
    _, result, rest, *_ = iterate(one, start, n_steps=n_steps)
    return result[rest].set(np.float64(np.nan))


def positions(mask: V, *elements: V) -> tuple[V, list[V]]:
    """Return the positions where a mask holds, and the elements there."""
    where = pt.nonzero(mask)[0]
    return where, [x[where] for x in elements]
