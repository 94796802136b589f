import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytensor_onnx.builder import Builder
from pytensor_onnx.dims import product_dim, quotient_dim, sizes_in, slice_dim
from pytensor_onnx.scope import ModelScope

SIZES = {"n": 3, "m": 5, "n[1:]": 2}
DIMS = st.lists(st.sampled_from([*SIZES, 0, 1, 2, 6, None]), max_size=4)


def size_of(dim):
    """Return the size that a dimension stands for."""
    if dim is None or isinstance(dim, int):
        return dim
    return int(np.prod([SIZES.get(factor) or int(factor) for factor in dim.split("*")]))


@given(DIMS)
def test_product_is_the_product_of_the_sizes(dims):
    product = product_dim(dims)
    if product is None:
        assert None in dims
    else:
        assert size_of(product) == np.prod([size_of(dim) for dim in dims], dtype=int)


@given(DIMS, DIMS)
def test_what_was_multiplied_is_taken_away(first, second):
    left = quotient_dim([*first, *second], second)
    if None in first + second or 0 in first + second:
        assert left in (None, 0)
    else:
        assert left == product_dim(first)


@given(DIMS, DIMS)
def test_quotients_are_exact_where_they_are_known(whole, parts):
    left = quotient_dim(whole, parts)
    if left is not None:
        assert size_of(product_dim([left, *parts])) == size_of(product_dim(whole))


@given(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([1, 2, -1]))
def test_equal_slices_have_equal_names(start, stop, step):
    assert slice_dim("n", start, stop, step) == slice_dim("n", start, stop, step)
    assert slice_dim("n", start, stop, step) != slice_dim("m", start, stop, step)
    assert slice_dim("n", start, stop, step) != slice_dim("n", start, stop + 7, step)


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda onnx, x: onnx.Shape(x), ("n", 4, "m")),
        (lambda onnx, x: onnx.Shape(x, start=1), (4, "m")),
        (lambda onnx, x: onnx.Shape(x, start=-2, end=-1), (4,)),
        (lambda onnx, x: onnx.size(x, 2), ("m",)),
        (lambda onnx, x: onnx.Gather(onnx.Shape(x), np.array([2, 0])), ("m", "n")),
        (lambda onnx, x: onnx.Slice(onnx.Shape(x), [1], [2**63 - 1]), (4, "m")),
        (lambda onnx, x: onnx.Slice(onnx.Shape(x), [0], [3], [0], [2]), ("n", "m")),
        (lambda onnx, x: onnx.Mul(onnx.size(x, 0), onnx.size(x, 1)), ("4*n",)),
        (lambda onnx, x: onnx.ReduceProd(onnx.Shape(x), [0]), ("4*m*n",)),
        (lambda onnx, x: onnx.Cast(onnx.Shape(x), to=ir.DataType.INT32), ("n", 4, "m")),
        (lambda onnx, x: onnx.Concat(onnx.ints([-1]), onnx.Shape(x), axis=0), (-1, "n", 4, "m")),
        (lambda onnx, x: onnx.Add(onnx.Shape(x), 1), (None, None, None)),
        (lambda onnx, x: x, None),
    ],
)
def test_what_is_known_of_computed_sizes(compute, expected):
    onnx = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 4, "m"))
    assert sizes_in(compute(onnx, x)) == expected
