import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import DTYPES, shapes, special_values
from tests.properties import holds_for


class TestRepeat:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_each_element_by_its_own_count(self, dtype):
        x, counts = pt.tensor("x", dtype=dtype, shape=(None,)), pt.lvector("counts")
        values = special_values(dtype)[:4]
        compare_onnx_and_py([x, counts], pt.repeat(x, counts), [values, np.array([2, 0, 3, 1])])

    @pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, None])
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_axes(self, axis, static):
        values = np.arange(24.0).reshape(2, 3, 4)
        x = pt.tensor("x", shape=values.shape if static else (None,) * 3)
        size = values.size if axis is None else values.shape[axis]
        counts = pt.tensor("counts", dtype="int64", shape=(size if static else None,))
        compare_onnx_and_py(
            [x, counts], pt.repeat(x, counts, axis=axis), [values, np.arange(size) % 3]
        )

    @pytest.mark.parametrize("count", [0, 1, 3])
    @pytest.mark.parametrize("axis", [0, -1, None])
    def test_one_count_for_all(self, count, axis):
        x, n = pt.matrix("x"), pt.lscalar("n")
        outputs = [pt.repeat(x, n, axis=axis), pt.repeat(x, count, axis=axis)]
        compare_onnx_and_py([x, n], outputs, [np.arange(6.0).reshape(2, 3), count])

    def test_a_vector_of_one_count_is_for_all(self):
        x, counts = pt.matrix("x"), pt.lvector("counts")
        values = np.arange(6.0).reshape(2, 3)
        compare_onnx_and_py([x, counts], pt.repeat(x, counts, axis=1), [values, np.array([2])])

    @pytest.mark.parametrize("counts", [[0, 0, 0], []])
    def test_nothing_is_left(self, counts):
        x, n = pt.vector("x"), pt.lvector("n")
        compare_onnx_and_py(
            [x, n], pt.repeat(x, n), [np.ones(len(counts)), np.array(counts, "int64")]
        )

    @pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
    def test_counts_of_every_dtype(self, dtype):
        x, n = pt.vector("x"), pt.tensor("n", dtype=dtype, shape=(None,))
        compare_onnx_and_py([x, n], pt.repeat(x, n), [np.arange(3.0), np.array([1, 0, 2], dtype)])

    @pytest.mark.parametrize("counts", [[2, -1, 2], [1, 2]])
    def test_wrong_counts_raise(self, counts):
        x, n = pt.vector("x"), pt.lvector("n")
        program = compile_onnx([x, n], pt.repeat(x, n), verify=False)
        with pytest.raises(ValueError, match="repeats"):
            program(np.ones(3), np.array(counts))

    def test_constant_counts_of_a_static_axis_are_one_gather(self):
        x = pt.tensor("x", shape=(3, None))
        program = compare_onnx_and_py(
            [x], pt.repeat(x, np.array([1, 0, 2]), axis=0), [np.arange(6.0).reshape(3, 2)]
        )
        assert op_types(program) == ["Gather"]

    def test_gradient(self):
        x, n = pt.vector("x"), pt.lvector("n")
        gradient = pytensor.grad((pt.repeat(x, n) ** 2).sum(), x)
        compare_onnx_and_py([x, n], gradient, [np.arange(3.0), np.array([2, 0, 3])])


@pytest.mark.slow
@holds_for(data=st.data(), shape=shapes(min_dims=1, max_dims=3, max_side=4), static=st.booleans())
def test_any_array_repeats_as_in_numpy(data, shape, static):
    values = data.draw(hnp.arrays("float32", shape))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    counts = data.draw(hnp.arrays("int64", shape[axis], elements=st.integers(0, 4)))
    x = pt.tensor("x", dtype="float32", shape=shape if static else (None,) * len(shape))
    n = pt.tensor("n", dtype="int64", shape=counts.shape if static else (None,))
    compare_onnx_and_py([x, n], pt.repeat(x, n, axis=axis), [values, counts])
