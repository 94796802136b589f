"""Files in the reference evaluator of the onnx package."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import called, evaluate_reference


@pytest.mark.parametrize("opset", [18, 21, 26])
def test_functions_may_call_functions(opset):
    x = pt.vector("x")
    inner = called(lambda x: pt.expm1(pt.erfc(x)) - pt.sigmoid(x), x)
    outer = called(lambda x: called(lambda x: pt.erf(x) * 2 + pt.tanh(x), x) + 1, inner)
    program = export_onnx([x], outer, verify=False, opset_version=opset)
    functions = [function.name for function in program.proto.functions]
    for function in program.proto.functions:
        inner_calls = {node.op_type for node in function.node if node.domain == function.domain}
        assert inner_calls <= set(functions[: functions.index(function.name)])
    value = np.linspace(-2, 2, 5)
    np.testing.assert_allclose(evaluate_reference(program, value)[0], program(value), rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 3])
def test_loops_have_steps(steps):
    n, x = pt.lscalar("n"), pt.vector("x")
    states = pytensor.scan(lambda y: 2 * y, outputs_info=x, n_steps=n, return_updates=False)
    program = export_onnx([n, x], [states, states[-1]], verify=False, target="standard")
    for found, expected in zip(
        evaluate_reference(program, steps, [1.0, 2.0]), program(steps, [1.0, 2.0]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.xfail(reason="the evaluator stacks the results of no steps", raises=ValueError)
def test_loops_may_have_no_steps():
    # The standard: the loop ends at once where the trip count is 0, with scan outputs of length 0.
    n, x = pt.lscalar("n"), pt.vector("x")
    states = pytensor.scan(lambda y: 2 * y, outputs_info=x, n_steps=n, return_updates=False)
    program = export_onnx([n, x], states, verify=False, target="standard")
    assert program(0, [1.0, 2.0]).shape == (0, 2)
    evaluate_reference(program, 0, [1.0, 2.0])
