import numpy as np
import pytest

from pytensor_onnx.operators.dims import sum_dim
from tests.passes.conftest import bare_op

POOLS = ["AveragePool", "LpPool", "MaxPool"]
CHECK = ["Shape", "Max", "Reshape"]


@pytest.mark.parametrize("op_type", POOLS)
def test_a_pool_fails_where_no_window_has_room(op_type):
    window = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [0, 0, 1, 0]}
    fitting = bare_op(op_type, np.ones((1, 2, 2, 2), "float32"), **window)
    fitting.legalise(assume_finite=True)
    assert fitting.operators() == [*CHECK, op_type]
    assert fitting.run()[0].shape == (1, 2, 1, 1)
    for sizes in [(1, 2), (2, 1)]:
        short = bare_op(op_type, np.ones((1, 2, *sizes), "float32"), **window)
        short.legalise(assume_finite=True)
        with pytest.raises(Exception, match="a_window_of_a_pool_is_larger"):
            short.run()


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        (["n", 2, 3], {"kernel_shape": [3], "strides": [2]}),
        (["n", 2, "w"], {"kernel_shape": [3], "strides": [1]}),
        (["n", 2, "w"], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
        (["n", 2, "w"], {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
        (["n", 2, "w"], {"kernel_shape": [1], "strides": [2], "dilations": [4]}),
    ],
)
def test_operations_that_cannot_fail_are_not_checked(shape, attributes):
    model = bare_op("MaxPool", np.ones((1, 2, 3), "float32"), shapes=[shape], **attributes)
    assert model.legalise(assume_finite=True) == []


def test_a_checked_pool_is_guarded_against_nan_as_well():
    x = np.array([[[1, np.nan, 3, 4]]], "float32")
    model = bare_op("MaxPool", x, kernel_shape=[2], strides=[2])
    model.legalise()
    assert model.operators() == [*CHECK, "MaxPool", "KeepNonFiniteInMaxPool_float32"]
    np.testing.assert_array_equal(model.run()[0], [[[np.nan, 4]]])


def test_the_standard_rounds_down():
    model = bare_op("MaxPool", np.ones((1, 2, 3), "float32"), kernel_shape=[2], strides=[2])
    assert model.legalise("standard") == []


def test_a_convolution_fails_where_its_filters_have_no_taps():
    x = np.ones((1, 2, 5), "float32")
    for taps in (1, 0):
        model = bare_op("Conv", x, np.ones((3, 2, taps), "float32"))
        model.legalise()
        assert model.operators() == [*CHECK, "Conv"]
        if taps:
            np.testing.assert_array_equal(model.run()[0], np.full((1, 3, 5), 2))
        else:
            with pytest.raises(Exception, match="the_filters_of_Conv_are_empty"):
                model.run()


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        (["o", "c", 3], {}),
        (["o", "c", sum_dim(["k", 1])], {}),
        (["o", "c", "k"], {"kernel_shape": [3]}),
    ],
)
def test_filters_that_are_known_to_have_taps_are_not_checked(shape, attributes):
    operands = np.ones((1, 2, 5), "float32"), np.ones((3, 2, 3), "float32")
    model = bare_op("Conv", *operands, shapes=[["n", 2, 5], shape], **attributes)
    assert model.legalise() == []


@pytest.mark.parametrize("shape", [(1, 2, 0), (2, 2, 0, 3)])
def test_a_normalisation_fails_where_its_channels_are_empty(shape):
    one = np.ones(2, "float32")
    full = [size or 2 for size in shape]
    for sizes in (shape, full, [0, *full[1:]], [0, *shape[1:]]):
        model = bare_op("InstanceNormalization", np.ones(sizes, "float32"), one, one)
        model.legalise()
        kept = ["InstanceNormalization", "Shape", "Reshape"]
        assert model.operators() == [*CHECK, *kept]
        if tuple(sizes) == shape:
            with pytest.raises(Exception, match="the_channels_of_InstanceNormalization_are_empty"):
                model.run()
        else:
            assert model.run()[0].shape == tuple(sizes)
