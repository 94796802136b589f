"""Elements are found in sorted arrays where NumPy finds them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.conftest import compare_onnx_and_py
from tests.dispatch.values import DTYPES, elements, shapes, special_values
from tests.properties import holds_for

NAN = np.nan


@pytest.mark.each_value
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(side, dtype):
    values = np.sort(special_values(dtype))
    x, v = (pt.tensor(n, dtype=dtype, shape=(None,)) for n in "xv")
    keys = np.concatenate([values, values[::2]])
    compare_onnx_and_py([x, v], pt.searchsorted(x, v, side=side), [values, keys])


@pytest.mark.parametrize(
    ("first", "second"),
    [("int64", "float32"), ("uint64", "int64"), ("int8", "uint8"), ("bool", "float64")],
)
def test_dtypes_meet_as_in_numpy(first, second):
    x, v = (
        pt.tensor("x", dtype=first, shape=(None,)),
        pt.tensor("v", dtype=second, shape=(None,)),
    )
    sorted_values = np.sort(special_values(first))
    compare_onnx_and_py([x, v], pt.searchsorted(x, v), [sorted_values, special_values(second)])


@pytest.mark.each_value
@pytest.mark.parametrize("shape", [(), (2, 3), (0,), (1, 0, 2)])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("side", ["left", "right"])
def test_shapes_and_sizes(shape, size, side):
    x, v = pt.vector("x"), pt.tensor("v", shape=(None,) * len(shape))
    rng = np.random.default_rng(3)
    values = [np.sort(rng.integers(0, 5, size)).astype(float), rng.normal(2, 3, size=shape)]
    compare_onnx_and_py([x, v], pt.searchsorted(x, v, side=side), values)


def test_sorter():
    x, v, order = pt.vector("x"), pt.vector("v"), pt.lvector("order")
    values = np.random.default_rng(4).permutation(9.0 + np.arange(9))
    keys = np.array([8.5, 9, 12, 30, NAN])
    compare_onnx_and_py(
        [x, v, order],
        pt.searchsorted(x, v, side="right", sorter=order),
        [values, keys, np.argsort(values)],
    )


def test_gradient_is_zero():
    x, v = pt.vector("x"), pt.vector("v")
    gradients = pytensor.grad((pt.searchsorted(x, v) * v).sum(), [x, v])
    compare_onnx_and_py([x, v], gradients, [np.arange(4.0), np.array([1.5, 7, -1])])


@holds_for(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    size=st.integers(0, 9),
    side=st.sampled_from(["left", "right"]),
)
def test_any_element_is_found_where_numpy_finds_it(data, dtype, size, side):
    values = np.sort(data.draw(hnp.arrays(dtype, size, elements=elements(dtype))))
    keys = data.draw(hnp.arrays(dtype, shapes(max_dims=2, max_side=3), elements=elements(dtype)))
    x = pt.tensor("x", dtype=dtype, shape=(None,))
    v = pt.tensor("v", dtype=dtype, shape=(None,) * keys.ndim)
    compare_onnx_and_py([x, v], pt.searchsorted(x, v, side=side), [values, keys])
