"""Reductions and softmax on every shape, axis and dtype."""

from itertools import combinations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.compile.builders import OpFromGraph
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.math import Prod, ProdWithoutZeros, Sum
from pytensor.tensor.special import log_softmax, softmax

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests.conftest import (
    assert_same,
    compare_onnx_and_py,
    op_types,
    raises_for,
)
from tests.dispatch.values import (
    DISCRETE,
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    dynamic,
    elements,
    shapes,
    some,
    special_values,
)
from tests.properties import holds_for

rng = np.random.default_rng(0)


REDUCTIONS = {
    "sum": pt.sum,
    "prod": pt.prod,
    "max": pt.max,
    "min": pt.min,
    "all": pt.all,
    "any": pt.any,
    "mean": pt.mean,
    "var": pt.var,
    "std": pt.std,
    "argmax": pt.argmax,
    "argmin": pt.argmin,
}


WITHOUT_IDENTITY = ("max", "min", "argmax", "argmin")


def all_axes(rank: int) -> list[tuple[int, ...] | None]:
    return [None, *(c for n in range(1, rank + 1) for c in combinations(range(rank), n))]


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_without_zeros_agree_in_every_dtype(dtype):
    value = some(dtype, (3, 4, 2))
    x = dynamic("x", value)
    compare_onnx_and_py([x], [ProdWithoutZeros(axis)(x) for axis in (None, 1, (0, 2))], [value])


def reduces_nothing(shape: tuple[int, ...], axis: int | tuple[int, ...] | None) -> bool:
    """Whether a reduced axis is empty: NumPy has no extremum then, even of no results."""
    sizes = np.array(shape, int)
    return bool(np.any((sizes if axis is None else sizes[[*np.atleast_1d(axis)]]) == 0))


def has_results(shape: tuple[int, ...], axis: int | tuple[int, ...] | None) -> bool:
    return np.sum(np.zeros(shape), axis=axis).size > 0


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3)])
def test_products_without_zeros_of_nothing_are_one(shape):
    x = pt.tensor("x", dtype="int8", shape=(None,) * len(shape))
    results = [ProdWithoutZeros(axis)(x) for axis in all_axes(len(shape))]
    compare_onnx_and_py([x], results, [np.zeros(shape, "int8")])


# PyTensor's minimum may be the negated maximum of the negated array.
NO_IDENTITY = "zero-size array to reduction operation (maximum|minimum) which has no identity"


MESSAGES = {
    "max": NO_IDENTITY,
    "min": NO_IDENTITY,
    "argmax": "attempt to get argmax of an empty sequence",
    # PyTensor's argmin is the argmax of the negated array.
    "argmin": "attempt to get argmax of an empty sequence",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MESSAGES)
def test_an_extremum_of_nothing_is_an_error(name):
    forms = [(dtype, (3, 0), 1) for dtype in DTYPES]
    for dtype, shape, axis in (*forms, ("int64", (0,), None), ("float64", (2, 0, 3), (0, 1))):
        x = pt.tensor("x", dtype=dtype, shape=(None,) * len(shape))
        program = export_onnx([x], REDUCTIONS[name](x, axis=axis), verify=False)
        with raises_for((dtype, shape, axis), ValueError, match=MESSAGES[name]):
            program(np.zeros(shape, dtype))


def test_two_extrema_of_nothing_each_have_their_error():
    x, y = pt.vector("x"), pt.vector("y", dtype="int64")
    f = pytensor.function([x, y], [x.max(), y.max(), x.min() + x.max()], mode="ONNX")
    with pytest.raises(ValueError, match="reduction operation maximum"):
        f([], [1])
    with pytest.raises(ValueError, match="reduction operation maximum"):
        f([1.0], [])
    assert f([1.0, 3.0], [7]) == [3.0, 7, 4.0]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_an_extremum_of_nothing_is_an_error_within_functions_too(dtype):
    v = pt.vector(dtype=dtype)
    inner = OpFromGraph([v], [v.max()], name="Inner")
    outer = OpFromGraph([v], [inner(v) + v.argmax()], name="Outer")
    x = pt.vector("x", dtype=dtype)
    f = pytensor.function([x], outer(x), mode="ONNX")
    assert f(np.array([1, 5, 2], dtype)) == 6
    with pytest.raises(ValueError, match=r"empty sequence|no identity"):
        f(np.array([], dtype))


