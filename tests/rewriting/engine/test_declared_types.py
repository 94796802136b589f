"""Results whose type PyTensor declares wrongly, and results that depend on them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.tensor.linalg import lstsq, tensorsolve

from pytensor_onnx import UnsupportedOpError, export_onnx
from tests.conftest import compare_onnx_and_py

RNG = np.random.default_rng(3)
X, Y = pt.matrix("x"), pt.vector("y")
A, B = RNG.normal(size=(5, 3)), RNG.normal(size=5)


@pytest.mark.parametrize(
    "dependent",
    [
        lambda solution: 2 * solution,
        lambda solution: pt.exp(solution).sum(),
        lambda solution: solution[::-1],
        lambda solution: pt.dot(X, solution),
        lambda solution: [solution, solution.shape],
    ],
)
@pytest.mark.few(2)
def test_results_follow_the_right_type(dependent):
    compare_onnx_and_py([X, Y], dependent(lstsq(X, Y, -1.0)[0]), [A, B], rtol=1e-10)


@pytest.mark.slow
def test_names_stay():
    solution = lstsq(X, Y, -1.0)[0]
    solution.name = "coefficients"
    assert [v.name for v in export_onnx([X, Y], solution).model.graph.outputs] == ["coefficients"]


def test_a_result_that_takes_a_matrix_only_is_refused():
    message = r"operand 1 has rank 1, where the operation takes rank 2[^@]*such as x\[:, None\]"
    with pytest.raises(UnsupportedOpError, match=message):
        export_onnx([X, Y], lstsq(X, Y, -1.0)[0][:, 0])
    solution = export_onnx([X, Y], lstsq(X, Y[:, None], -1.0)[0][:, 0])(A, B)
    np.testing.assert_allclose(solution, np.linalg.lstsq(A, B)[0], rtol=1e-11)


@pytest.mark.slow
def test_solutions_of_tensors_have_any_rank_and_are_floats():
    a, b = pt.tensor4("a"), pt.tensor3("b")
    values = [RNG.normal(size=(2, 3, 4, 24)), RNG.normal(size=(2, 3, 4))]
    compare_onnx_and_py([a, b], tensorsolve(a, b), values, rtol=1e-10, atol=1e-12)
    a, b = pt.ltensor4("a"), pt.lmatrix("b")
    whole = RNG.integers(-5, 5, (2, 3, 2, 3))
    compare_onnx_and_py([a, b], tensorsolve(a, b), [whole, np.ones((2, 3), int)], rtol=1e-10)
    compare_onnx_and_py([a], pt.linalg.tensorinv(a), [whole], rtol=1e-10, atol=1e-14)


def test_complex_solutions_of_tensors():
    a, b = pt.ztensor3("a"), pt.zmatrix("b")
    values = [RNG.normal(size=s) + 1j * RNG.normal(size=s) for s in ((2, 3, 6), (2, 3))]
    compare_onnx_and_py([a, b], tensorsolve(a, b), values, rtol=1e-10)


def test_functions_and_loops_are_corrected_inside():
    inner = OpFromGraph([X, Y], [lstsq(X, Y, -1.0)[0].sum()])
    total = inner(X, Y)
    compare_onnx_and_py([X, Y], total, [A, B], rtol=1e-10)
    sides = pt.matrix("sides")
    totals = pytensor.scan(
        lambda y, x: lstsq(x, y, -1.0)[0].sum(), [sides], None, [X], return_updates=False
    )
    compare_onnx_and_py([X, sides], totals, [A, RNG.normal(size=(2, 5))], rtol=1e-10)
