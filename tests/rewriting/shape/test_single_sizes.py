import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mean_reads_the_size_it_divides_by(dtype):
    x = pt.matrix("x", dtype=dtype)
    value = np.arange(6, dtype=dtype).reshape(2, 3)
    for axis in (0, 1):
        program = compare_onnx_and_py([x], x.mean(axis=axis), [value])
        accumulated = ["Cast"] * 2 if dtype == "float32" else []
        assert sorted(op_types(program)) == sorted(
            ["Cast", "Div", "ReduceSum", "Shape", "Squeeze", *accumulated]
        )


def test_mean_divides_by_a_number_where_the_sizes_are_known():
    x = pt.tensor("x", shape=(None, 3, 2))
    program = compare_onnx_and_py([x], x.mean(axis=(1, 2)), [np.arange(12.0).reshape(2, 3, 2)])
    assert op_types(program) == ["ReduceSum", "Mul"]


@pytest.mark.parametrize("position", [0, 1, -1])
def test_an_element_of_a_cast_vector_is_the_cast_element(position):
    n, m = pt.lscalars("n", "m")
    result = pt.stack([n, m]).astype("float32")[position] * 2
    program = compare_onnx_and_py([n, m], result, [2**25 + 1, -3])
    assert op_types(program) == ["Cast", "Mul"]


def test_an_element_at_a_position_from_an_input_is_gathered():
    n, i = pt.lscalars("n", "i")
    compare_onnx_and_py([n, i], pt.stack([n, n * 2]).astype("float32")[i], [3, 1])


def test_the_size_of_all_is_a_product_of_sizes():
    x = pt.tensor("x", shape=(None, 3, None))
    first, *others = ([np.ones(shape)] for shape in [(2, 3, 4), (0, 3, 4), (2, 3, 0)])
    program = compare_onnx_and_py([x], x.size, first, also=others)
    assert not {"Loop", "ReduceProd", "Concat", "Slice"} & set(op_types(program))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float64"])
def test_the_product_of_a_vector_made_of_numbers(dtype):
    n, m = pt.scalar("n", dtype=dtype), pt.scalar("m", dtype=dtype)
    values = [np.array(number, dtype) for number in (100, 99)]
    compare_onnx_and_py([n, m], [pt.stack([n, m]).prod(), pt.stack([n]).prod()], values)


def test_shape_of_a_part_of_a_split_is_read_from_the_whole():
    x = pt.tensor3("x")
    first, second = pt.split(x, [2, 4], axis=2)
    results = [part.reshape((*part.shape[:2], -1, 2)).sum(axis=1) for part in (first, second)]
    program = compare_onnx_and_py([x], results, [np.arange(18.0).reshape(3, 1, 6)])
    assert "ScatterND" not in op_types(program)
    assert op_types(program).count("Reshape") == 2


@pytest.mark.parametrize("position", [0, 1, 2, -1])
def test_element_of_a_vector_in_which_elements_were_replaced(position):
    x, v = pt.matrix("x"), pt.lscalar("v")
    vector = pt.stack([v, v + 1, v + 2])[::1]
    replaced = pt.set_subtensor(pt.set_subtensor(vector[1], 7)[2], v)
    added = pt.inc_subtensor(vector[1], 7)
    outputs = [replaced[position] * x.shape[0], added[position]]
    compare_onnx_and_py([x, v], outputs, [np.ones((3, 1)), 5])
