"""TopK and Unique next to NaN, in every variant, whatever emits them."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import nn
from pytensor_onnx.graph.dims import sum_dim
from pytensor_onnx.passes.fold_constants import fold_constants
from tests.conftest import compare_onnx_and_py
from tests.passes.conftest import bare, bare_op

NOT_FINITE = np.array([[[1, 2, 3], [np.inf, 4, 5]], [[np.nan, 6, 7], [-np.inf, 8, 9]]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(None, None, None), (None, 2, 3)])
@pytest.mark.parametrize("antialias", [False, True])
def test_linear_resizing_along_one_axis_keeps_nan_in_its_channel(dtype, shape, antialias):
    x = pt.tensor("x", dtype=dtype, shape=shape)
    outputs = [
        nn.resize(x, scales=2, mode="linear", antialias=antialias),
        nn.resize(x, sizes=6, mode="linear", antialias=antialias),
    ]
    compare_onnx_and_py([x], outputs, [NOT_FINITE.astype(dtype)])
    compare_onnx_and_py([x], outputs, [NOT_FINITE[:0].astype(dtype)])


def test_linear_resizing_is_one_operator_where_all_is_known_to_be_finite():
    x = pt.tensor3("x", dtype="float32")
    y = nn.upsample(x, 2, mode="linear")
    values = [np.arange(12, dtype="float32").reshape(2, 2, 3)]
    program = compare_onnx_and_py([x], y, values, assume_finite=True)
    assert [node.op_type for node in program.model.graph] == ["Resize"]


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((1,), (0,)),
        ((2, 1), (2, 0)),
        ((2, 1), (0,)),
        ((1, 3), (0, 3)),
        ((1, 3), (0, 1)),
        ((), (0,)),
    ],
)
@pytest.mark.parametrize("static", [True, False])
def test_a_size_of_one_is_broadcast_to_nothing(shape, target, static):
    x = np.ones(shape)

    def emit(build, value):
        return build.Neg(build.Expand(build.Abs(value), build.ints(target)))

    model = bare(emit, x, shapes=[shape] if static else ())
    model.legalise()
    [found] = model.run()
    assert found.shape == np.broadcast_shapes(shape, target)


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


def folded(emit, *operands, shapes=()):
    """Return the operators after folding; the results do not change."""
    model = bare(emit, *operands, shapes=shapes)
    before = model.run()
    model.apply(fold_constants)
    for a, b in zip(model.run(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    return model.operators()


def from_low_bits(count, mask=1):
    def emit(build, x, k):
        start = build.BitwiseAnd(k, np.int64(mask))
        bounds = [build.Unsqueeze(b, [0]) for b in (start, build.Add(start, np.int64(count)))]
        return build.Slice(x, *bounds, build.ints([0]), build.ints([1]))

    return emit


@pytest.mark.parametrize("k", [6, 7])
def test_a_known_number_of_elements_is_gathered(k):
    operators = folded(from_low_bits(3), np.arange(4.0), np.int64(k), shapes=[[4]])
    assert operators == ["BitwiseAnd", "Unsqueeze", "Add", "Gather"]


@pytest.mark.parametrize(
    ("count", "mask", "size"), [(4, 1, 4), (2, 3, 4), (0, 1, 4), (2, -1, 4), (2, 1, "n")]
)
def test_slices_that_may_be_clipped_stay(count, mask, size):
    x = np.arange(4.0)
    assert "Slice" in folded(from_low_bits(count, mask), x, np.int64(7), shapes=[[size]])


def test_starts_that_a_narrow_dtype_makes_negative_stay():
    def emit(build, x, k):
        narrow = build.cast(build.BitwiseAnd(k, np.int64(255)), np.dtype("int8"))
        start = build.cast(narrow, np.dtype("int64"))
        bounds = [build.Unsqueeze(b, [0]) for b in (start, build.Add(start, np.int64(3)))]
        return build.Slice(x, *bounds, build.ints([0]), build.ints([1]))

    assert "Slice" in folded(emit, np.arange(400.0), np.int64(255), shapes=[[400]])


def test_sizes_are_cast_before_their_axis_is_dropped():
    def halves(build, x):
        size = build.cast(build.Squeeze(build.Shape(x), [0]), np.dtype("float64"))
        return build.Mul(build.Unsqueeze(size, [0]), x)

    assert folded(halves, np.arange(4.0)) == ["Shape", "Cast", "Mul"]


def test_integer_sizes_that_are_used_themselves_stay():
    def both(build, x):
        size = build.Squeeze(build.Shape(x), [0])
        return [size, build.cast(size, np.dtype("float64"))]

    assert folded(both, np.arange(4.0)) == ["Shape", "Squeeze", "Cast"]


NAN, INF = np.nan, np.inf
X = np.array([[2, NAN, INF, -1, NAN, 2], [0.0, -0.0, 5, NAN, -INF, 1], [1, 2, 3, 4, 5, 6]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_the_smallest_elements_come_in_stable_order_with_nan_last(dtype, axis, k):
    x = X.astype(dtype)
    model = bare(
        lambda build, x: build.TopK(x, build.ints([k]), axis=axis, largest=0, outputs=2), x
    )
    model.legalise()
    values, positions = model.run()
    expected = np.take(np.argsort(x, axis=axis, kind="stable"), range(k), axis=axis)
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


@pytest.mark.parametrize("k", [1, 4, 6])
def test_the_largest_elements_come_with_nan_first(k):
    x = X[0]
    model = bare(lambda build, x: build.TopK(x, build.ints([k]), axis=0, outputs=2), x)
    model.legalise()
    values, positions = model.run()
    np.testing.assert_array_equal(positions, [1, 4, 2, 0, 5, 3][:k])
    np.testing.assert_array_equal(values, x[positions])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float64"])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (5, 2)])
def test_unique_slices_may_be_empty(axis, dtype, shape):
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    model = bare(lambda build, x: build.Unique(x, axis=axis, outputs=4), x, shapes=[("n", "m")])
    model.legalise()
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    for a, b in zip(model.run(), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_guards_are_left_out_where_all_elements_are_said_to_be_finite():
    model = bare(lambda build, x: build.TopK(x, build.ints([2]), outputs=2), X)
    assert model.legalise(assume_finite=True) == []
    assert model.operators() == ["TopK"]
