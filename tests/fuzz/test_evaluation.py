"""References are right where PyTensor's implementations are not, and know what rounding does."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.fuzz.evaluation import Evaluation
from tests.fuzz.implementation import NoReferenceError
from tests.fuzz.quietness import quiet


def evaluated(inputs, result):
    evaluation = Evaluation()
    for variable, value in inputs.items():
        evaluation.give(variable, value)
    with quiet():
        evaluation.evaluate([result])
    return evaluation


def test_a_minimum_is_the_smallest_integer():
    x = pt.tensor("x", dtype="int16", shape=(None, None))
    value, result = np.array([[3, -32768], [-1, 0]], "int16"), pt.min(x, axis=1)
    found = evaluated({x: value}, result).value(result)
    np.testing.assert_array_equal(found, np.array([-32768, -1], "int16"), strict=True)


def test_values_added_at_a_matrix_of_positions_are_repeated():
    x, y = pt.vector("x"), pt.vector("y")
    result = x[np.array([[0, 1], [1, 2], [2, 2]])].inc(y)
    found = evaluated({x: np.zeros(3), y: np.array([1.0, 10.0])}, result).value(result)
    np.testing.assert_array_equal(found, [1.0, 11.0, 21.0])


def test_rounding_in_the_steps_of_a_loop_counts():
    x = pt.vector("x", dtype="float32")
    zero = pt.zeros((), dtype="float32")
    values = {x: np.array([0.3, 0.7, 1.9], "float32")}

    def rounding(step):
        result = pytensor.scan(step, [x], [zero], return_updates=False)
        return evaluated(values, result).rounding(result)

    assert rounding(lambda e, y: pt.tanh(e + y)) < 1
    assert rounding(lambda e, y: pt.log(pt.exp(e)) - e + y) > 1


def test_a_sum_that_is_cut_to_an_integer_is_rounded_before():
    x = pt.vector("x")
    for values, is_known in (([1.5, 1e308, -1e308], False), ([1.5, 1e3, -1e3], True)):
        result = pt.sum(x, dtype="int64")
        assert (evaluated({x: np.array(values)}, result).rounding(result) == 0) == is_known


def test_zeros_that_are_computed_have_any_sign():
    x = pt.vector("x")
    values = {x: np.array([1.0, -0.0, 0.0, 2.0])}
    for result, is_known in (
        (1 / x, True),
        (pt.maximum(x, 0), True),
        (1 / pt.maximum(x, 0), False),
    ):
        assert (evaluated(values, result).rounding(result) < 1) == is_known


def test_float64_gives_the_expected_result_of_float32():
    x = pt.vector("x", dtype="float32")
    values = {x: np.array([0.1, 1.7, 100.0], "float32")}
    wide = values[x].astype("float64")
    results = (
        pt.cumsum(pt.log1p(x)),
        (x * 3).mean(),
        pytensor.map(pt.tanh, x, return_updates=False),
    )
    expected = (np.cumsum(np.log1p(wide)), (wide * 3).mean(), np.tanh(wide))
    for result, known in zip(results, expected, strict=True):
        found = evaluated(values, result)
        np.testing.assert_allclose(found.expected(result), known, rtol=1e-15)
        assert found.value(result).dtype == "float32"
        assert 1e-8 < found.tolerance(result) < 1e-4


def test_float32_is_infinite_where_it_has_no_number():
    x = pt.vector("x", dtype="float32")
    result = pt.exp(x)
    found = evaluated({x: np.array([100.0, -200.0], "float32")}, result)
    np.testing.assert_array_equal(found.expected(result), [np.inf, 0.0])


def test_the_tolerance_is_as_wide_as_rounding_is():
    x = pt.vector("x")
    values = {x: np.array([0.3, 0.7])}
    well, badly = pt.sin(x), pt.sin(x) * (1 + 1e-8) - pt.sin(x)
    assert evaluated(values, well).tolerance(well) == 1e-10
    assert 1e-9 < evaluated(values, badly).tolerance(badly) < 1e-4


def test_a_cumulative_sum_of_narrow_integers_is_wide():
    x = pt.vector("x", dtype="bool")
    result = pt.cumsum(x)
    found = evaluated({x: np.ones(3, dtype=bool)}, result).value(result)
    np.testing.assert_array_equal(found, np.array([1, 2, 3]), strict=True)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_loop_that_reads_memory_as_it_was_is_no_reference(rows):
    x = pt.vector("x")
    state = {"initial": x[:2], "taps": [-2, -1]}
    y = pytensor.scan(lambda a, b: a + b, n_steps=3, outputs_info=[state], return_updates=False)
    np.testing.assert_array_equal(evaluated({x: np.ones(2)}, y).value(y), [2, 3, 5])
    with pytest.raises(NoReferenceError):
        evaluated({x: np.ones(rows)}, y)


def test_rows_of_a_loop_without_steps_are_no_reference():
    x = pt.tensor3("x")
    rows = pytensor.scan(lambda e: pt.concatenate([e, e[:1]]), [x], return_updates=False)
    assert evaluated({x: np.zeros((2, 4, 5))}, rows).value(rows).shape == (2, 5, 5)
    with pytest.raises(NoReferenceError):
        evaluated({x: np.zeros((0, 4, 5))}, rows)
    totals = pytensor.scan(lambda e: e.sum(), [x], return_updates=False)
    assert evaluated({x: np.zeros((0, 4, 5))}, totals).value(totals).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_value_that_may_be_rounded_to_a_singularity_is_not_known(dtype):
    x = pt.vector("x", dtype=dtype)
    gradient = pt.grad(pt.log1p(-(pt.tanh(x) ** 2)).sum(), x)
    # From where on 1 - tanh(x) is a rounding error.
    edge = {"float32": 9.0, "float64": 19.0}[dtype]
    values = np.linspace(edge - 8, edge + 3, 23).astype(dtype)
    known = evaluated({x: values}, gradient).is_known(gradient)
    assert not known[values > edge - 0.5].any()
    assert known[values < edge - 7].all()
