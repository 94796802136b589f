"""Dimensions that are computed from others, compared with the sizes that they stand for."""

import copy
import pickle
from math import prod

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, strategies as st

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dimensions import Dimensions
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import (
    ComputedSize,
    Polynomial,
    is_empty_with,
    is_positive,
    product_dim,
    quotient_dim,
    replace_parts,
    sizes_in,
    slice_dim,
    sum_dim,
)

NAMES = ["n", "m", "n+1", "2*n", "n[1:]", "'n'", "3", "a-b"]
SIZES = st.fixed_dictionaries({name: st.integers(0, 4) for name in NAMES})
BOUNDS = st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63)])
STEPS = st.sampled_from([1, 1, 2, -1, -2])


def combine(dims):
    several = st.lists(dims, max_size=3)
    return st.one_of(
        several.map(sum_dim),
        several.map(product_dim),
        st.builds(quotient_dim, several, several),
        st.builds(slice_dim, dims, BOUNDS, BOUNDS, STEPS),
    )


DIMS = st.recursive(st.sampled_from([*NAMES, 0, 1, 2]), combine, max_leaves=6)


def size_of(dim, sizes):
    """Return the size that a dimension stands for, None where it is unknown."""
    if isinstance(dim, ComputedSize):
        return replace_parts(dim, lambda part: size_of(part, sizes))
    return sizes[dim] if isinstance(dim, str) else dim


def sliced(size, start, stop, step):
    """Count the elements of a slice as the operator Slice does."""
    first = max(start + size, 0) if start < 0 else start
    last = max(stop + size, 0 if step > 0 else -1) if stop < 0 else stop
    first, last = (min(first, size), min(last, size)) if step > 0 else (min(first, size - 1), last)
    return len([i for i in range(first, last, step) if 0 <= i < size])


@pytest.mark.slow
@given(st.lists(DIMS, max_size=3), SIZES)
def test_sums_and_products_stand_for_their_sizes(dims, sizes):
    parts = [size_of(dim, sizes) for dim in dims]
    for combined, expected in ((sum_dim(dims), sum), (product_dim(dims), prod)):
        if None in parts:
            assert combined is None
        elif combined is not None:
            assert size_of(combined, sizes) == expected(parts)


@pytest.mark.slow
@given(DIMS, BOUNDS, BOUNDS, STEPS, SIZES)
def test_slices_stand_for_their_lengths(dim, start, stop, step, sizes):
    length = slice_dim(dim, start, stop, step)
    if length is not None:
        assert size_of(length, sizes) == sliced(size_of(dim, sizes), start, stop, step)


@pytest.mark.slow
@given(st.lists(DIMS, max_size=2), st.lists(DIMS, max_size=2), SIZES)
def test_quotients_are_exact(whole, parts, sizes):
    left = quotient_dim(whole, parts)
    if left is not None:
        sides = [product_dim([left, *parts]), product_dim(whole)]
        assert sides[0] == sides[1]
    product = product_dim([*whole, *parts])
    if product is not None and product_dim(parts) != 0:
        assert quotient_dim([product], parts) == product_dim(whole)


@given(DIMS, DIMS, SIZES)
def test_texts_of_computed_sizes_tell_them_apart(first, second, sizes):
    are_computed = isinstance(first, ComputedSize) and isinstance(second, ComputedSize)
    if are_computed and str(first) == str(second):
        assert size_of(first, sizes) == size_of(second, sizes)
    assert (first == second) == ((str(first), type(first)) == (str(second), type(second)))


@pytest.mark.slow
@given(DIMS, st.lists(DIMS, max_size=3), SIZES)
def test_known_emptiness_holds(dim, others, sizes):
    size = size_of(dim, sizes)
    if is_positive(dim):
        assert size > 0
    if size == 0 and is_empty_with(dim, others):
        assert 0 in [size_of(other, sizes) for other in others]


