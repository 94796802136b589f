"""NaN, infinities and signs of zero that kernels of the installed runtime get wrong."""

import numpy as np
import pytest

from tests.targets.conftest import operators, repaired

NAN = np.nan


def test_sign_of_nan_in_half_precision_is_zero(run):
    assert run("Sign", np.array([NAN, 1], "float16"))[0] == 0
    assert np.isnan(run("Sign", np.array([NAN, 1], "float32"))[0])


@pytest.mark.parametrize("op_type", operators("reductions skip NaN"))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reductions_ignore_nan(run, op_type, dtype):
    x = np.array([[1, NAN, 3], [4, NAN, 2]], dtype)
    if op_type.startswith("Arg"):
        assert np.any(run(op_type, x, axis=1, keepdims=0) != 1)
    else:
        assert not np.all(np.isnan(run(op_type, x, np.array([1]), keepdims=0)))


def test_log_softmax_loses_nan(run):
    x = np.array([1, NAN, 3])
    assert not np.all(np.isnan(run("LogSoftmax", x)))


def test_log_softmax_of_nan_is_nan_in_float32(run):
    assert np.all(np.isnan(run("LogSoftmax", np.array([1, NAN, 3], "float32"))))


@repaired("1.32")
def test_topk_does_not_sort_around_nan(run):
    values, _ = run("TopK", np.array([1, NAN, 3, 2, NAN, 5, 4, 0]), np.array([8]), outputs=2)
    numbers = values[~np.isnan(values)]
    assert np.any(np.diff(numbers) > 0)


def test_unique_drops_nan(run):
    assert not np.any(np.isnan(run("Unique", np.array([1, NAN, 2]))))


def test_unique_merges_slices_with_nan(run):
    x = np.array([[1, NAN], [1, NAN], [2, 3]])
    assert run("Unique", x, axis=0).shape != np.unique(x, axis=0).shape


@pytest.mark.parametrize("op_type", operators("maxima of NaN and minus infinity"))
def test_max_pools_ignore_nan_and_minus_infinity(run, op_type):
    attributes = {"kernel_shape": [3]} if op_type == "MaxPool" else {}
    x = np.array([[[1, NAN, 3]]], "float32")
    assert run(op_type, x, **attributes) == 3
    assert np.isfinite(run(op_type, np.full_like(x, -np.inf), **attributes))


def test_where_drops_the_sign_of_a_first_zero(run):
    zero, one = np.array([-0.0]), np.array([1.0])
    assert not np.signbit(run("Where", np.array([True]), zero, one))
    assert np.signbit(run("Where", np.array([False]), one, zero))


def test_clip_ignores_bounds_that_are_nan(run):
    assert list(run("Clip", np.array([1.0, 5.0]), np.array(NAN), np.array(2.0))) == [1, 2]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_linear_resize_along_one_axis_mixes_channels(run, dtype):
    scales = np.array([1, 1, 2], "float32")
    x = np.ones((1, 2, 3), dtype)
    x[0, 1] = np.inf
    found = run("Resize", x, np.zeros(0, "float32"), scales, mode="linear")
    assert np.isnan(found[0, 0]).all()


@pytest.mark.parametrize(("op_type", "n_gates"), [("GRU", 3), ("LSTM", 4)])
def test_recurrent_cells_make_numbers_of_nan(run, op_type, n_gates):
    x = np.full((1, 1, 1), np.nan, "float32")
    w, r = np.ones((1, n_gates, 1), "float32"), np.zeros((1, n_gates, 1), "float32")
    bias = np.zeros((1, 2 * n_gates), "float32")
    assert np.isfinite(run(op_type, x, w, r, bias, hidden_size=1)).all()


def test_recurrent_cells_without_state_make_numbers_of_nan(run):
    x, w, r = (np.ones((1, 1, 1), "float32") for _ in range(3))
    assert np.isfinite(run("RNN", x, w, r * np.nan, hidden_size=1)).all()
