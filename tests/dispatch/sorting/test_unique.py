import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.conftest import compare_onnx_and_py
from tests.dispatch.values import DTYPES, elements, shapes, special_values
from tests.properties import holds_for

NAN, INF = np.nan, np.inf


class TestUnique:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_all_outputs_of_every_dtype(self, dtype, static):
        values = np.random.default_rng(1).choice(special_values(dtype), size=(5, 6))
        x = pt.tensor("x", dtype=dtype, shape=values.shape if static else (None, None))
        compare_onnx_and_py([x], pt.unique(x, True, True, True), [values])

    @pytest.mark.parametrize("axis", [0, 1, -1])
    @pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float32", "float64"])
    def test_slices(self, axis, dtype):
        values = np.random.default_rng(2).integers(0, 2, (4, 2, 3)).astype(dtype)
        x = pt.tensor("x", dtype=dtype, shape=(None, None, 3))
        compare_onnx_and_py([x], pt.unique(x, True, True, True, axis=axis), [values])

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"return_index": True},
            {"return_inverse": True},
            {"return_counts": True},
            {"return_index": True, "return_counts": True},
        ],
    )
    def test_any_choice_of_outputs(self, options):
        x = pt.vector("x")
        compare_onnx_and_py([x], pt.unique(x, **options), [np.array([2.0, 1, 2, NAN, 3, NAN])])

    @pytest.mark.parametrize(
        "values", [[1, NAN, 2, NAN, 1, INF], [NAN], [NAN, NAN], [0.0, -0.0], []]
    )
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_all_nan_count_as_one(self, values, dtype):
        x = pt.tensor("x", dtype=dtype, shape=(None,))
        compare_onnx_and_py([x], pt.unique(x, True, True, True), [np.array(values, dtype)])

    @pytest.mark.parametrize("axis", [0, 1])
    def test_slices_with_nan_are_all_different(self, axis):
        values = np.array([[1, NAN], [NAN, 3], [1, NAN], [NAN, 2], [0, 0], [NAN, 3], [0, 0]])
        x = pt.matrix("x")
        outputs = pt.unique(x, True, True, True, axis=axis)
        compare_onnx_and_py([x], outputs, [values if axis == 0 else values.T])

    @pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
    @pytest.mark.parametrize("axis", [0, 1, None])
    @pytest.mark.parametrize("dtype", ["int64", "float64"])
    def test_empty_arrays(self, shape, axis, dtype):
        if axis is not None and shape[axis] == 0 and shape[1 - axis] == 0:
            pytest.skip("NumPy refuses a shape of zeros")
        x = pt.tensor("x", dtype=dtype, shape=(None, None))
        outputs = pt.unique(x, True, True, True, axis=axis)
        compare_onnx_and_py([x], outputs, [np.ones(shape, dtype)])

    def test_a_scalar(self):
        x = pt.scalar("x")
        compare_onnx_and_py([x], pt.unique(x, True, True, True), [np.float64(3)])


@holds_for(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    shape=shapes(min_dims=0, max_dims=3, max_side=4),
    static=st.booleans(),
)
def test_any_array_has_the_unique_elements_that_numpy_finds(data, dtype, shape, static):
    values = data.draw(hnp.arrays(dtype, shape, elements=elements(dtype)))
    some_axis = st.none() if 0 in shape or not shape else st.integers(0, len(shape) - 1)
    axis = data.draw(st.none() | some_axis)
    x = pt.tensor("x", dtype=dtype, shape=shape if static else (None,) * len(shape))
    compare_onnx_and_py([x], pt.unique(x, True, True, True, axis=axis), [values])
