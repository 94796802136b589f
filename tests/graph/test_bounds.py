"""Bounds of integers hold for all inputs, and are unknown beyond a number of values."""

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.bounds import (
    INT32,
    LARGEST_SIZE,
    MOST_VALUES,
    UNKNOWN,
    Bounds,
    fit_int32,
    never_negative,
)
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope


@pytest.fixture
def onnx():
    return Builder(ModelScope(21))


@pytest.fixture
def size(onnx):
    return onnx.Squeeze(onnx.Shape(ir.val("x", dtype=ir.DataType.FLOAT, shape=("n",))))


@pytest.fixture
def given_number():
    return ir.val("i", dtype=ir.DataType.INT64, shape=())


def test_sizes_and_their_arithmetic_have_bounds(onnx, size):
    for value, expected in (
        (size, (0, LARGEST_SIZE)),
        (onnx.Sub(size, 3), (-3, LARGEST_SIZE - 3)),
        (onnx.Mul(size, -2), (-2 * LARGEST_SIZE, 0)),
        (onnx.Div(onnx.Add(size, 15), 16), (0, (LARGEST_SIZE + 15) // 16)),
        (onnx.Max(onnx.Neg(size), 5), (5, 5)),
    ):
        assert Bounds().of(value) == expected


def test_integers_that_are_given_have_none(given_number, onnx):
    assert Bounds().of(given_number) == UNKNOWN
    assert Bounds().of(onnx.Add(given_number, 1)) == UNKNOWN


def test_a_branch_has_the_bounds_of_both_results(onnx, size):
    (chosen,) = onnx.cond(
        onnx.Equal(size, 3), lambda inner: [inner.Neg(size)], lambda inner: [inner.Add(size, 7)]
    )
    assert Bounds().of(chosen) == (-LARGEST_SIZE, LARGEST_SIZE + 7)


def test_products_beyond_int64_are_unknown(onnx, size):
    square = onnx.Mul(size, size)
    assert Bounds().of(square) == (0, LARGEST_SIZE**2)
    assert Bounds().of(onnx.Mul(square, square)) == UNKNOWN


def test_results_that_wrap_around_have_the_bounds_of_their_dtype(onnx):
    number = ir.val("i", dtype=ir.DataType.UINT8, shape=())
    assert Bounds().of(onnx.cast(number, "int8")) == (-128, 127)
    assert Bounds().of(onnx.Add(onnx.Max(onnx.cast(number, "int8"), 0), 1)) == (-128, 127)
    assert Bounds().of(onnx.Sub(number, 1)) == (0, 255)


def test_operands_are_inside_of_int32(onnx, size, given_number):
    assert fit_int32(onnx.Max(size, np.int64(INT32[1] - 1)).producer())
    for other in (given_number, np.int64(INT32[1]), onnx.Mul(size, size)):
        assert not fit_int32(onnx.Max(size, other).producer())


def test_sizes_are_never_negative(onnx, size, given_number):
    assert never_negative(size, onnx.Add(size, 1))
    assert not never_negative(size, onnx.Sub(size, 1))
    assert not never_negative(given_number)


def test_long_chains_are_unknown(onnx, size):
    value = size
    for _ in range(10 * MOST_VALUES):
        value = onnx.Div(value, 2)
    assert not never_negative(value)
