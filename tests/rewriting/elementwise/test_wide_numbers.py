"""Float32 constants decide no float64 result."""

import math

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import export_onnx

LOG = math.log(1.5)
FORMULAS = {
    "function of a number": (lambda x, c: pt.log(1.5) * x, LOG),
    "function of an integer": (lambda x, c: pt.gammaln(7) * x, math.lgamma(7)),
    "function of a sum": (lambda x, c: pt.log(2 * pt.constant(7)) * x, math.log(14)),
    "quotient": (lambda x, c: x * (pt.constant(1.5) / 7), 1.5 / 7),
    "cast": (lambda x, c: pt.cast(pt.log(1.5), "float64") * x, LOG),
    "sum": (lambda x, c: pt.sum(pt.log(pt.alloc(pt.constant(1.5), 3))) * x, 3 * LOG),
    "condition": (lambda x, c: pt.switch(c, pt.log(1.5), 0.5) * x, LOG),
    "quotient of a condition": (lambda x, c: pt.switch(c, 1.5, 7) / 3.5 / 7 * x, 1.5 / 3.5 / 7),
    "fill": (lambda x, c: pt.fill(x, pt.log(1.5)) * x, LOG),
    "quotient of an array of one number": (
        lambda x, c: (-pt.stack([x, x]) / pt.sqrt(2.0))[0],
        -1 / math.sqrt(2),
    ),
    "number beside an array": (
        lambda x, c: (x * np.array([2.0, 3.0]) / pt.sqrt(2.0) * pt.log(1.5))[1],
        3 / math.sqrt(2) * LOG,
    ),
    "join": (lambda x, c: pt.stack([pt.log(1.5), x])[0], LOG),
    "input": (lambda x, c: pt.log(pt.cast(x, "float32")) + 0 * x, 0.0),
    "cast to float32": (
        lambda x, c: pt.cast(pt.constant(0.1), "float32") * x,
        float(np.float32(0.1)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_numbers_are_computed_in_the_precision_of_the_result(name: str) -> None:
    formula, expected = FORMULAS[name]
    x, c = pt.dscalar("x"), pt.bscalar("c").astype("bool")
    inputs = [x, *c.owner.inputs]
    y = formula(x, c)
    function = pytensor.function(inputs, y, mode="ONNX", on_unused_input="ignore")
    np.testing.assert_allclose(function(1.0, 1), expected, rtol=1e-15)
    program = export_onnx(inputs, y)
    np.testing.assert_allclose(program(1.0, 1), [expected], rtol=1e-15)
    assert "ill-conditioned" not in str(program.verification)


def test_numbers_folded_before_are_computed_again() -> None:
    x = pt.dscalar("x")
    folded = pt.log(pytensor.graph.rewriting.utils.rewrite_graph(1 / pt.constant(1.5)))
    assert folded.owner.inputs[0].owner is None
    y = pytensor.function([x], folded * x, mode="ONNX")(1.0)
    np.testing.assert_allclose(y, -LOG, rtol=1e-15)


def test_a_float32_result_stays_in_float32() -> None:
    x = pt.fscalar("x")
    function = pytensor.function([x], pt.log(1.5) * x, mode="ONNX")
    assert function(1.0).dtype == "float32"
    assert {v.type.dtype for v in function.maker.fgraph.variables} == {"float32"}


def shared_number(x: TensorVariable) -> TensorVariable:
    return pt.log(pytensor.shared(np.float32(1.5))) * x


def test_a_float32_shared_value_is_computed_in_float32() -> None:
    x = pt.dscalar("x")
    y = pytensor.function([x], shared_number(x), mode="ONNX")(1.0)
    np.testing.assert_allclose(y, float(np.log(np.float32(1.5))), rtol=1e-7)
    assert y != LOG
