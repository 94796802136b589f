"""Reductions are guarded against NaN where an element may be NaN, and by sums where they can be."""

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
import pytest

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.forms.exact import has_one_sign
from tests.conftest import compare_onnx_and_py

VALUES = np.array([[1.0, np.nan, -np.inf], [np.inf, -np.inf, 2.0], [-0.0, 0.0, -3.0]])

NEVER_NAN = {
    "comparison": lambda x: (x > 0).astype("float64"),
    "integers": lambda x: pt.exp(pt.isnan(x).astype("int64").astype("float64")),
    "replaced": lambda x: pt.switch(pt.isnan(x), 1.0, x),
    "joined": lambda x: pt.concatenate(
        [(x > 0).astype("float64"), (x < 0).astype("float64")], axis=0
    ),
}
MAY_BE_NAN = {
    "input": lambda x: x,
    "difference": lambda x: pt.switch(x > 0, np.inf, 1.0) - pt.switch(x < 9, np.inf, 0),
    "zero times infinity": lambda x: pt.switch(x > 0, np.inf, 1.0) * (x < 0),
    "root": lambda x: pt.sqrt(pt.switch(x > 0, -1.0, 1.0)),
    "constant": lambda x: pt.switch(x > 0, np.nan, 1.0),
    "other replaced": lambda x: pt.switch(pt.isnan(x + 1), 1.0, x),
}
NEVER_NEGATIVE = {
    "magnitude": pt.abs,
    "square": pt.sqr,
    "sum": lambda x: pt.abs(x) + pt.exp(x),
    "moved": lambda x: pt.abs(x).T[::-1],
    "chosen": lambda x: pt.switch(x > 0, pt.sqrt(x), 2.0),
}


def guards(graph):
    """Return the functions that reduce an array with NaN and infinities, and all operators."""
    x = pt.dmatrix("x")
    y = graph(x)
    results = [y.max(), y.max(axis=0), y.min(axis=1, keepdims=True), pt.argmax(y, axis=0)]
    program = compare_onnx_and_py([x], results, [VALUES])
    operators = [node.op_type for node in program.model.graph.all_nodes()]
    return [name for name in operators if name.startswith("ReduceMax_")], operators


@pytest.mark.parametrize("name", sorted(NEVER_NAN))
def test_no_guard_where_no_element_is_nan(name):
    functions, operators = guards(NEVER_NAN[name])
    assert not functions
    assert not {"ReduceMaxOfOneSign_float64", "ReduceMaxKeepDims_float64"} & set(operators)
    assert operators.count("ArgMax") == 1


@pytest.mark.parametrize("name", sorted(MAY_BE_NAN))
def test_a_guard_where_an_element_may_be_nan(name):
    _, operators = guards(MAY_BE_NAN[name])
    assert operators.count("ArgMax") == 2
    assert any(name.startswith("ReduceMax") and "float" in name for name in operators)


@pytest.mark.parametrize("name", sorted(NEVER_NEGATIVE))
def test_sums_find_nan_among_numbers_of_one_sign(name):
    functions, operators = guards(NEVER_NEGATIVE[name])
    assert not functions
    assert any("OfOneSign" in name for name in operators)


def test_sums_of_infinities_that_cancel_are_not_asked():
    functions, operators = guards(lambda x: pt.abs(x) - pt.exp(x))
    assert functions
    assert not any("OfOneSign" in name for name in operators)
    build = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.DOUBLE, shape=("n", 3))
    magnitude, minus_zero_or_more = build.Abs(x), build.Sqrt(x)
    assert has_one_sign(build.Neg(magnitude))
    assert not has_one_sign(build.Div(magnitude, minus_zero_or_more))
    # The maximum of no elements is minus infinity.
    assert not has_one_sign(build.ReduceMax(magnitude, build.ints([1])))
    assert not has_one_sign(build.Concat(magnitude, build.Neg(magnitude), axis=0))


@pytest.mark.slow
def test_the_maximum_of_large_numbers_is_finite():
    x = pt.dvector("x")
    y = pt.max(pt.concatenate([pt.abs(x), pt.ones(1)]))
    for value in ([1e308, 1.7e308], [np.inf, 1.0], [np.nan, np.inf], []):
        compare_onnx_and_py([x], y, [np.array(value)])
