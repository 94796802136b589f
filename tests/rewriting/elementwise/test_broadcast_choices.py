import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float64"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_arrays_of_a_list_are_chosen_by_number(dtype, count):
    numbers = pt.lmatrix("numbers")
    arrays = [pt.tensor(f"x{i}", dtype=dtype, shape=(None, None)) for i in range(count)]
    rng = np.random.default_rng(1)
    values = [rng.integers(0, 2, (2, 3)).astype(dtype) for _ in range(count)]
    chosen = pt.choose(numbers, arrays)
    compare_onnx_and_py([numbers, *arrays], chosen, [rng.integers(0, count, (2, 3)), *values])


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_modes(mode, dtype):
    numbers = pt.tensor("numbers", dtype=dtype, shape=(None,))
    x, y, z = pt.vectors("xyz")
    values = np.array([0, 1, 2, 3, 100]) - (0 if dtype == "uint8" else 2)
    arrays = [i + np.arange(5.0) for i in range(3)]
    chosen = pt.choose(numbers, [x, y, z], mode=mode)
    compare_onnx_and_py([numbers, x, y, z], chosen, [values.astype(dtype), *arrays])


@pytest.mark.parametrize("bad", [-1, 2])
def test_a_number_that_is_no_choice_raises(bad):
    numbers, x, y = pt.lvector("numbers"), *pt.vectors("xy")
    program = compile_onnx([numbers, x, y], pt.choose(numbers, [x, y]), verify=False)
    with pytest.raises(ValueError, match="invalid entry"):
        program(np.array([0, bad]), np.ones(2), np.ones(2))


@pytest.mark.each_value
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 2), (2, 2), (1, 2)),
        ((1, 3), (2, 3), (1, 1)),
        ((2, 1), (1, 3), (2, 1)),
        ((1, 1), (0, 1), (1, 2)),
    ],
)
def test_sizes_of_one_broadcast_when_the_graph_runs(mode, shapes):
    numbers, x, y = pt.lmatrix("numbers"), *pt.matrices("xy")
    rng = np.random.default_rng(1)
    values = [rng.integers(0, 2, shapes[0]), *(rng.normal(size=shape) for shape in shapes[1:])]
    chosen = pt.choose(numbers, [x, y], mode=mode)
    compare_onnx_and_py([numbers, x, y], [chosen, chosen.sum(axis=0)], values)


@pytest.mark.parametrize("shape", [(), (3,), (1, 3)])
def test_arrays_of_more_axes_than_the_numbers_have(shape):
    numbers, x, y = pt.tensor("numbers", dtype="int64", shape=shape), *pt.tensor3s("xy")
    values = [np.ones(shape, "int64"), np.zeros((2, 1, 3)), np.ones((1, 2, 1))]
    compare_onnx_and_py([numbers, x, y], pt.choose(numbers, [x, y]), values)


def test_a_choice_in_a_loop():
    numbers, x, y = pt.lmatrix("numbers"), *pt.vectors("xy")
    chosen = pytensor.scan(lambda row: pt.choose(row, [x, y]) * 2, [numbers], return_updates=False)
    values = [np.array([[0, 1], [1, 1]]), np.array([1.0, 2.0]), np.array([3.0])]
    compare_onnx_and_py([numbers, x, y], chosen, values)
