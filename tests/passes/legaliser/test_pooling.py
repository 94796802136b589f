import numpy as np
import pytest

from tests.passes.conftest import bare_op

KEPT = "KeepNonFiniteIn"
ROW = np.array([1, 2, np.nan, 4, 5, -np.inf, -np.inf, -np.inf, np.inf, 7])
EXPECTED = np.array([np.nan, np.nan, np.nan, 5, 5, -np.inf, np.inf, np.inf])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_guarded_max_pool_keeps_nan_and_minus_infinity(dtype):
    x = np.stack([ROW, np.arange(10.0)])[None].astype(dtype)
    model = bare_op("MaxPool", x, kernel_shape=[3])
    model.legalise()
    (found,) = model.run()
    np.testing.assert_array_equal(found[0], [EXPECTED, np.arange(2.0, 10.0)])


def test_a_guarded_max_pool_of_finite_numbers_is_that_of_the_runtime():
    x = -np.arange(1, 25, dtype="float32").reshape(1, 2, 3, 4)
    model = bare_op("MaxPool", x, kernel_shape=[2, 2], strides=[1, 2], pads=[0, 1, 1, 1])
    model.legalise()
    assert model.operators() == ["MaxPool", KEPT + "MaxPool_float32"]
    (found,) = model.run()
    padded = np.pad(x, [(0, 0), (0, 0), (0, 1), (1, 1)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), axis=(2, 3))[:, :, :, ::2]
    np.testing.assert_array_equal(found, windows.max(axis=(-2, -1)))


def test_a_guarded_max_pool_of_an_empty_batch_is_empty():
    model = bare_op("MaxPool", np.ones((0, 2, 5), "float32"), kernel_shape=[2])
    model.legalise()
    assert model.run()[0].shape == (0, 2, 4)


@pytest.mark.parametrize("op_type", ["MaxPool", "GlobalMaxPool"])
def test_max_pool_is_not_guarded_where_all_is_known_to_be_finite(op_type):
    attributes = {"kernel_shape": [2]} if op_type == "MaxPool" else {}
    model = bare_op(op_type, np.ones((1, 2, 5), "float32"), **attributes)
    assert model.legalise(assume_finite=True) == []
    assert model.operators() == [op_type]


def test_a_guarded_global_max_pool_keeps_nan_and_minus_infinity():
    x = np.array([[1, 2, np.nan], [-np.inf] * 3, [np.nan, 1, 2], [3, np.inf, 1], [1, 2, 3]])
    model = bare_op("GlobalMaxPool", x.reshape(1, 5, 1, 3).astype("float32"))
    model.legalise()
    (found,) = model.run()
    np.testing.assert_array_equal(found.ravel(), x.max(axis=1))
