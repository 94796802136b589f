"""Random variables of a user's own, drawn by a definition with a loop that rejects."""

import re

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan.utils import until
from pytensor.tensor.random.op import RandomVariable
from scipy import stats

from pytensor_onnx import define, export_onnx
from pytensor_onnx.functions.random.drawing import drawn
from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.ops.random.draws import OpenUniform
from pytensor_onnx.ops.special import portable


class NormalTail(RandomVariable):
    """Standard normal numbers beyond a positive bound."""

    name, signature, dtype = "normal_tail", "()->()", "floatX"


@define(NormalTail)
def normal_tail(state, sizes, bound, *, dtype):
    """Propose from an exponential distribution until all proposals are accepted."""

    def attempt(x, accepted, state, bound):
        state, u = drawn(OpenUniform(dtype), state, sizes)
        state, v = drawn(OpenUniform(dtype), state, sizes)
        proposal = bound - portable.log(u) / bound
        accepted_now = v <= portable.exp(-((proposal - bound) ** 2) / np.array(2, dtype))
        x = pt.switch(accepted, x, proposal)
        return [x, accepted | accepted_now, state], until(pt.all(accepted | accepted_now))

    start = [pt.zeros(sizes, dtype), pt.zeros(sizes, "bool"), state]
    x, _, states = pytensor.scan(
        attempt, outputs_info=start, non_sequences=[bound], n_steps=200, return_updates=False
    )
    return states[-1], x[-1]


def tail(rng, size, bound):
    return NormalTail(dtype=bound.type.dtype).make_node(rng, size, bound).outputs


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_that_are_not_rejected_have_the_distribution(dtype):
    rng, bounds = pt.random.rng("rng"), pt.vector("bounds", dtype=dtype)
    after, x = tail(rng, (4000, 2), bounds)
    f = pytensor.function([rng, bounds], [after, x], mode="ONNX")
    values = np.array([0.5, 3.0], dtype)
    generator, found = f(np.random.default_rng(3), values)
    assert found.dtype == dtype
    for column, low in zip(found.T, values, strict=True):
        assert stats.kstest(column, stats.truncnorm(low, np.inf).cdf).pvalue > 1e-3
    program = export_onnx([rng, bounds], [after, x], verify=False)
    np.testing.assert_array_equal(program(np.random.default_rng(3), values)[1], found)
    assert (f(generator, values)[1] == found).mean() < 0.01


def test_sizes_are_known_at_run_time_and_draws_run_within_loops():
    rng, n, bounds = pt.random.rng("rng"), pt.lscalar("n"), pt.vector("bounds")
    _, rows = pytensor.scan(
        lambda bound, rng: tail(rng, (n,), bound), [bounds], [rng, None], return_updates=False
    )
    f = pytensor.function([rng, n, bounds], rows, mode="ONNX")
    for count in (3, 0):
        found = f(np.random.default_rng(3), count, [1.0, 5.0])
        assert found.shape == (2, count)
        assert (found > np.array([[1.0], [5.0]])).all()


def test_a_definition_that_returns_no_state_is_refused_with_its_line():
    class Forgetful(NormalTail):
        name = "forgetful"

    @define(Forgetful)
    def forgetful(state, sizes, bound):
        return drawn(OpenUniform("float64"), state, sizes)[1]

    rng, bound = pt.random.rng("rng"), pt.scalar("bound")
    x = Forgetful().make_node(rng, (2,), bound).outputs[1]
    line = rf"{re.escape(__file__)}:\d+"
    try:
        with pytest.raises(TypeError, match=f"definition of Forgetful at {line} returns"):
            export_onnx([rng, bound], x)
    finally:
        del DEFINITIONS[Forgetful]