@pytest.mark.parametrize("shape", [(3, 4), (None, 4)])
def test_an_axis_known_to_have_elements_needs_no_check(shape):
    x = pt.tensor("x", shape=shape)
    program = export_onnx([x], x.max(axis=1), target="standard", verify=False)
    assert op_types(program) == ["ReduceMax"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema_of_special_values_agree(dtype):
    """NumPy itself is the reference: PyTensor's ``-max(-x)`` for a minimum may wrap around."""
    values = special_values(dtype)
    value = rng.choice(values, (7, 5))
    x = pt.matrix("x", dtype=dtype)
    found = export_onnx([x], [x.max(axis=1), x.min(axis=1), x.max(), x.min()], verify=False)(value)
    with np.errstate(all="ignore"):
        expected = [value.max(axis=1), value.min(axis=1), value.max(), value.min()]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def test_the_first_of_equal_extrema_counts():
    x = pt.matrix("x")
    value = np.array([[1.0, 3.0, 3.0], [0.0, -0.0, 0.0]])
    results = [f(x, axis=axis) for f in (pt.argmax, pt.argmin) for axis in (None, 0, 1)]
    compare_onnx_and_py([x], results, [value])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_sums_and_products_wrap_around_exactly(dtype):
    value = rng.choice(special_values(dtype), (5, 7))
    x = pt.matrix("x", dtype=dtype)
    results = [f(x, axis=axis) for f in (pt.sum, pt.prod) for axis in (None, 0, 1)]
    results += [pt.sum(x, dtype=dtype), pt.prod(x, axis=0, dtype=dtype)]
    compare_onnx_and_py([x], results, [value])


def test_integer_sums_are_exact_above_2_53():
    x = pt.vector("x", dtype="int64")
    value = np.array([2**53, 1, 2**60, 1])
    program = compare_onnx_and_py([x], [x.sum(), x[:2].prod()], [value])
    assert program(value)[0] == 2**60 + 2**53 + 2


@pytest.mark.parametrize(
    ("source", "dtype", "acc_dtype"),
    [
        ("int8", "int8", "int8"),
        ("int8", "int32", "int64"),
        ("int32", "float64", "float64"),
        ("uint8", "uint8", "uint64"),
        ("bool", "int64", "int64"),
        ("int64", "float32", "float64"),
        ("float16", "float16", "float32"),
        ("float16", "float32", "float64"),
        ("float32", "float64", "float64"),
        ("float32", "float32", "float32"),
    ],
)
@pytest.mark.parametrize("op", [Sum, Prod])
def test_sums_and_products_follow_dtype_and_accumulator(op, source, dtype, acc_dtype):
    value = some(source, (4, 9))
    x = dynamic("x", value)
    compare_onnx_and_py([x], op(axis=1, dtype=dtype, acc_dtype=acc_dtype)(x), [value])


def test_float32_is_summed_in_float64_where_the_result_is_float64():
    x = pt.vector("x", dtype="float32")
    value = np.array([1e8, 1.0, -1e8], "float32")
    program = compare_onnx_and_py([x], x.sum(dtype="float64"), [value])
    assert program(value)[0] == 1.0


@pytest.mark.each_value
@pytest.mark.parametrize("op", [ps.and_, ps.or_, ps.xor], ids=str)
@pytest.mark.parametrize("dtype", DISCRETE)
def test_bitwise_reductions_agree(op, dtype):
    x = pt.tensor3("x", dtype=dtype)
    results = [CAReduce(op, axis)(x) for axis in (None, 0, (0, 2))]
    first, *others = (
        [rng.choice(special_values(dtype), shape)] for shape in ((3, 5, 2), (1, 1, 1), (2, 0, 3))
    )
    compare_onnx_and_py([x], results, first, also=others)


def test_bitwise_reductions_of_floats_are_refused():
    x = pt.vector("x")
    with pytest.raises(UnsupportedOpError, match="no bits"):
        export_onnx([x], CAReduce(ps.xor, 0)(x))


def test_other_reductions_are_refused():
    x = pt.vector("x")
    with pytest.raises(UnsupportedOpError, match="no counterpart in ONNX"):
        export_onnx([x], CAReduce(ps.arctan2, 0)(x))


@pytest.mark.parametrize("all_zero", [True, False])
def test_a_product_without_zeros_of_zeros_is_zero(all_zero):
    x = pt.matrix("x")
    value = np.array([[0.0, 0.0], [0.0, 0.0 if all_zero else 3.0]])
    compare_onnx_and_py([x], ProdWithoutZeros(axis=1)(x), [value])


def test_the_gradient_of_a_product_with_zeros_agrees():
    x = pt.matrix("x")
    gradient = pt.grad(x.prod(axis=1).sum(), x)
    compare_onnx_and_py([x], gradient, [np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]])])


def finite(dtype: str) -> st.SearchStrategy:
    """Draw numbers whose sums and products stay finite, or integers of any size."""
    if dtype in DISCRETE:
        return elements(dtype)
    return st.floats(0.5, 2, width=np.dtype(dtype).itemsize * 8)


