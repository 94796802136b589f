import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

X = np.array([0.5, -1.0, 2.0, 3.0])


def assert_writes(inputs, outputs, values, count):
    program = compare_onnx_and_py(inputs, outputs, values)
    assert op_types(program).count("ScatterND") == count


@pytest.mark.few(1)
@pytest.mark.parametrize("n_terms", [3, 30])
def test_gradient_writes_each_element_once_however_often_it_is_read(n_terms):
    x, i = pt.vector("x"), pt.lscalar("i")
    cost = sum((x[k % 2] - k) ** 2 * x[i] for k in range(n_terms))
    assert_writes([x, i], [pt.grad(cost, x)], [X, 1], 3)


def test_increments_of_arrays_other_than_zeros_are_kept():
    x, y = pt.vectors("x", "y")
    total = x[0].inc(y[1]) + y[0].inc(2.0) + x[1].inc(3.0) + x * y
    assert_writes([x, y], [total], [X, X[::-1]], 2)


def test_increments_behind_a_factor_of_one_are_joined():
    x, y = pt.vectors("x", "y")
    total = pt.ones_like(x)[0] * x[0].inc(y[1]) + y[0].inc(2.0)
    assert_writes([x, y], [total], [X, X[::-1]], 1)


def test_values_of_repeated_index_arrays_accumulate():
    x, index = pt.vector("x"), pt.lvector("index")
    total = x[index].inc(1.5) + x[index].inc(x[0]) + x[index].inc(x[index])
    assert_writes([x, index], [total], [X, np.array([1, 1, -1])], 1)


def test_values_that_an_index_broadcasts_are_added_in_their_own_size():
    x, y, one = pt.vector("x"), pt.vector("y"), pt.vector("one", shape=(1,))
    total = x[:3].inc(y) + x[:3].inc(one) + x[:3].inc(1.0) + x[:3].inc(2.0)
    compare_onnx_and_py([x, y, one], [total], [X, X[:3], X[:1]])


def test_written_elements_and_arrays_with_other_readers_keep_their_place():
    x = pt.vector("x")
    replaced = x[0].inc(1.0)[0].set(7.0)[1].inc(x[2])
    shared = x[2].inc(5.0)
    compare_onnx_and_py([x], [replaced + shared + x[0].inc(2.0), shared], [X])


def test_rows_that_a_sum_broadcasts_stay_rows():
    row, x = pt.row("row"), pt.matrix("x")
    compare_onnx_and_py([row, x], [row[:, 0].inc(1.0) + x], [X[None], np.outer(X[:3], X)])


def test_narrow_values_are_added_to_a_wide_array_one_by_one():
    x, y = pt.lvector("x"), pt.vector("y", dtype="int8")
    total = x[0].inc(y[0]) + x[0].inc(y[1])
    compare_onnx_and_py([x, y], [total], [np.arange(3), np.array([100, 101], "int8")])
