"""States in NumPy's bit generators, and NumPy's draws from them."""

import copy
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, strategies as st

from pytensor_onnx.bit_generators import holding
from pytensor_onnx.ops.random.draws import spawn
from pytensor_onnx.random import generator_of, state_of
from tests.conftest import PY

NAMES = ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"]
WORDS = st.tuples(*[st.integers(0, 2**64 - 1)] * 3)
STATE = np.array([2**64 - 1, 5, 7], "uint64")


def kind(generator):
    return type(generator.bit_generator).__name__


@pytest.mark.parametrize("name", NAMES)
@given(words=WORDS)
def test_a_bit_generator_holds_any_state(name, words):
    state = np.array(words, "uint64")
    generator = generator_of(state, name)
    assert kind(generator) == name
    np.testing.assert_array_equal(state_of(generator), state)


@pytest.mark.parametrize("name", NAMES)
def test_copies_hold_the_state(name):
    generator = generator_of(STATE, name)
    other = np.random.Generator(getattr(np.random, name)(0))
    other.bit_generator.state = generator.bit_generator.state
    for same in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator)), other):
        np.testing.assert_array_equal(state_of(same), STATE)
        np.testing.assert_array_equal(same.random(3), copy.deepcopy(generator).random(3))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 2, 624, 625])
def test_draws_of_numpy_give_another_state(name, count):
    generator = generator_of(STATE, name)
    generator.bit_generator.random_raw(count)
    assert state_of(generator)[0] != STATE[0]
    np.testing.assert_array_equal(state_of(generator), state_of(copy.deepcopy(generator)))


@pytest.mark.parametrize("name", ["MT19937", "PCG64", "PCG64DXSM", "Philox"])
def test_a_jump_gives_another_state(name):
    jumped = np.random.Generator(holding((1, 2, 3), name).jumped())
    assert not np.array_equal(state_of(jumped), [1, 2, 3])


@pytest.mark.parametrize("name", NAMES)
def test_numpy_draws_unrelated_numbers_from_successive_counters(name):
    """Of 2,000 generators, the correlations of the first draws are below 4.5 deviations."""
    generators = [generator_of(np.array([5, 6, i], "uint64"), name) for i in range(2_000)]
    x = np.stack([generator.random(4) for generator in generators])
    assert len(set(x.ravel())) == x.size
    assert np.all(abs(x.mean(axis=0) - 0.5) < 4.5 * np.sqrt(1 / 12 / len(x)))
    correlations = np.corrcoef(np.hstack([x[1:], x[:-1]]).T) - np.eye(8)
    assert np.all(abs(correlations) < 4.5 / np.sqrt(len(x)))


@pytest.mark.parametrize("name", NAMES)
def test_numpy_spawns_from_a_state(name):
    children = [generator_of(state, name).spawn(2) for state in (STATE, STATE + np.uint64(1))]
    assert len({child.random() for pair in children for child in pair}) == 4


@pytest.fixture(params=NAMES)
def rng(request):
    bit_generator = getattr(np.random, request.param)(3)
    return pytensor.shared(np.random.Generator(bit_generator), name="rng")


def test_a_shared_generator_keeps_its_class(rng):
    name = kind(rng.get_value())
    first = state_of(rng.get_value())
    following, x = rng.uniform(size=3)
    draw = pytensor.function([], x, updates={rng: following}, mode="ONNX")
    numpy = pytensor.function([], x, updates={rng: following}, mode=PY)
    drawn = [draw()]
    assert kind(rng.get_value()) == name
    np.testing.assert_array_equal(state_of(rng.get_value())[:2], first[:2])
    rng.set_value(rng.get_value())
    pickled = pickle.loads(pickle.dumps(draw))
    drawn.append(draw())
    np.testing.assert_array_equal(drawn[-1], pickled())
    drawn += [numpy(), numpy(), draw(), numpy()]
    assert kind(rng.get_value()) == name
    assert len(set(np.concatenate(drawn))) == 18
    # A checkpoint is the state in a bit generator of the same class.
    saved = rng.get_value().bit_generator.state
    expected = draw(), draw()
    rng.get_value(borrow=True).bit_generator.state = saved
    np.testing.assert_array_equal([draw(), draw()], expected)


def test_returned_generators_have_the_class_of_the_argument():
    symbol = pt.random.rng("rng")
    after, [child] = spawn(symbol, 1)
    f = pytensor.function([symbol], [*after.uniform(), child], mode="ONNX")
    following, _, child = f(np.random.Generator(np.random.SFC64(1)))
    assert kind(following) == kind(child) == "SFC64"


def test_other_bit_generators_become_the_one_of_numpy_s_default():
    generator = generator_of(STATE, "LXM")
    assert kind(generator) == kind(np.random.default_rng())
    np.testing.assert_array_equal(state_of(generator), STATE)
