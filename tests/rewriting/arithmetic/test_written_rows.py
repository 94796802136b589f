"""Rows of zeros with a few numbers are summed by summing the numbers."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

WIDTH = 300


def cross_entropy(x, labels):
    return -pt.special.log_softmax(x, axis=-1)[pt.arange(labels.size), labels].mean()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5, 1, 0])
def test_the_gradient_of_a_cross_entropy_sums_no_rows(count, dtype):
    x = pt.tensor("x", shape=(None, WIDTH), dtype=dtype)
    labels = pt.lvector("labels")
    rng = np.random.default_rng(count)
    values = [rng.normal(size=(count, WIDTH)).astype(dtype), rng.integers(0, WIDTH, count)]
    program = compare_onnx_and_py([x, labels], [pt.grad(cross_entropy(x, labels), x)], values)
    assert "ReduceSum" not in op_types(program)


def test_texts_of_a_language_model_are_rows_of_one_matrix():
    x, labels = pt.tensor("x", shape=(None, None, WIDTH)), pt.lmatrix("labels")
    rows = pt.special.log_softmax(x, axis=-1).reshape((-1, WIDTH))
    loss = -rows[pt.arange(rows.shape[0]), labels.flatten()].mean()
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(2, 3, WIDTH)), rng.integers(0, WIDTH, (2, 3))]
    program = compare_onnx_and_py([x, labels], [pt.grad(loss, x)], values)
    assert "ReduceSum" not in op_types(program)


def written(x, numbers, rows, columns):
    return pt.zeros((x.shape[0], WIDTH))[rows, columns].inc(numbers)


@pytest.mark.parametrize(
    ("numbers", "rows", "columns"),
    [
        ([1.0, 2.0, 4.0], [0, 2, 2], [5, 7, 7]),
        ([1.0, np.nan, np.inf], [-1, 1, 0], [5, -7, 299]),
        ([3.0], [1, 0, 1], [1, 2, 2]),
    ],
)
def test_numbers_may_share_rows_and_places(numbers, rows, columns):
    x, n = pt.matrix("x"), pt.tensor("n", shape=(1 if len(numbers) == 1 else None,))
    i, j = pt.lvectors("ij")
    matrix = written(x, n, i, j)
    outputs = [matrix.sum(axis=1), matrix * x]
    program = compare_onnx_and_py(
        [x, n, i, j], outputs, [np.ones((3, WIDTH)), np.array(numbers), rows, columns]
    )
    assert "ReduceSum" not in op_types(program)


def test_short_rows_and_rows_without_other_uses_are_summed():
    x, n = pt.matrix("x"), pt.vector("n")
    i, j = pt.lvectors("ij")
    short = pt.zeros((x.shape[0], 10))[i, j].inc(n)
    values = [np.ones((3, 10)), np.ones(2), np.array([0, 2]), np.array([3, 4])]
    program = compare_onnx_and_py([x, n, i, j], [short.sum(axis=1), short * x], values)
    assert "ReduceSum" in op_types(program)
    program = compare_onnx_and_py([x, n, i, j], [written(x, n, i, j).sum(axis=1)], values)
    assert "ReduceSum" in op_types(program)


@pytest.mark.parametrize(
    "write", [pt.set_subtensor, lambda x, n: pt.inc_subtensor(x, n, ignore_duplicates=True)]
)
def test_numbers_at_one_place_are_added_up_only_if_all_count(write):
    x, n = pt.matrix("x"), pt.vector("n")
    i, j = pt.lvectors("ij")
    matrix = write(pt.zeros((x.shape[0], WIDTH))[i, j], n)
    values = [np.ones((3, WIDTH)), np.array([1.0, 2.0]), np.array([0, 0]), np.array([3, 3])]
    compare_onnx_and_py([x, n, i, j], [matrix.sum(axis=1), matrix * x], values)
