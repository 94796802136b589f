"""Samplers give a number the same value wherever it stands, and PyTensor computes them too."""

import subprocess
import sys

import mpmath
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.functions.random.streams import counter_uniforms, keys, uniforms
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.ops.random.draws import (
    LogGamma,
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardBinomial,
    StandardGamma,
    StandardHypergeometric,
    StandardNormal,
    StandardPoisson,
    StandardTruncatedNormal,
    StandardUniform,
    StandardVonMises,
    Threefry,
    state_variable,
)
from tests.conftest import compare_onnx_and_py, op_types
from tests.ops.random.test_draw_reference import KNOWN_ANSWERS

# Samplers compute in Python by their definitions.
import_modules("pytensor_onnx.functions.random")

STATE = np.array([5, 7, 2**64 - 3], "uint64")
CASES = {
    StandardGamma: ([0.01, 0.7, 1.0, 3.0, 1e5, 0.0, np.inf, np.nan],),
    LogGamma: ([0.01, 0.7, 1.0, 3.0, 1e5],),
    StandardPoisson: ([0.0, 0.1, 7.0, 12.0, 1e4, 1e12, np.nan],),
    StandardVonMises: ([0.0, 0.1, 5.0, 1e8, np.nan],),
    StandardTruncatedNormal: (
        [-np.inf, -1.0, 0.1, 5.0, -9.0, 2.0],
        [0.0, 3.0, 0.2, 6.0, -8.0, np.inf],
    ),
    StandardHypergeometric: ([3, 0, 50, 1e6, 7], [4, 2, 90, 1e5, 2], [5, 1, 60, 3e5, 9]),
    StandardBinomial: ([0, 9, 9, 100, 1e9, 5], [0.5, 0.2, 0.9, 0.4, 0.7, np.nan]),
}


FAST = {StandardGamma}


