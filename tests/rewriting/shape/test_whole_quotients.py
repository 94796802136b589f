import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types


def test_batch_of_flattened_images_is_the_batch():
    x = pt.tensor("x", shape=(None, 2, 3))
    program = export_onnx([x], x.reshape((-1, 6)).shape[0])
    assert op_types(program) == ["Shape", "Squeeze"]


def test_size_that_is_given_to_a_reshape_is_the_size_of_the_result():
    x, n = pt.tensor("x", shape=(None, 2, 3)), pt.scalar("n", dtype="int64")
    program = export_onnx([x], x.reshape((x.shape[0], 6)).shape[0])
    assert op_types(program) == ["Shape", "Squeeze"]
    sizes = x.reshape((n, 6)).shape[0]
    for number in (2, -1):
        compare_onnx_and_py([x, n], sizes, [np.zeros((2, 2, 3)), np.int64(number)])


@pytest.mark.parametrize(("factor", "divisor"), [(6, 3), (6, 4), (0, 3), (6, -3)])
def test_quotients_of_sizes(factor, divisor):
    x = pt.matrix("x")
    compare_onnx_and_py([x], (x.shape[1] * factor) // divisor, [np.zeros((2, 5))])


@pytest.mark.each_value
@pytest.mark.parametrize("number", [-7, -4, -1, 3])
@pytest.mark.parametrize("divisor", [1, 2, 3, -2])
def test_sums_of_sizes_are_divided(number, divisor):
    x = pt.matrix("x")
    compare_onnx_and_py([x], (x.shape[1] + number) // divisor, [np.zeros((2, 5))])


def test_number_of_windows_after_windows_takes_a_division_each():
    x = pt.matrix("x")
    once = (x.shape[1] - 3) // 2 + 1
    twice = (once - 5) // 3 + 1
    program = compare_onnx_and_py([x], twice, [np.zeros((2, 12))])
    assert op_types(program).count("Div") == 2
    assert set(op_types(program)) <= {"Shape", "Squeeze", "Add", "Sub", "Div"}


def test_products_that_overflow_are_divided():
    n = pt.scalar("n", dtype="int64")
    compare_onnx_and_py([n], (n * 4) // 4, [np.int64(2**62)])


def test_sizes_that_agree_need_no_check():
    x, labels = pt.tensor("x", shape=(None, 2, 3)), pt.ivector("labels")
    flat = x.reshape((-1, 6))
    one_hot = pt.zeros_like(flat)[pt.arange(flat.shape[0]), labels].set(1.0)
    with pytensor.config.change_flags(floatX="float64"):
        program = export_onnx([x, labels], one_hot)
    assert "If" not in op_types(program)
    assert "Div" not in op_types(program)
