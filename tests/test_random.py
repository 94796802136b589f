"""Generators in mode ONNX, in exported models, in copies, and beside other modes."""

import copy
import pickle

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, strategies as st
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, export_function_onnx, export_onnx
from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.random import generator_of, state_of
from tests.conftest import PY

SEED = 1


def uniform(state, n):
    """Return the next state and uniform numbers, as the reference draws them."""
    return reference.uniform(np.asarray(state, "uint64"), n, "float64")


@pytest.fixture
def rng():
    return pt.random.shared_rng(seed=SEED, name="rng")


@pytest.fixture
def draw(rng):
    following, x = rng.uniform(size=3)
    return pytensor.function([], x, updates={rng: following}, mode="ONNX")


@pytest.mark.parametrize("bit_generator", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_a_generator_seeds_a_state_and_stays_as_it_is(bit_generator):
    generator = np.random.Generator(getattr(np.random, bit_generator)(SEED))
    state = state_of(generator)
    assert state.dtype == "uint64"
    np.testing.assert_array_equal(state, state_of(generator.bit_generator.state))
    np.testing.assert_array_equal(state[:2], generator.integers(2**64, size=2, dtype="uint64"))
    assert state[2] == 0
    assert not np.array_equal(state, state_of(generator))


def test_a_generator_holds_a_state():
    state = np.array([2**64 - 1, 5, 2**64 - 1], "uint64")
    generator = generator_of(state)
    for same in (generator, copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))):
        np.testing.assert_array_equal(state_of(same), state)
    generator.random()  # NumPy draws other numbers from it, and what follows differs
    assert not np.array_equal(state_of(generator), state)


def test_every_call_draws_on_from_the_state_of_the_shared_variable(rng, draw):
    state = state_of(SEED)
    for _ in range(3):
        state, expected = uniform(state, 3)
        np.testing.assert_array_equal(draw(), expected)
        assert isinstance(rng.get_value(), np.random.Generator)
        np.testing.assert_array_equal(state_of(rng.get_value()), state)


def test_a_generator_may_be_left_that_nothing_draws_from(rng):
    x = pt.zeros_like(rng.uniform(size=3)[1])
    np.testing.assert_array_equal(pytensor.function([], x, mode="ONNX")(), np.zeros(3))
    np.testing.assert_array_equal(export_onnx([], x)(), np.zeros(3))


def test_setting_the_value_seeds_again(rng, draw):
    first = draw()
    assert not np.array_equal(draw(), first)
    rng.set_value(np.random.default_rng(SEED))
    np.testing.assert_array_equal(draw(), first)
    rng.set_value(seed=SEED)
    np.testing.assert_array_equal(draw(), first)


def test_without_an_update_every_call_draws_the_same(rng):
    f = pytensor.function([], rng.uniform(size=3)[1], mode="ONNX")
    np.testing.assert_array_equal(f(), f())
    np.testing.assert_array_equal(f(), uniform(state_of(SEED), 3)[1])
    rng.set_value(seed=SEED + 1)
    np.testing.assert_array_equal(f(), uniform(state_of(SEED + 1), 3)[1])


def test_two_functions_draw_from_one_generator_in_turn(rng, draw):
    following, x = rng.uniform(size=2)
    other = pytensor.function([], x, updates={rng: following}, mode="ONNX")
    _, expected = uniform(state_of(SEED), 8)
    np.testing.assert_array_equal([*draw(), *other(), *draw()], expected)


def test_a_generator_may_serve_another_mode_in_between(rng, draw):
    following, x = rng.uniform(size=3)
    numpy = pytensor.function([], x, updates={rng: following}, mode=PY)
    drawn = [*draw(), *numpy(), *draw(), *numpy(), *draw()]
    assert len(set(drawn)) == 15


def test_copies_draw_on_by_themselves(rng, draw):
    draw()
    state = state_of(rng.get_value())
    pickled = pickle.loads(pickle.dumps(draw))
    _, expected = uniform(state, 6)
    np.testing.assert_array_equal([*pickled(), *pickled()], expected)
    np.testing.assert_array_equal([*draw(), *draw()], expected)
    # `copy` shares shared variables.
    _, expected = uniform(state_of(rng.get_value()), 6)
    np.testing.assert_array_equal([*draw.copy()(), *draw()], expected)


def test_a_copy_takes_another_generator(rng, draw):
    other = pt.random.shared_rng(seed=5)
    np.testing.assert_array_equal(draw.copy(swap={rng: other})(), uniform(state_of(5), 3)[1])


def test_a_generator_as_an_argument_and_a_result():
    symbol = pt.random.rng("rng")
    following, x = symbol.uniform(size=3)
    f = pytensor.function([symbol], [following, x], mode="ONNX")
    generator, first = f(np.random.default_rng(SEED))
    _, second = f(generator)
    np.testing.assert_array_equal([*first, *second], uniform(state_of(SEED), 6)[1])


@pytest.mark.parametrize("mode", [Mode(ONNXLinker(), None), Mode(ONNXLinker(freeze=True))])
def test_other_options_of_the_linker_draw_the_same(rng, mode):
    following, x = rng.uniform(size=3)
    f = pytensor.function([], x, updates={rng: following}, mode=mode)
    np.testing.assert_array_equal([*f(), *f()], uniform(state_of(SEED), 6)[1])


@pytest.mark.slow
def test_streams_with_default_updates():
    stream = pt.random.utils.RandomStream(seed=3)
    f = pytensor.function([], [stream.normal(size=2), stream.normal(size=2)], mode="ONNX")
    drawn = np.concatenate([*f(), *f()])
    assert len(set(drawn)) == 8


