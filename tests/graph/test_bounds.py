"""Bounds of integers hold for all inputs, and are unknown beyond a number of values."""

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.bounds import (
    INT32,
    MOST_VALUES,
    Bounds,
    fit_int32,
    never_negative,
)
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.facts import LARGEST_SIZE, UNKNOWN


@pytest.fixture
def build():
    return Builder(ModelScope(21))


@pytest.fixture
def size(build):
    return build.Squeeze(build.Shape(ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",))))


@pytest.fixture
def given_number():
    return ir.val("i", dtype=ir.DataType.INT64, shape=())


def test_sizes_and_their_arithmetic_have_bounds(build, size):
    for value, expected in (
        (size, (0, LARGEST_SIZE)),
        (build.Sub(size, 3), (-3, LARGEST_SIZE - 3)),
        (build.Mul(size, -2), (-2 * LARGEST_SIZE, 0)),
        (build.Div(build.Add(size, 15), 16), (0, (LARGEST_SIZE + 15) // 16)),
        (build.Max(build.Neg(size), 5), (5, 5)),
    ):
        assert Bounds().of(value) == expected


def test_integers_that_are_given_have_none(given_number, build):
    assert Bounds().of(given_number) == UNKNOWN
    assert Bounds().of(build.Add(given_number, 1)) == UNKNOWN


def test_a_branch_has_the_bounds_of_both_results(build, size):
    (chosen,) = build.cond(
        build.Equal(size, 3), lambda inner: [inner.Neg(size)], lambda inner: [inner.Add(size, 7)]
    )
    assert Bounds().of(chosen) == (-LARGEST_SIZE, LARGEST_SIZE + 7)


def test_products_beyond_int64_are_unknown(build, size):
    square = build.Mul(size, size)
    assert Bounds().of(square) == (0, LARGEST_SIZE**2)
    assert Bounds().of(build.Mul(square, square)) == UNKNOWN


def test_results_that_wrap_around_have_the_bounds_of_their_dtype(build):
    number = ir.val("i", dtype=ir.DataType.UINT8, shape=())
    assert Bounds().of(build.cast(number, "int8")) == (-128, 127)
    assert Bounds().of(build.Add(build.Max(build.cast(number, "int8"), 0), 1)) == (-128, 127)
    assert Bounds().of(build.Sub(number, 1)) == (0, 255)


def test_operands_are_inside_of_int32(build, size, given_number):
    assert fit_int32(build.Max(size, np.int64(INT32[1] - 1)).producer())
    for other in (given_number, np.int64(INT32[1]), build.Mul(size, size)):
        assert not fit_int32(build.Max(size, other).producer())


def test_sizes_are_never_negative(build, size, given_number):
    assert never_negative(size, build.Add(size, 1))
    assert not never_negative(size, build.Sub(size, 1))
    assert not never_negative(given_number)


def test_long_chains_are_unknown(build, size):
    value = size
    for _ in range(10 * MOST_VALUES):
        value = build.Div(value, 2)
    assert not never_negative(value)
