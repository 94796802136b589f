import mpmath
import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.ops.random.draws import (
    NormalPairs,
    OpenUniform,
    RandomBits,
    StandardNormal,
    StandardUniform,
    Threefry,
    state_variable,
)
from tests.conftest import compare_onnx_and_py, op_types
from tests.ops.random.test_draw_reference import KNOWN_ANSWERS

# The counter begins at the second word of a block, and wraps around.
STATE = np.array([5, 7, 2**64 - 3], "uint64")
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


@pytest.mark.slow
def test_draws_are_equal_to_those_of_the_reference_in_every_bit():
    state, n = state_variable("state"), pt.scalar("n", dtype="int64")
    outputs = [result for op in BITS for result in op(state, n)]
    program = compare_onnx_and_py([state, n], outputs, [STATE, 5], rtol=0)
    for count in (0, 1, 2, 100):
        expected = [result for op in BITS for result in op.reference(STATE, count)]
        for a, b in zip(program(STATE, count), expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
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