def test_the_state_of_an_exported_model_goes_in_and_out(rng):
    following, x = rng.uniform(size=3, dtype="float64")
    program = export_onnx([], x, updates={rng: following})
    assert "equal to PyTensor" in str(program.verification)
    np.testing.assert_array_equal(program.state["rng"], state_of(SEED))
    _, expected = uniform(state_of(SEED), 6)
    np.testing.assert_array_equal([*program(), *program()], expected)


def test_an_exported_generator_without_an_update_draws_the_same_with_a_warning(rng):
    with pytest.warns(UserWarning, match=r"rng: every run .* draws the same"):
        program = export_onnx([], rng.uniform(size=3)[1])
    np.testing.assert_array_equal(program(), uniform(state_of(SEED), 3)[1])
    np.testing.assert_array_equal(program(), program())


def test_a_plain_runtime_seeds_by_a_key_and_a_counter(rng, tmp_path):
    following, x = rng.uniform(size=3)
    export_onnx([], x, tmp_path / "m.onnx", updates={rng: following})
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    [state] = session.get_inputs() or session.get_overridable_initializers()
    assert (state.name, state.type, state.shape) == ("rng", "tensor(uint64)", [3])
    first, _ = session.run(None, {})
    np.testing.assert_array_equal(first, uniform(state_of(SEED), 3)[1])
    key = np.random.default_rng(7).integers(2**64, size=2, dtype="uint64")
    first, following = session.run(None, {"rng": np.array([*key, 0], "uint64")})
    second, _ = session.run(None, {"rng": following})
    np.testing.assert_array_equal([*first, *second], uniform(state_of(7), 6)[1])


def test_a_generator_as_an_input_of_an_exported_model():
    symbol = pt.random.rng("rng")
    following, x = symbol.uniform(size=3)
    program = export_onnx([symbol], [following, x])
    state, first = program(np.random.default_rng(SEED))
    np.testing.assert_array_equal(state, uniform(state_of(SEED), 3)[0])
    np.testing.assert_array_equal([*first, *program(state)[1]], uniform(state_of(SEED), 6)[1])


@pytest.mark.parametrize("mode", ["ONNX", "FAST_COMPILE", "NUMBA"])
def test_a_function_is_exported_with_its_generator(rng, mode):
    following, x = rng.uniform(size=3)
    function = pytensor.function([], x, updates={rng: following}, mode=mode)
    program = export_function_onnx(function)
    np.testing.assert_array_equal([*program(), *program()], uniform(state_of(SEED), 6)[1])


@pytest.mark.parametrize("optimization", ["none", "all"])
def test_the_runtime_neither_folds_nor_merges_draws(rng, optimization):
    from pytensor_onnx import SessionOptions

    second, x = rng.uniform(size=3)
    third, y = second.uniform(size=3)
    program = export_onnx(
        [],
        [x, y],
        updates={rng: third},
        session_options=SessionOptions(optimization=optimization),
    )
    drawn = np.concatenate([*program(), *program()])
    np.testing.assert_array_equal(drawn, uniform(state_of(SEED), 12)[1])


def test_equal_draws_of_one_generator_are_one_and_of_two_are_two(rng):
    other = pt.random.shared_rng(seed=SEED + 1)
    first, x = rng.uniform(size=3)
    with pytest.warns(UserWarning, match="already been used"):
        _, same = rng.uniform(size=3)
    following, different = other.uniform(size=3)
    f = pytensor.function(
        [], [x, same, different], updates={rng: first, other: following}, mode="ONNX"
    )
    for _ in range(2):
        a, b, c = f()
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)


@pytest.mark.slow
def test_the_state_counts_draws_that_nobody_reads(rng):
    # PyTensor's own rewrite would leave them out, and change what follows.
    second, _ = rng.uniform(size=4)
    third, x = second.uniform(size=2)
    f = pytensor.function([], x, updates={rng: third}, mode="ONNX")
    np.testing.assert_array_equal(f(), uniform(state_of(SEED), 6)[1][4:])


def test_draws_of_long_runs_are_independent(rng):
    second, x = rng.normal(size=20_000)
    third, y = second.normal(size=20_000)
    a, b = pytensor.function([], [x, y], updates={rng: third}, mode="ONNX")()
    for first, then in ((a, b), (a[1:], a[:-1]), (a[10_000:], a[:10_000])):
        assert abs(np.corrcoef(first, then)[0, 1]) < 4 / np.sqrt(len(first))


SIZES = pt.lvector("sizes")
GENERATOR = pt.random.rng("generator")
FOLLOWING, DRAWN = GENERATOR.uniform(size=(SIZES[0], 2, SIZES[1]))
FOLLOWING, SECOND = FOLLOWING.normal(size=SIZES[0], dtype="float32")
BOTH = pytensor.function([GENERATOR, SIZES], [FOLLOWING, DRAWN, SECOND], mode="ONNX")


@given(
    state=st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3),
    sizes=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_any_state_draws_any_size_as_the_reference(state, sizes):
    generator = generator_of(np.array(state, "uint64"))
    following, x, y = BOTH(generator, np.array(sizes))
    expected_state, numbers = uniform(state, 2 * sizes[0] * sizes[1])
    np.testing.assert_array_equal(x, numbers.reshape((sizes[0], 2, sizes[1])))
    expected_state, numbers = reference.normal(expected_state, sizes[0], "float32")
    np.testing.assert_allclose(y, numbers, rtol=1e-6)
    np.testing.assert_array_equal(state_of(following), expected_state)
