"""Any array is sorted and searched as by NumPy; the values of each dtype are in the records."""

import numpy as np
import pytensor.tensor as pt
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.tensor.sort import ArgSortOp, SortOp

from pytensor_onnx.ops.sorting import OrderStatistics
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import DTYPES, elements, shapes
from tests.properties import holds_for


def test_sort_of_a_static_integer_vector_is_one_operator():
    x = pt.tensor("x", dtype="int32", shape=(5,))
    program = compare_onnx_and_py([x], pt.sort(x), [np.array([3, 1, 2, 5, 4], "int32")])
    assert op_types(program) == ["TopK"]


def test_few_places_are_selected_and_not_sorted():
    x = pt.matrix("x", shape=(200, None))
    values = np.random.default_rng(1).normal(size=(200, 4))
    program = compare_onnx_and_py([x], OrderStatistics(200, [3, 196])(x), [values])
    sizes = [node.outputs[0].shape[0] for node in program.model.graph if node.op_type == "TopK"]
    assert sorted(sizes) == [4, 4]


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
