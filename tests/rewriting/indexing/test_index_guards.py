"""Shapes and indices are those of the graph as it is written: reshapes, diagonals, slices."""

import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import PyTensorONNXError
from tests.conftest import compare_onnx_and_py, op_types


def test_without_elements_a_size_may_change():
    x, y = pt.tensor("x", shape=(None, 0)), pt.tensor("y", shape=(1, None))
    results = [pt.reshape(x, (1, 0)), pt.repeat(x.T, 0, axis=1), pt.repeat(y, 0, axis=1)]
    compare_onnx_and_py([x, y], results, [np.zeros((5, 0)), np.ones((1, 5))])


def test_a_size_beside_a_zero_is_not_computed():
    x, n = pt.vector("x", shape=(0,)), pt.lvector("n")
    y = pt.split_dims(x, axis=0, shape=(n.shape[0], 3, 0))
    compare_onnx_and_py([x, n], [y[-1:2], y.shape[0]], [np.zeros(0), np.arange(3)])


def test_a_size_beside_one_that_may_be_zero_may_change():
    x, n = pt.matrix("x"), pt.lscalar("n")
    for shape, length in (((4, 0), 3), ((2, 3), 2)):
        results = [pt.reshape(x, (n, x.shape[1])), pt.reshape(x.T, (x.shape[1], n))]
        compare_onnx_and_py([x, n], results, [np.ones(shape), length])


def test_a_reshape_to_the_own_shape_leaves_no_node():
    x = pt.matrix("x")
    for shape in (x.shape, (x.shape[0], x.shape[1]), (x.shape[0], -1)):
        program = compare_onnx_and_py([x], pt.reshape(abs(x), shape), [np.ones((2, 3))])
        assert op_types(program) == ["Abs"]


@pytest.mark.parametrize("offset", [0, 1, -1, 4])
def test_the_new_axis_of_a_diagonal_is_the_last(offset):
    x = pt.tensor3("x")
    filled = pt.alloc(2.0, *x.shape)
    diagonals = [
        pt.diagonal(a, offset, *axes)
        for a in (filled, pt.exp(x))
        for axes in ((0, 1), (0, 2), (1, 2))
    ]
    compare_onnx_and_py([x], diagonals, [np.arange(15.0).reshape(5, 3, 1)])


@pytest.mark.parametrize("offset", [0, 1, -1, 5, -5])
def test_a_diagonal_beyond_the_corner_is_empty(offset):
    n, v = pt.lscalar("n"), pt.vector("v")
    matrices = [pt.alloc(2.0, n, n), pt.eye(n), pt.eye(n, n, 1), pt.diag(v, 1), pt.outer(v, v)]
    compare_onnx_and_py([n, v], [pt.diagonal(m, offset) for m in matrices], [2, np.arange(2.0)])


def test_of_a_product_only_the_diagonal_is_computed():
    x, y = pt.matrix("x", shape=(3, 4)), pt.matrix("y", shape=(4, 3))
    program = compare_onnx_and_py(
        [x, y], pt.diagonal(x @ y), [np.arange(12.0).reshape(3, 4), np.ones((4, 3))]
    )
    assert "MatMul" not in op_types(program)


def test_the_last_of_several_values_set_at_a_position_is_read():
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    results = [x[i].set(y)[i], x[1:].set(y)[1:]]
    compare_onnx_and_py([x, y, i], results, [np.arange(3.0), np.array([5.0, 6]), np.array([0, -3])])


@pytest.mark.parametrize("index", [3, -2])
def test_a_wrong_index_into_a_row_of_one_fails(index):
    x = pt.matrix("x", shape=(None, 1))
    for y in ((2 * x)[:, index], pt.exp(x)[0][index]):
        f = pytensor.function([x], y, mode="ONNX")
        with pytest.raises(PyTensorONNXError, match="bounds"):
            f(np.ones((4, 1)))


def test_the_only_element_of_a_row_is_read_before_it_is_computed():
    x = pt.matrix("x", shape=(None, 1))
    program = compare_onnx_and_py([x], [pt.exp(x)[2, 0], pt.exp(-x)[2, -1]], [np.ones((4, 1))])
    assert not {"Exp"} - {*op_types(program)}


@pytest.mark.parametrize(
    "piece",
    [np.s_[::-2], np.s_[:-9:-2], np.s_[-9:1], np.s_[9:0:-1], np.s_[1:], np.s_[:1], np.s_[0:2:2]],
)
def test_a_slice_of_one_row_is_the_row_it_begins_with(piece):
    x = pt.matrix("x", shape=(2, 3))
    results = [x[piece].flatten(), x[piece].squeeze(0), pt.argmax(x[piece])]
    compare_onnx_and_py([x], results, [np.array([[4.0, 3, 0], [0, 2, 1]])])


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64", "int8"])
def test_constant_indices_may_go_backwards(dtype):
    x = pt.matrix("x")
    results = [x[:, np.array(index, dtype)] for index in ([3, 2], [3, 1], [1, 2, 3], [2])]
    compare_onnx_and_py([x], results, [np.arange(8.0).reshape(2, 4)])


def test_a_row_of_an_array_of_partly_specified_shape():
    x = pt.tensor3("x")
    y = pt.specify_shape(x, (None, None, 2))[0]
    compare_onnx_and_py([x], y, [np.arange(12.0).reshape(2, 3, 2)])


@pytest.mark.parametrize(("narrow", "wide"), [("int8", "int64"), ("float32", "float64")])
def test_narrow_values_are_written_into_a_wide_array_one_by_one(narrow, wide):
    x, y = pt.vector("x", dtype=wide), pt.vector("y", dtype=narrow)
    results = [x[0].inc(y[0])[0].inc(y[1]), x[0].set(y[0])[0].inc(y[1])]
    compare_onnx_and_py(
        [x, y], results, [np.arange(3.0).astype(wide), np.array([100, 101.1], narrow)]
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_constant_indices_of_slices_are_added_to_sizes_without_overflow(dtype):
    x = pt.vector("x", shape=(1000,))
    first, last, step = (pt.constant(n, dtype=dtype) for n in (100, 120, 3))
    slices = (x[::2], x[::-2], x[1::3], x[::-1], x[step:])
    results = [y for s in slices for y in (s[first], s[first:last:step], s[pt.constant(0, dtype)])]
    with (
        warnings.catch_warnings(action="error", category=RuntimeWarning),
        pytensor.config.change_flags(on_opt_error="raise"),
    ):
        compare_onnx_and_py([x], results, [np.arange(1000.0)])
