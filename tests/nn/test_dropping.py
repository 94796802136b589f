import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.nn import dropout
from tests.conftest import compare_onnx_and_py, op_types

X = pt.matrix("x", dtype="float32")


def test_dropout_leaves_no_trace_in_prediction():
    assert op_types(export_onnx([X], pt.exp(dropout(X, 0.3)), verify=False)) == ["Exp"]


def test_dropout_in_training_scales_the_kept_elements():
    kept = pt.matrix("kept", dtype="bool")
    y = dropout(X, 0.75, kept)
    values = [np.arange(6, dtype="f").reshape(2, 3) + 1, np.array([[1, 0, 1], [0, 0, 1]], bool)]
    results = [y, pytensor.grad(y.sum(), X)]
    found, gradient = compare_onnx_and_py([X, kept], results, values)(*values)
    np.testing.assert_array_equal(found, 4 * values[0] * values[1])
    np.testing.assert_array_equal(gradient, 4.0 * values[1])


def test_nan_that_is_dropped_is_gone():
    kept = pt.vector("kept", dtype="bool")
    values = [np.array([[np.nan, 1]], "f"), np.array([False, True])]
    compare_onnx_and_py([X, kept], dropout(X, 0.5, kept), values)


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="rate=1 must be"):
        dropout(X, 1)
    with pytest.raises(TypeError, match="booleans; got one of float32"):
        dropout(X, 0.5, X)
