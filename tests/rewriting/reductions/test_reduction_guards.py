"""Reductions give the results of the graph as written: of products, of repeated numbers."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py, op_types


def test_the_known_minimum_of_integers_is_the_smallest_one():
    x = pt.constant(np.array([3, -128], "int8"))
    # As written it is the negative of a maximum, which wraps around: no reference.
    (found,) = pytensor.function([], [pt.min(x)], mode="ONNX")()
    assert found == -128


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.any, pt.all], ids=lambda f: f.__name__)
def test_a_number_that_is_repeated_no_times_is_not_in_a_reduction(reduce, count):
    x, v, n = pt.scalar("x"), pt.vector("v", dtype="int64"), pt.lscalar("n")
    results = [reduce(a, axis=0) for a in (pt.alloc(x, n), pt.alloc(x, count), pt.alloc(v, n, 2))]
    for number in (2.0, 0.0, np.inf):
        compare_onnx_and_py([x, v, n], results, [np.float64(number), np.array([1, 0]), count])


@pytest.mark.parametrize("reduce", [pt.max, pt.min], ids=lambda f: f.__name__)
def test_no_repeated_numbers_have_no_extremes(reduce):
    x, v, n = pt.scalar("x"), pt.vector("v", dtype="int64"), pt.lscalar("n")
    for result in (reduce(pt.alloc(x, n)), reduce(pt.alloc(v, n, 2), axis=0)):
        f = pytensor.function([x, v, n], result, mode="ONNX", on_unused_input="ignore")
        np.testing.assert_array_equal(f(2.0, [1, 1], 3), 1 if result.ndim else 2)
        with pytest.raises(ValueError, match="zero-size array"):
            f(2.0, [1, 1], 0)


def test_zero_repetitions_have_no_unique_values():
    x, n = pt.vector("x"), pt.lscalar("n")
    repeated = [pt.alloc(x, n, 2), pt.repeat(x, n), pt.second(pt.alloc(1.0, n, 2), x)]
    first, *others = ([np.array([3.0, 1.0]), count] for count in [0, 2])
    compare_onnx_and_py([x, n], [pt.unique(a) for a in repeated], first, also=others)


def test_unique_values_of_repetitions_are_those_of_the_operand():
    x = pt.vector("x", shape=(2,))
    repeated = pt.unique(pt.alloc(x, 3, 2))
    assert "Expand" not in op_types(compare_onnx_and_py([x], repeated, [np.ones(2)]))


def test_a_number_that_is_repeated_is_reduced_once():
    x, n = pt.scalar("x"), pt.lscalar("n")
    repeated = [pt.alloc(x, 3, 2), pt.ones(n)]
    program = compare_onnx_and_py(
        [x, n], [pt.sum(a) for a in repeated] + [pt.max(repeated[0])], [2.0, 3]
    )
    assert not {"Expand", "ReduceSum", "ReduceMax"} & set(op_types(program))


def test_repeated_numbers_are_cut_to_integers_after_the_reduction():
    x = pt.vector("x")
    stacked = pt.stack([x, x, x])
    outputs = [pt.prod(stacked, dtype="int64"), pt.sum(stacked, dtype="int8")]
    run = compile_onnx([x], outputs)
    assert [int(y) for y in run(np.array([1.5, 1.5]))] == [11, 9]


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod])
def test_integers_wrap_around_before_they_are_reduced(reduce):
    a, x = pt.scalar("a", dtype="int8"), pt.vector("x", dtype="int8")
    values = np.array([100, 101, 7, -128], "int8")
    compare_onnx_and_py([a, x], [reduce(a * x), reduce(-x)], [np.int8(3), values])


@pytest.mark.parametrize("factor", [2.0, np.inf, np.nan, 0.0])
@pytest.mark.parametrize("is_known", [True, False])
def test_the_sum_of_no_multiples_is_zero(factor, is_known):
    x = pt.matrix("x", shape=(None, 2))
    a = pt.constant(factor) if is_known else pt.scalar("a")
    inputs, values = ([x], []) if is_known else ([x, a], [factor])
    results = [pt.sum(a * x, axis=0), pt.sum(x / a)]
    first, other = ([np.ones((length, 2)), *values] for length in (0, 3))
    compare_onnx_and_py(inputs, results, first, also=[other])


@pytest.mark.parametrize(("shape", "factor"), [((3,), None), ((None,), 2.0)])
def test_a_sum_of_multiples_is_a_multiple_of_the_sum(shape, factor):
    x, a = pt.vector("x", shape=shape), pt.scalar("a") if factor is None else pt.constant(factor)
    inputs, values = ([x, a], [np.float64(2)]) if factor is None else ([x], [])
    program = compare_onnx_and_py(inputs, pt.sum(a * x), [np.arange(3.0), *values])
    assert op_types(program) == ["ReduceSum", "Mul"]


def test_products_of_multiples_do_not_overflow():
    x, a = pt.vector("x"), pt.scalar("a")
    compare_onnx_and_py([x, a], pt.prod(a * x), [np.full(100, 1e-10), np.float64(1e10)])
