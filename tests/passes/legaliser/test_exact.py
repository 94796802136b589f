"""The forms of operators that are exact where the runtime's are not."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.operators.dims import sum_dim
from tests.passes.conftest import bare, bare_op
from tests.properties import holds_for

WRAPPING = {"ReduceSum": np.sum, "ReduceProd": np.prod}


def legalised(model):
    model.legalise()
    return model


@holds_for(
    data=st.data(),
    op_type=st.sampled_from(list(WRAPPING)),
    dtype=st.sampled_from(["int32", "int64", "uint32", "uint64"]),
    keepdims=st.booleans(),
    is_static=st.booleans(),
)
def test_integer_reductions_wrap_around_on_any_shape(data, op_type, dtype, keepdims, is_static):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    value = data.draw(hnp.arrays(dtype, shape))
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1).map(sorted))
    shapes = [shape] if is_static else []
    model = bare(
        lambda build, x: build.op(op_type, x, build.ints(axes), keepdims=int(keepdims)),
        value,
        shapes=shapes,
    )
    (found,) = legalised(model).run()
    expected = WRAPPING[op_type](value, axis=tuple(axes), keepdims=keepdims, dtype=dtype)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("axes", [[0], [1], [0, 2], [0, 1, 2]])
def test_an_integer_sum_is_one_product_without_a_loop(axes):
    value = np.ones((2, 3, 4), "int64")
    model = bare(lambda build, x: build.ReduceSum(x, build.ints(axes)), value, shapes=[value.shape])
    operators = legalised(model).operators()
    assert operators.count("MatMul") == 1
    assert not {"Loop", "ReduceSum"} & set(operators)


def test_merged_sizes_are_not_multiplied_in_a_loop():
    value = np.ones((2, 3, 4), "int64")
    model = bare(lambda build, x: build.ReduceSum(x, build.ints([0, 2])), value)
    assert "Loop" not in legalised(model).operators()


def test_integer_sums_along_axes_of_an_unknown_rank_are_refused():
    def emit(build, x):
        def body(inner, x):
            return inner.ReduceSum(x, inner.ints([0]), keepdims=0)

        return build.call("Total", body, x)

    with pytest.raises(UnsupportedOpError, match="unknown rank"):
        bare(emit, np.ones((2, 3), "int64")).legalise()


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_guarded_extremum_of_no_elements_follows_the_standard(op_type, dtype):
    model = bare(lambda build, x: build.op(op_type, x, build.ints([0])), np.ones((0, 2), dtype))
    (found,) = legalised(model).run()
    np.testing.assert_array_equal(found, [[-np.inf if op_type == "ReduceMax" else np.inf] * 2])


ROWS = [[1, np.nan, 3], [np.inf, 1, 2], [-np.inf, 1, 2], [700, -700, 0], [1, 2, 3]]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_guarded_log_softmax_is_that_of_numpy(axis):
    x = np.array(ROWS, "float64")
    x = x.T if axis == 0 else x
    with np.errstate(all="ignore"):
        below = x - x.max(axis, keepdims=True)
        expected = below - np.log(np.exp(below).sum(axis, keepdims=True))
    (found,) = legalised(bare_op("LogSoftmax", x, axis=axis)).run()
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_log_softmax_needs_no_guard_in_float32_nor_for_finite_numbers():
    single, double = (bare_op("LogSoftmax", np.ones((2, 3), d)) for d in ("float32", "float64"))
    single.legalise()
    double.legalise(assume_finite=True)
    assert single.operators() == double.operators() == ["LogSoftmax"]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint32", "uint64", "int16"])
@pytest.mark.parametrize(
    ("condition", "first", "second"), [((3,),) * 3, ((2, 1), (1, 3), ()), ((), (3,), (2, 1))]
)
def test_selections_without_a_kernel_broadcast(condition, first, second, dtype):
    rng = np.random.default_rng(0)
    largest = 2 if dtype == "bool" else int(np.iinfo(dtype).max)
    x, y = (rng.integers(0, largest, shape, "uint64").astype(dtype) for shape in (first, second))
    c = rng.integers(0, 2, condition).astype(bool)
    (found,) = legalised(bare_op("Where", c, x, y)).run()
    np.testing.assert_array_equal(found, np.where(c, x, y))
    assert found.dtype == dtype


def test_product_as_wide_as_its_inner_dimension_needs_no_guard():
    x, y = np.ones((2, 0, 0)), np.ones((2, 0, 3))
    model = bare_op("MatMul", x, y, shapes=[("b", "n", "n"), ("b", "n", 3)])
    model.legalise()
    assert model.operators() == ["MatMul"]
    assert model.run()[0].shape == (2, 0, 3)


def test_product_over_a_size_and_one_more_needs_no_guard():
    x, y = np.ones((2, 3, 1)), np.ones((2, 1, 3))
    more = sum_dim(["n", 1])
    model = bare_op("MatMul", x, y, shapes=[("b", 3, more), ("b", more, 3)])
    model.legalise()
    assert model.operators() == ["MatMul"]


@pytest.mark.parametrize("name", ["n+1", "2*n+1", "n[1:]+1"])
def test_product_over_a_size_with_a_name_like_arithmetic_is_guarded(name):
    x, y = np.ones((2, 3, 0)), np.ones((2, 0, 3))
    (found,) = legalised(bare_op("MatMul", x, y, shapes=[("b", 3, name), ("b", name, 3)])).run()
    np.testing.assert_array_equal(found, np.zeros((2, 3, 3)))
