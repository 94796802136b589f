import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.tensor.sort import ArgSortOp, SortOp

from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import DTYPES, elements, shapes, special_values
from tests.properties import holds_for

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_sort_and_argsort_order_every_dtype(dtype, static):
    values = np.random.default_rng(1).permutation(np.resize(special_values(dtype), (2, 40)), axis=1)
    x = pt.tensor("x", dtype=dtype, shape=values.shape if static else (None, None))
    outputs = [pt.sort(x, axis=-1), pt.argsort(x, axis=1, stable=True)]
    compare_onnx_and_py([x], outputs, [values])


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3, None])
def test_sort_works_along_every_axis(axis):
    x = pt.tensor("x", shape=(None, 3, None))
    values = np.random.default_rng(2).normal(size=(4, 3, 5))
    compare_onnx_and_py([x], [pt.sort(x, axis), pt.argsort(x, axis, stable=True)], [values])


@pytest.mark.each_value
@pytest.mark.parametrize(
    "values",
    [
        [NAN, INF, 1, NAN, -INF, INF],
        [NAN, NAN],
        [INF, NAN],
        [NAN, INF],
        [0.0, NAN, -0.0],
        [NAN],
        [],
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_comes_after_infinity_and_equal_elements_keep_their_order(values, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None,))
    compare_onnx_and_py([x], [pt.sort(x), pt.argsort(x, stable=True)], [np.array(values, dtype)])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_empty_arrays_sort_to_empty_arrays(shape, axis):
    x = pt.tensor("x", shape=(None, None))
    compare_onnx_and_py([x], [pt.sort(x, axis), pt.argsort(x, axis)], [np.ones(shape)])


def test_a_scalar_is_flattened():
    x = pt.scalar("x")
    compare_onnx_and_py([x], [pt.sort(x, None), pt.argsort(x, None)], [np.float64(2)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_of_sort_goes_to_the_places_that_the_elements_came_from(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    weights = pt.tensor("w", dtype=dtype, shape=(None, None))
    gradient = pytensor.grad((pt.sort(x, axis=0) * weights).sum(), x)
    rng = np.random.default_rng(3)
    values = [rng.permutation(12.0 + np.arange(12)).reshape(4, 3), rng.normal(size=(4, 3))]
    compare_onnx_and_py([x, weights], gradient, [v.astype(dtype) for v in values])


def test_sort_of_a_static_integer_vector_is_one_operator():
    x = pt.tensor("x", dtype="int32", shape=(5,))
    program = compare_onnx_and_py([x], pt.sort(x), [np.array([3, 1, 2, 5, 4], "int32")])
    assert op_types(program) == ["TopK"]


@holds_for(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    shape=shapes(min_dims=1, max_dims=3, max_side=5),
    static=st.booleans(),
)
def test_any_array_sorts_as_numpy_sorts_it(data, dtype, shape, static):
    values = data.draw(hnp.arrays(dtype, shape, elements=elements(dtype)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = pt.tensor("x", dtype=dtype, shape=shape if static else (None,) * len(shape))
    outputs = [SortOp("stable", axis)(x), ArgSortOp("stable", axis)(x)]
    compare_onnx_and_py([x], outputs, [values], signed_zeros=True)


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("shape", [(3, 4), (4, 5)])
def test_median(axis, shape):
    x = pt.matrix("x")
    compare_onnx_and_py([x], pt.median(x, axis=axis), [np.random.default_rng(4).normal(size=shape)])
