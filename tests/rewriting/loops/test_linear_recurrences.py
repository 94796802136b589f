"""Linear recurrences are computed for all steps at once, and by a loop where this fails."""

import itertools

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.scan.op import Scan
from scipy.signal import lfilter

from tests.conftest import called, compare_onnx_and_py, op_types


def scan(step, sequences, start, **options):
    return pytensor.scan(step, sequences, start, return_updates=False, **options)


def has_scan(inputs, outputs):
    f = pytensor.function(inputs, outputs, mode="ONNX")
    return any(isinstance(node.op, Scan) for node in f.maker.fgraph.toposort())


def compare(inputs, outputs, values, **options):
    assert not has_scan(inputs, outputs)
    program = compare_onnx_and_py(inputs, outputs, values, **options)
    assert not {"Scan", "Loop"} & set(op_types(program))
    return program


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_lengths_and_special_values(dtype):
    a, b, start = pt.vector("a", dtype=dtype), pt.vector("b", dtype=dtype), pt.scalar(dtype=dtype)
    y = scan(lambda a, b, y: a * y + b, [a, b], start)
    rng = np.random.default_rng(0)
    tolerance = {"rtol": 1e-12 if dtype == "float64" else 2e-5, "atol": 1e-6}
    f = pytensor.function([a, b, start], y, mode="ONNX")
    compare([a, b, start], y, [np.ones(3, dtype), np.ones(3, dtype), np.array(2, dtype)])
    cases = [(rng.uniform(-1, 1, n), rng.normal(size=n), 0.5) for n in (0, 1, 2, 3, 16, 17, 100)]
    ones = np.ones(6)
    cases += [
        ([0.5, 0, 2, 0, 0, 1], ones, np.inf),
        ([0.5, 1, 2, 0.5, 1, 1], [1, 2, np.nan, 3, 4, 5], 1.0),
        ([0.5, 1, 2, 0.5, 1, 1], [1, 2, -np.inf, 3, np.inf, 5], 1.0),
        ([0.5, np.nan, 2, 0, 1, 1], ones, 1.0),
        ([0.5, np.inf, 2, 0, 1, 1], 0 * ones, 0.0),
        (1e30 * ones, 0 * ones, 0.0),
        (1e-30 * ones, 0 * ones, 1e38),
        ([1e-30, 1e-30, 1e30, 1e30, 1, 1], 0 * ones, 1e30),
        ([1e20, 1e18, 1e-30, 1e-30, 1, 1], 1e-30 * ones, 1e-20),
    ]
    for case in cases:
        factors, terms, y0 = (np.array(x, dtype) for x in case)
        expected, y = [], y0
        with np.errstate(all="ignore"):
            for factor, term in zip(factors, terms, strict=True):
                y = (factor * y + term).astype(dtype)
                expected.append(y)
        found = f(factors, terms, y0)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, np.array(expected, dtype), **tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constant_factors_of_all_sizes(dtype):
    x, c, start = pt.vector("x", dtype=dtype), pt.scalar("c", dtype=dtype), pt.scalar(dtype=dtype)
    f = pytensor.function([x, c, start], scan(lambda e, y: c * y + e, [x], start), mode="ONNX")
    rng, tolerance = np.random.default_rng(0), 1e-13 if dtype == "float64" else 3e-6
    special = {"nan": {3: np.nan}, "infinities": {10: np.inf, 40: -np.inf}, "none": {}}
    for factor in (0.0, 0.9, -0.9, 1.0, -1.0, 0.3, 1e-30, 1e-310, 1.01, -1.5, np.nan, np.inf):
        for n, values in itertools.product((0, 1, 32, 33, 1023, 1025, 2100), special.values()):
            terms = rng.normal(size=n)
            for place, value in values.items():
                terms[place : place + 1] = value
            expected, sizes, y, size = [], [], np.array(0.5, dtype), 0.5
            with np.errstate(all="ignore"):
                for term in terms.astype(dtype):
                    y = (np.array(factor, dtype) * y + term).astype(dtype)
                    size = abs(factor) * size + abs(term)
                    expected.append(y)
                    sizes.append(size)
            found = f(terms.astype(dtype), np.array(factor, dtype), np.array(0.5, dtype))
            assert found.dtype == dtype
            expected, sizes = np.array(expected, dtype), np.array(sizes)
            is_finite = np.isfinite(expected)
            np.testing.assert_array_equal(found[~is_finite], expected[~is_finite])
            difference = np.abs(found - expected)[is_finite]
            np.testing.assert_array_less(difference, tolerance * sizes[is_finite] + 1e-300)