@pytest.mark.slow
@holds_for(
    data=st.data(),
    name=st.sampled_from(["sum", "prod", "mean", "var", "all", "any"]),
    dtype=st.sampled_from(DTYPES),
)
def test_sums_agree_on_any_shape(data, name, dtype):
    value = data.draw(hnp.arrays(dtype, shapes(), elements=finite(dtype)))
    axis = data.draw(st.sampled_from(all_axes(value.ndim)))
    x = dynamic("x", value)
    # Deviations of nearly equal numbers have few digits; float32 is summed in float32.
    atol = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3}.get(dtype, 0.0)
    rtol = 1e-9 if dtype in DISCRETE and name == "var" else None
    compare_onnx_and_py([x], REDUCTIONS[name](x, axis=axis), [value], atol=atol, rtol=rtol)


@pytest.mark.slow
@holds_for(data=st.data(), name=st.sampled_from(["max", "argmax"]), dtype=st.sampled_from(DTYPES))
def test_extrema_agree_on_any_shape(data, name, dtype):
    value = data.draw(hnp.arrays(dtype, shapes(), elements=elements(dtype)))
    axis = data.draw(st.sampled_from(all_axes(value.ndim)))
    x = dynamic("x", value)
    result = REDUCTIONS[name](x, axis=axis)
    if not reduces_nothing(value.shape, axis):
        compare_onnx_and_py([x], result, [value])
        return
    if not has_results(value.shape, axis):
        return
    with pytest.raises(ValueError, match=MESSAGES[name]):
        pytensor.function([x], result, mode="ONNX")(value)


def numpy_log_softmax(x, axis):
    below = x - x.max(axis, keepdims=True)
    return below - np.log(np.exp(below).sum(axis, keepdims=True))


def numpy_softmax(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


# PyTensor's Python implementation compiles C code for each graph, and subtracts integers in their
# own dtype, which wraps around.
REFERENCES = {softmax: numpy_softmax, log_softmax: numpy_log_softmax}


softmaxes = pytest.mark.parametrize("function", REFERENCES, ids=["softmax", "log_softmax"])


def compare_softmax(function, value: np.ndarray, axes, atol: float = 0.0) -> None:
    x = dynamic("x", value)
    results = [function(x, axis=axis) for axis in axes]
    floats = value.astype(results[0].dtype)
    with np.errstate(all="ignore"):
        wide = floats.astype("float64")
        expected = [REFERENCES[function](wide, axis=axis).astype(floats.dtype) for axis in axes]
    in_mode = pytensor.function([x], results, mode="ONNX")(value)
    exported = export_onnx([x], results, verify=False)(value)
    for found in (in_mode, exported):
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b, atol=atol)


@softmaxes
@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 4), (2, 1, 3, 2)])
def test_softmax_agrees_along_all_axes(function, shape):
    value = np.asarray(rng.normal(size=shape))
    compare_softmax(function, value, all_axes(value.ndim))


@pytest.mark.each_value
@softmaxes
@pytest.mark.parametrize("dtype", NUMBERS)
def test_softmax_agrees_in_every_dtype(function, dtype):
    compare_softmax(function, rng.integers(0, 5, (3, 4)).astype(dtype), [None, 0, 1])


@pytest.mark.parametrize("dtype", FLOATS)
@softmaxes
def test_softmax_of_special_values_agrees(function, dtype):
    special = [[np.nan, 1, 2], [1, np.nan, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [-np.inf] * 3]
    special += [[np.inf] * 3, [800, -800, 0], [1e4, -1e4, 0], [-0.0, 0.0, -0.0]]
    compare_softmax(function, np.array([[row, [1, 2, 3]] for row in special], dtype), [2])


@softmaxes
@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3)])
def test_softmax_of_no_rows_is_empty(function, shape):
    compare_softmax(function, np.zeros(shape), [-1])


@softmaxes
@pytest.mark.parametrize("axis", [-1, 0])
def test_float32_softmax_is_one_node(function, axis):
    x = pt.matrix("x", dtype="float32")
    program = export_onnx([x], function(x, axis=axis), verify=False)
    assert op_types(program) == ["Softmax" if function is softmax else "LogSoftmax"]


@softmaxes
def test_gradients_of_softmax_agree(function):
    x = pt.matrix("x")
    cost = (function(x, axis=1) * np.array([1.0, 2.0, 3.0])).sum()
    # A gradient of softmax is a difference of near numbers.
    compare_onnx_and_py([x], pt.grad(cost, x), [rng.normal(size=(2, 3))], rtol=1e-11)


@pytest.mark.slow
@holds_for(data=st.data(), function=st.sampled_from([softmax, log_softmax]))
def test_softmax_agrees_on_any_shape(data, function):
    dtype = data.draw(st.sampled_from(FLOATS))
    numbers = st.floats(-20, 20, width=np.dtype(dtype).itemsize * 8)
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))
    value = data.draw(hnp.arrays(dtype, shape, elements=numbers))
    axis = data.draw(st.sampled_from(all_axes(value.ndim)))
    # A logarithm near zero is a difference of numbers of order ten.
    compare_softmax(function, value, [axis], atol=40 * float(np.finfo(dtype).eps))