@pytest.mark.parametrize(
    "op_type", [op if op in FAST else pytest.param(op, marks=pytest.mark.slow) for op in CASES]
)
def test_numbers_do_not_depend_on_their_place_or_on_others(op_type):
    columns = [np.tile(np.array(x, float), 20) for x in CASES[op_type]]
    count = len(columns[0])
    state = state_variable("state")
    parameters = [pt.dvector(f"x{i}") for i in range(len(columns))]
    program = compare_onnx_and_py(
        [state, *parameters], op_type()(state, *parameters), [STATE, *columns], rtol=1e-13
    )
    assert op_types(program) == [f"{op_type.__name__}_float64"]
    after, drawn = program(STATE, *columns)
    assert int(after[2]) == (int(STATE[2]) + count) % 2**64
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(columns).any(axis=0))
    middle, first = program(STATE, *(x[:50] for x in columns))
    end, second = program(middle, *(x[50:] for x in columns))
    np.testing.assert_array_equal(np.append(first, second), drawn)
    np.testing.assert_array_equal(end, after)
    changed = [np.where(np.arange(count) < 60, x, 0.5) for x in columns]
    np.testing.assert_array_equal(program(STATE, *changed)[1][:60], drawn[:60])
    after, drawn = program(STATE, *(x[:0] for x in columns))
    assert drawn.shape == (0,)
    np.testing.assert_array_equal(after, STATE)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_attempts_take_the_numbers_of_blocks_of_their_own(count):
    state, k = state_variable("state"), pt.lscalar("k")
    after, key, counters = keys(state, pt.constant(np.int64(3)))
    outputs = [after, *uniforms(k, key, counters, count)]
    if count > 1 and count % 2:
        at_first = counter_uniforms(state, pt.constant(np.int64(3)))
        outputs += uniforms(k, key, counters, count, at_first)
    program = export_onnx([state, k], outputs, verify=False)
    expected_after, _ = reference.bits(STATE, 3)
    counted = STATE[2] + np.arange(3, dtype="uint64")
    for attempt in (0, 1, 7):
        expected = []
        for i in range((count + 1) // 2):
            number = np.array([1 + attempt * ((count + 1) // 2) + i], "uint64")
            words = reference.threefry(STATE[0], STATE[1], counted, number)
            expected += [reference.open_uniform_of(x, 3, "float64") for x in words]
        after, *found = program(STATE, attempt)
        np.testing.assert_array_equal(after, expected_after)
        np.testing.assert_array_equal(found[:count], expected[:count])
        if len(found) > count:
            if attempt == 0:
                expected[count - 1] = reference.open_uniform(STATE, 3, "float64")[1]
            np.testing.assert_array_equal(found[count:], expected[:count])


def test_logarithms_are_those_of_the_same_numbers():
    state, shape = state_variable("state"), pt.dvector("shape")
    outputs = [op(state, shape)[1] for op in (StandardGamma(), LogGamma())]
    x, log_x = export_onnx([state, shape], outputs, verify=False)(
        STATE, np.array([1e-5, 0.01, 0.3, 1.0, 2.0, 1e6] * 50)
    )
    assert (np.isfinite(log_x)).all()
    np.testing.assert_allclose(x, np.exp(log_x), rtol=1e-10)


# The counter begins at the second word of a block, and wraps around.
BITS = [RandomBits(), StandardUniform("float64"), StandardUniform("float32")]
BITS += [OpenUniform("float64"), OpenUniform("float32")]


@pytest.mark.parametrize("rank", [0, 1])
def test_threefry_gives_the_published_answers(rank):
    words = [pt.tensor(f"w{i}", dtype="uint64", shape=(None,) * rank) for i in range(4)]
    columns = np.array([(*key, *counter) for counter, key, _ in KNOWN_ANSWERS], "uint64").T
    values = list(columns if rank else columns[:, 0])
    program = compare_onnx_and_py(words, Threefry()(*words), values)
    expected = np.array([result for *_, result in KNOWN_ANSWERS], "uint64").T
    if rank:
        np.testing.assert_array_equal(program(*columns), expected)
    else:
        results = [program(*words) for words in columns.T]
        np.testing.assert_array_equal(np.transpose(results), expected)


def test_draws_are_equal_to_those_of_the_reference_in_every_bit():
    state, n = state_variable("state"), pt.scalar("n", dtype="int64")
    outputs = [result for op in BITS for result in op(state, n)]
    program = compare_onnx_and_py([state, n], outputs, [STATE, 5], rtol=0)
    for count in (0, 1, 2, 100):
        expected = [result for op in BITS for result in op.reference(STATE, count)]
        for a, b in zip(program(STATE, count), expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_those_of_the_reference(dtype):
    state, n = state_variable("state"), pt.scalar("n", dtype="int64")
    tolerance = 8 * np.finfo(dtype).eps
    for count in (0, 1, 6, 101):
        program = compare_onnx_and_py(
            [state, n], StandardNormal(dtype)(state, n), [STATE, count], rtol=tolerance
        )
    assert op_types(program) == [f"StandardNormal_{dtype}"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_pairs_of_normal_numbers_do_not_depend_on_how_many_follow(dtype):
    state, n = state_variable("state"), pt.scalar("n", dtype="int64")
    draws = NormalPairs(dtype)(state, n)
    tolerance = 8 * np.finfo(dtype).eps
    program = compare_onnx_and_py([state, n], draws, [STATE, 101], rtol=tolerance)
    after, many = program(STATE, 101)
    for count in (0, 1, 6, 101):
        expected_after, expected = NormalPairs(dtype).reference(STATE, count)
        after, few = program(STATE, count)
        np.testing.assert_array_equal(after, expected_after)
        np.testing.assert_allclose(few, expected, rtol=tolerance)
        np.testing.assert_array_equal(few, many[:count])
    others = StandardNormal(dtype).reference(STATE, 2)[1]
    np.testing.assert_allclose(many[:2], others, rtol=tolerance)


def test_the_cipher_is_one_function_of_the_model():
    state = state_variable("state")
    after, x = StandardUniform("float32")(state, 3)
    _, y = StandardNormal("float64")(after, 3)
    program = export_onnx([state], [x, y], verify=False)
    assert op_types(program) == ["StandardUniform_float32", "StandardNormal_float64"]
    functions = {function.name: function for function in program.model.functions.values()}
    for name in op_types(program):
        assert [node.op_type for node in functions[name]].count("Threefry_uint64") == 1
    cipher = functions["Threefry_uint64"]
    operators = {node.op_type for node in cipher}
    assert operators == {"Add", "BitShift", "BitwiseXor", "Constant", "Mul"}


def test_inlined_functions_draw_the_same():
    state = state_variable("state")
    _, x = StandardUniform("float64")(state, 4)
    program = export_onnx([state], x, verify=False, inline_functions=True)
    assert not program.model.functions
    np.testing.assert_array_equal(program(STATE), StandardUniform("float64").reference(STATE, 4)[1])


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 23), ("float64", 52)])
def test_open_uniform_numbers_are_as_far_from_zero_as_from_one(dtype, bits):
    _, drawn = OpenUniform(dtype).reference(STATE, 10_000)
    steps = drawn.astype("float64") * 2.0**bits
    np.testing.assert_array_equal(steps % 1, 0.5)
    assert 0 < drawn.min() < drawn.max() < 1


def test_normal_numbers_are_right_to_a_few_units_in_the_last_place():
    _, drawn = StandardNormal("float64")(state_variable("state"), 200)
    found = export_onnx([drawn.owner.inputs[0]], drawn, verify=False)(STATE)
    distance, turn = 1 - np.array(StandardUniform("float64").reference(STATE, 200)[1]).reshape(
        2, -1
    )
    for i in range(100):
        radius = mpmath.sqrt(-2 * mpmath.log(mpmath.mpf(float(distance[i]))))
        half_turns = 2 * (1 - mpmath.mpf(float(turn[i])))
        for x, exact in (
            (found[i], radius * mpmath.cospi(half_turns)),
            (found[100 + i], radius * mpmath.sinpi(half_turns)),
        ):
            assert abs(x - exact) <= 4 * np.spacing(abs(float(exact)))


def test_draws_at_counters_find_the_definition_of_their_sampler() -> None:
    """A process that has not drawn before has imported no definition of a sampler."""
    code = """
import pytensor.tensor as pt
from pytensor_onnx.functions.random.streams import keyed
from pytensor_onnx.ops.random.draws import StandardPoisson
key, counters, mean = pt.vector(dtype="uint64"), pt.vector(dtype="uint64"), pt.vector()
print(keyed(key, counters, mean, sampler=StandardPoisson()).type.ndim)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"