@pytest.mark.slow
@given(st.lists(st.tuples(DIMS, DIMS), max_size=8), DIMS, SIZES)
def test_equal_dimensions_keep_their_sizes(pairs, dim, sizes):
    dims = Dimensions()
    for first, second in pairs:
        if size_of(first, sizes) == size_of(second, sizes):
            dims.equate(first, second)
    canonical = dims.canonical(dim)
    assert size_of(canonical, sizes) == size_of(dim, sizes)
    assert dims.canonical(canonical) == canonical


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (sum_dim(["n", "n"]), product_dim([2, "n"])),
        (product_dim([2, sum_dim(["n", 1])]), sum_dim(["n", 1, 1, "n"])),
        (product_dim(["n", sum_dim(["m", 1])]), sum_dim([product_dim(["n", "m"]), "n"])),
        (slice_dim(sum_dim(["n", 1]), 0, -1, 1), "n"),
        (slice_dim("n", -1, -(2**63), -1), "n"),
        (slice_dim("n", 0, 2**63 - 1, 1), "n"),
        (slice_dim(sum_dim(["n", 3]), 1, 3, 1), 2),
        (slice_dim(product_dim([2, "n"]), 1, -1, 2), slice_dim(sum_dim(["n", "n"]), 1, -1, 2)),
    ],
)
def test_equal_sizes_are_equal_dimensions(first, second):
    assert first == second is not None


def test_dimensions_grow_no_longer_than_a_line():
    chain, power = "a0", "n"
    for i in range(40):
        chain, power = sum_dim([chain, f"a{i}"]), product_dim([power, power])
    nested = "n"
    for _ in range(40):
        nested = slice_dim(nested, 1, -1, 1)
    assert chain is power is nested is None


def test_equations_of_chains_stay_short():
    dims = Dimensions()
    for i in range(400):
        dims.equate(f"a{i + 1}", product_dim([f"a{i}", f"a{i}"]))
        dims.equate(f"b{i + 1}", f"b{i}")
    assert len(str(dims.canonical("a400"))) < 200
    assert dims.canonical("b0") == "b400"


def test_computed_sizes_are_copied_with_their_structure():
    size = sum_dim([slice_dim("n", 1, -1, 2), "k+1"])
    for other in (copy.deepcopy(size), pickle.loads(pickle.dumps(size))):
        assert other == size
        assert isinstance(other, Polynomial)
        assert other.terms == size.terms


def test_parts_of_equal_sizes_may_be_found_equal_later():
    dims = Dimensions()
    first, second = slice_dim("a", 0, 3, 1), slice_dim("b", 0, 3, 1)
    dims.equate(first, second)
    dims.equate("b", "a")
    assert dims.canonical(first) == dims.canonical(second)
    assert dims.canonical("a") == dims.canonical("b")


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda build, x: build.Shape(x), ("n", 4, "m")),
        (lambda build, x: build.Shape(x, start=1), (4, "m")),
        (lambda build, x: build.Shape(x, start=-2, end=-1), (4,)),
        (lambda build, x: build.size(x, 2), ("m",)),
        (lambda build, x: build.Gather(build.Shape(x), np.array([2, 0])), ("m", "n")),
        (lambda build, x: build.Slice(build.Shape(x), [1], [2**63 - 1]), (4, "m")),
        (lambda build, x: build.Slice(build.Shape(x), [0], [3], [0], [2]), ("n", "m")),
        (lambda build, x: build.Mul(build.size(x, 0), build.size(x, 1)), (product_dim(["n", 4]),)),
        (lambda build, x: build.ReduceProd(build.Shape(x), [0]), (product_dim(["n", 4, "m"]),)),
        (lambda build, x: build.Cast(build.Shape(x), to=ir.DataType.INT32), ("n", 4, "m")),
        (
            lambda build, x: build.Concat(build.ints([-1]), build.Shape(x), axis=0),
            (-1, "n", 4, "m"),
        ),
        (lambda build, x: build.Add(build.Shape(x), 1), (None, None, None)),
        (lambda build, x: build.Add(build.size(x, 0), 2), (sum_dim(["n", 2]),)),
        (lambda build, x: build.Add(build.size(x, 0), -1), (None,)),
        (lambda build, x: x, None),
    ],
)
def test_known_computed_sizes(compute, expected):
    build = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("n", 4, "m"))
    assert sizes_in(compute(build, x)) == expected