@pytest.mark.parametrize("factor", [0.3, 0.6])
def test_products_below_the_normal_numbers_are_harmless_beside_large_values(factor):
    x = pt.vector("x")
    f = pytensor.function([x], scan(lambda e, y: factor * y + e, [x], pt.zeros(())), mode="ONNX")
    terms = np.r_[np.zeros(3), np.random.default_rng(0).uniform(1, 2, 3000)]
    expected = lfilter([1.0], [1.0, -factor], terms)
    np.testing.assert_allclose(f(terms), expected, rtol=1e-14)
    tail = np.r_[1e100, np.zeros(2000)]
    np.testing.assert_allclose(f(tail), lfilter([1.0], [1.0, -factor], tail), rtol=1e-12)


def test_values_that_decay_below_the_normal_numbers_are_those_of_the_loop():
    n = pt.lscalar("n")
    y = scan(lambda e, y: 0.25 * y + 0 * e, [pt.zeros(n)], pt.constant(1e100))
    f = pytensor.function([n], y, mode="ONNX")
    np.testing.assert_allclose(f(660), np.ldexp(1e100, -2 * np.arange(1, 661)), rtol=1e-12)


def test_large_factors_that_cancel_are_those_of_the_loop():
    x = pt.vector("x")
    y = scan(lambda e, y: 2 * y - e, [x], pt.ones(()))
    np.testing.assert_array_equal(
        pytensor.function([x], y, mode="ONNX")(np.ones(500)), np.ones(500)
    )


@pytest.mark.slow
def test_forms_of_users():
    x, rate = pt.vector("x"), pt.scalar("rate")
    returns = scan(lambda r, y: r + rate * y, [x], pt.zeros(()), go_backwards=True)[::-1]
    smooth = scan(lambda e, y: rate * e + (1 - rate) * y, [x], x[0])
    variance = scan(lambda e, s: 0.1 + 0.2 * e**2 + 0.7 * s, [x], pt.ones(()))
    minus = scan(lambda e, y: y * pt.exp(-e) - 3 * e, [x], pt.ones(()))
    values = [np.random.default_rng(1).normal(size=60), 0.9]
    outputs = [returns, smooth, variance, minus, variance[-1], pt.log(variance).sum()]
    program = compare([x, rate], outputs, values, rtol=1e-11)
    (empty,) = pytensor.function([x, rate], [returns], mode="ONNX")(np.zeros(0), 0.9)
    assert empty.shape == (0,)
    assert len(program.model.functions) >= 1


@pytest.mark.slow
def test_gradients_need_no_loop():
    x, rate = pt.vector("x"), pt.scalar("rate")
    y = scan(lambda e, y: rate * y + e, [x], pt.ones(()))
    values = [np.random.default_rng(2).normal(size=40), 0.8]
    gradients = pt.grad((y**2).sum(), [x, rate])
    compare([x, rate], gradients, values, rtol=1e-11)
    f = pytensor.function([x, rate], gradients, mode="ONNX")
    for length in (0, 1, 2):
        found = f(values[0][:length], 0.8)
        assert found[0].shape == (length,)
    np.testing.assert_array_equal(f(np.zeros(0), 0.8)[1], 0)


@pytest.mark.slow
def test_recurrences_within_loops_of_functions():
    x = pt.tensor("x", shape=(1, 1), dtype="float32")
    y = called(lambda x: scan(returns_of, [x], None), x)
    compare_onnx_and_py([x], y, [np.array([[-12.25]], dtype="float32")])
    m = pt.matrix("m")
    y = called(lambda m: scan(returns_of, [m], None), m)
    compare_onnx_and_py([m], y, [np.arange(12.0).reshape(3, 4)])


def returns_of(row):
    return scan(lambda e, y: 0.5 * y + e, [row], pt.zeros_like(row[0]))[-1]


def test_vectors_with_a_factor_for_each_element():
    x, factors = pt.matrix("x", shape=(None, 3)), pt.vector("factors", shape=(3,))
    y = scan(lambda e, y: factors * y + e, [x], pt.zeros(3))
    values = [np.random.default_rng(3).normal(size=(30, 3)), np.array([0.9, -0.5, 1.1])]
    compare([x, factors], y, values, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        lambda e, y: e * (y + 1),
        lambda e, y: y * y + e,
        lambda e, y: e * y + y,
        lambda e, y: pt.tanh(y) * 0.5 + e,
    ],
)
def test_other_updates_stay_loops(step):
    x = pt.vector("x")
    y = scan(step, [x], pt.ones(()))
    assert has_scan([x], y)
    compare_onnx_and_py([x], y, [np.random.default_rng(4).normal(size=5)])


def test_long_rows_and_integers_stay_loops():
    x = pt.matrix("x", shape=(None, 100))
    assert has_scan([x], scan(lambda e, y: 0.5 * y + e, [x], pt.zeros(100)))
    i = pt.lvector("i")
    assert has_scan([i], scan(lambda e, y: 3 * y + e, [i], pt.zeros((), dtype="int64")))
