import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

X = np.array([[1.5, -2.0, np.nan], [0.25, 4.0, -8.0]])


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1), None])
@pytest.mark.parametrize("f", [pt.sum, pt.prod])
def test_reduction_that_keeps_its_axes_is_one_node(f, axis):
    x = pt.tensor("x", shape=(2, 3))
    program = compare_onnx_and_py([x], f(x, axis=axis, keepdims=True), [np.nan_to_num(X)])
    assert len(op_types(program)) == 1


@pytest.mark.parametrize("f", [pt.max, pt.min, pt.argmax])
def test_guarded_extremum_that_keeps_its_axes_is_right(f):
    x = pt.tensor("x", shape=(2, 3))
    program = compare_onnx_and_py([x], f(x, axis=1, keepdims=True), [X])
    assert "Unsqueeze" not in op_types(program)


@pytest.mark.parametrize(
    "expression",
    [
        lambda total: [total[None], total],
        lambda total: [total[None, :, None]],
        lambda total: [total[:, None]],
        lambda total: [total[None] + 1, total * 2],
    ],
)
def test_other_axes_and_other_uses_are_left_alone(expression):
    x = pt.matrix("x")
    compare_onnx_and_py([x], expression(x.sum(axis=0)), [np.nan_to_num(X)])


def test_axes_of_higher_rank_are_counted_from_the_front():
    x = pt.tensor4("x")
    value = np.arange(24.0).reshape(2, 3, 2, 2)
    program = compare_onnx_and_py([x], x.sum(axis=(1, -1), keepdims=True), [value])
    assert op_types(program) == ["ReduceSum"]
