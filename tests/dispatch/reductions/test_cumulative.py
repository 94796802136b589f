import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pytensor_onnx import compile_onnx
from tests.conftest import assert_same, compare_onnx_and_py, op_types
from tests.dispatch.values import DTYPES, FLOATS, elements, shapes, special_values
from tests.properties import holds_for

OPERATIONS = {"sum": (pt.cumsum, np.cumsum), "prod": (pt.cumprod, np.cumprod)}


def check(operation, values, axis, *, static=False, **options):
    """Compare with NumPy, whose dtype PyTensor returns."""
    symbolic, numeric = OPERATIONS[operation]
    x = pt.tensor("x", dtype=values.dtype, shape=values.shape if static else (None,) * values.ndim)
    with np.errstate(all="ignore"):
        expected = numeric(values, axis=axis)
    program = compile_onnx([x], symbolic(x, axis=axis), verify=False, **options)
    assert_same(program(values), expected)
    assert_same(pytensor.function([x], symbolic(x, axis=axis), mode="ONNX")(values), expected)
    return program


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("opset", [21, 26])
def test_cumulative_of_every_dtype(dtype, operation, static, opset):
    values = np.random.default_rng(1).permutation(np.resize(special_values(dtype), (4, 6)))
    check(operation, values, 1, static=static, opset_version=opset)


@pytest.mark.each_value
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_cumulative_of_nothing_is_nothing(operation, shape, static):
    for axis in range(len(shape)):
        check(operation, np.ones(shape, "float32"), axis, static=static)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_overflow_and_underflow_where_numpy_has_it(dtype):
    large, small = np.finfo(dtype).max / 4, np.finfo(dtype).tiny * 4
    values = np.array([small, small, large, large, large, 0, -1, np.inf, 2, np.nan, 0], dtype)
    check("prod", values, 0)
    check("prod", values[::-1].copy(), 0)
    check("prod", values[2:7].copy(), 0)


def test_integers_wrap_around():
    values = np.full((70, 2), [3, -7])
    check("prod", values, 0)
    check("sum", values * (2**62 + 1), 0)


def test_cumulative_sum_is_one_operator():
    x = pt.tensor("x", shape=(None, 4))
    assert op_types(compare_onnx_and_py([x], pt.cumsum(x, axis=-1), [np.ones((2, 4))])) == [
        "CumSum"
    ]


def test_cumulative_product_is_one_operator_where_the_opset_has_it():
    x = pt.tensor("x", shape=(None, 4))
    program = compare_onnx_and_py([x], pt.cumprod(x, axis=-1), [np.ones((2, 4))], opset_version=26)
    assert op_types(program) == ["CumProd"]


@pytest.mark.slow
@holds_for(
    data=st.data(),
    dtype=st.sampled_from([d for d in DTYPES if d not in FLOATS] + ["float64"]),
    shape=shapes(min_dims=1, max_dims=3, max_side=5),
    operation=st.sampled_from(sorted(OPERATIONS)),
    static=st.booleans(),
)
def test_any_array_accumulates_as_numpy_has_it(data, dtype, shape, operation, static):
    values = data.draw(hnp.arrays(dtype, shape, elements=elements(dtype)))
    check(operation, values, data.draw(st.integers(-len(shape), len(shape) - 1)), static=static)
