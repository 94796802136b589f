import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import SIGNED
from tests.properties import holds_for


@pytest.mark.each_value
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("dynamic", [False, True], ids=["constant", "dynamic"])
def test_unravel_index(order, dtype, dynamic):
    index, dims = (
        pt.tensor("i", dtype=dtype, shape=(None, 2)),
        pt.tensor("d", dtype="int64", shape=(3,)),
    )
    shape = np.array([2, 5, 3])
    values = np.array([[0, 29], [7, 14], [28, 3]], dtype)
    outputs = pt.unravel_index(index, dims if dynamic else shape, order=order)
    compare_onnx_and_py([index, dims], list(outputs), [values, shape])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_unravel_index_of_scalars_and_of_nothing(shape):
    index = pt.tensor("i", dtype="int64", shape=(None,) * len(shape))
    outputs = pt.unravel_index(index, (3, 4))
    compare_onnx_and_py([index], list(outputs), [np.full(shape, 7)])


@pytest.mark.parametrize("bad", [-1, 12, 2**40])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_index_beyond_the_array_raises(bad, order):
    index, dims = pt.lvector("i"), pt.tensor("d", dtype="int64", shape=(2,))
    for sizes in (dims, (3, 4)):
        outputs = pt.unravel_index(index, sizes, order=order)
        program = compile_onnx([index, dims], list(outputs), verify=False)
        with pytest.raises(ValueError, match="out of bounds"):
            program(np.array([0, bad]), np.array([3, 4]))


@pytest.mark.each_value
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["constant", "dynamic"])
def test_ravel_multi_index(order, mode, dynamic):
    row, column = pt.tensor("r", dtype="int32", shape=(None, None)), pt.lmatrix("c")
    dims = pt.tensor("d", dtype="int64", shape=(2,))
    outside = 0 if mode == "raise" else 5
    values = np.array([[0, 1, 2], [2, 0, 1]], "int32") - outside
    columns = np.array([[3, 0, 1], [2, 2, 0]]) + outside
    flat = pt.ravel_multi_index((row, column), dims if dynamic else (3, 4), mode=mode, order=order)
    compare_onnx_and_py([row, column, dims], flat, [values, columns, np.array([3, 4])])


@pytest.mark.parametrize("bad", [-1, 4])
def test_an_entry_beyond_its_axis_raises(bad):
    row, column = pt.lvector("r"), pt.lvector("c")
    program = compile_onnx([row, column], pt.ravel_multi_index((row, column), (3, 4)), verify=False)
    with pytest.raises(ValueError, match="invalid entry"):
        program(np.array([0, 1]), np.array([0, bad]))


def test_ravelling_with_constant_sizes_leaves_no_shape_arithmetic():
    indices = [pt.lvector(name) for name in "abc"]
    flat = pt.ravel_multi_index(indices, (3, 4, 5), mode="wrap")
    program = compare_onnx_and_py(indices, flat, [np.array([1, -1])] * 3)
    assert sorted(op_types(program)) == ["Add", "Add", "Mod", "Mod", "Mod", "Mul", "Mul"]


@pytest.mark.slow
@holds_for(data=st.data(), dims=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_any_index_unravels_and_ravels_as_in_numpy(data, dims):
    order = data.draw(st.sampled_from("CF"))
    values = data.draw(
        hnp.arrays("int64", st.integers(0, 5), elements=st.integers(0, int(np.prod(dims)) - 1))
    )
    index = pt.lvector("i")
    sizes = pt.tensor("d", dtype="int64", shape=(len(dims),))
    unravelled = list(pt.unravel_index(index, sizes, order=order))
    outputs = [*unravelled, pt.ravel_multi_index(unravelled, sizes, order=order)]
    compare_onnx_and_py([index, sizes], outputs, [values, np.array(dims)])
