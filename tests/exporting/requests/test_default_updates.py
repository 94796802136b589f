import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import PyTensorONNXError
from pytensor_onnx.exporting.requests.reference_graph import default_updates


@pytest.fixture
def rng():
    return pt.random.shared_rng(seed=0, name="rng")


def test_draws_in_a_row_and_loops_are_followed(rng):
    second, x = rng.normal()
    third, rows = pytensor.scan(
        lambda rng: rng.normal(), outputs_info=[second, None], n_steps=3, return_updates=False
    )
    fourth, y = third.normal()
    assert default_updates([x, rows, y], {}) == {rng: fourth}
    assert default_updates([x, y.sum()], {}) == {rng: fourth}
    assert default_updates([x], {}) == {rng: second}
    assert default_updates([x], {rng: third}) == {}


@pytest.mark.filterwarnings("ignore:RandomGeneratorVariable")
def test_a_generator_that_is_drawn_from_twice_is_refused(rng):
    outputs = [rng.normal()[1], rng.uniform()[1]]
    with pytest.raises(PyTensorONNXError, match=r"generator rng .* add it to the updates"):
        default_updates(outputs, {})


def test_a_generator_that_a_loop_only_reads_is_refused(rng):
    x = pytensor.scan(
        lambda rng: rng.normal()[1], non_sequences=[rng], n_steps=2, return_updates=False
    )
    with pytest.raises(PyTensorONNXError, match="add it to the updates"):
        default_updates([x], {})
