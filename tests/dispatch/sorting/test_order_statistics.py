import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx.ops.sorting import OrderStatistics
from tests.conftest import compare_onnx_and_py

RNG = np.random.default_rng(1)
PLACES = {
    "ends": (100, [0, 1, 2, 97, 98, 99]),
    "middle": (100, [49, 50]),
    "runs": (100, [4, 5, 20, 49, 50, 80, 95]),
    "last": (30, [29]),
    "all": (5, [0, 2, 4]),
    "one": (1, [0]),
}


@pytest.mark.parametrize("name", PLACES)
def test_order_statistics_are_elements_of_the_sorted_array(name):
    size, places = PLACES[name]
    x = pt.matrix("x")
    values = np.round(RNG.normal(size=(size, 7)), 1)
    program = compare_onnx_and_py([x], OrderStatistics(size, places)(x), [values])
    np.testing.assert_array_equal(program(values)[0], np.sort(values, axis=0)[places])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_column_with_nan_has_no_order(dtype):
    x = pt.tensor3("x", dtype=dtype)
    values = RNG.normal(size=(50, 3, 2)).astype(dtype)
    # Infinities of both signs in one column have an order.
    values[3, 0, 0], values[7, 1, 0], values[8, 1, 0] = np.nan, np.inf, -np.inf
    values[9, 2, 1] = np.finfo(dtype).max
    values[10, 2, 1] = np.finfo(dtype).max
    program = compare_onnx_and_py([x], OrderStatistics(50, [0, 24, 25, 49])(x), [values])
    assert np.isnan(program(values)[0]).sum() == 4


def test_few_places_are_selected_and_not_sorted():
    x = pt.matrix("x", shape=(200, None))
    program = compare_onnx_and_py(
        [x], OrderStatistics(200, [3, 196])(x), [RNG.normal(size=(200, 4))]
    )
    sizes = [node.outputs[0].shape[0] for node in program.model.graph if node.op_type == "TopK"]
    assert sorted(sizes) == [4, 4]
