"""Draws are the reference sampler's, in loops too."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.random import state_of
from tests.fuzz.evaluation import Evaluation
from tests.fuzz.quietness import quiet


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_loop_goes_on_drawing_from_where_a_step_ended(dtype):
    rng = pt.random.shared_rng(seed=3)
    _, drawn = pytensor.scan(
        lambda r: r.normal(1.0, 2.0, size=(2,), dtype=dtype),
        outputs_info=[rng, None],
        n_steps=3,
        return_updates=False,
    )
    state, numbers = state_of(3), []
    for _ in range(3):
        state, row = reference.normal(state, 2, dtype)
        numbers.append(1 + 2 * row)
    evaluation = Evaluation()
    evaluation.give(rng, rng.get_value())
    with quiet():
        evaluation.evaluate([drawn])
    np.testing.assert_allclose(evaluation.expected(drawn), numbers, rtol=1e-6)
    assert evaluation.value(drawn).dtype == dtype


def test_probabilities_that_are_none_are_refused():
    rng = pytensor.shared(np.random.default_rng(3), name="rng")
    p = pt.vector("p")
    _, drawn = rng.bernoulli(p)
    evaluation = Evaluation()
    evaluation.give(rng, rng.get_value())
    evaluation.give(p, np.array([0.5, np.nan]))
    with quiet(), pytest.raises(ValueError, match="p is NaN"):
        evaluation.evaluate([drawn])
