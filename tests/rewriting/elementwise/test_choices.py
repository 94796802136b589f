"""Operations of a choice between small arrays are computed for these, and then chosen."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.elemwise import Elemwise

from tests.conftest import compare_onnx_and_py

LATE = np.array([[True, False, False], [True, True, False]])
RATES = np.array([0.5, 2.0, np.inf, np.nan, -0.0])
ROW = np.array([1.0, -2.0, np.nan])


def full(results: list) -> list[str]:
    """Return the elementwise operations on matrices of a compiled graph."""
    late, rates, row = pt.matrix("late", dtype="bool"), pt.vector("rates"), pt.vector("row")
    graph = [f(late, rates, row) for f in results]
    function = pytensor.function([late, rates, row], graph, mode="ONNX", on_unused_input="ignore")
    return [
        type(node.op.scalar_op).__name__
        for node in function.maker.fgraph.toposort()
        if isinstance(node.op, Elemwise) and not any(node.outputs[0].type.broadcastable)
        if node.outputs[0].type.ndim == 2
    ]


CASES = {
    "function": lambda late, rates, row: pt.log(pt.where(late, rates[0], rates[1])),
    "with a row": lambda late, rates, row: pt.where(late, rates[0], rates[1]) ** 2 * row - 1,
    "infinite": lambda late, rates, row: rates[4] * pt.where(late, rates[2], rates[3]),
    "signed zeros": lambda late, rates, row: 1.0 / pt.where(late, rates[4], -rates[4]),
    "two choices": lambda late, rates, row: (
        pt.where(late, rates[0], 1.0) * pt.where(late, row, rates[1])
    ),
    "in a choice": lambda late, rates, row: pt.where(
        rates[0] > 0, pt.exp(pt.where(late, rates[0], row)), -np.inf
    ),
    "a cast": lambda late, rates, row: pt.where(late, rates[0], rates[1]).astype("float32") + 1,
}


@pytest.mark.parametrize("f", CASES.values(), ids=CASES)
@pytest.mark.parametrize("late", [LATE, LATE[:1], LATE[:0]], ids=len)
def test_values_are_those_of_all_elements(f, late):
    inputs = [pt.matrix("late", dtype="bool"), pt.vector("rates"), pt.vector("row")]
    compare_onnx_and_py(inputs, f(*inputs), [late, RATES, ROW])


@pytest.mark.parametrize("f", CASES.values(), ids=CASES)
def test_only_the_choice_has_all_elements(f):
    assert full([f]) == ["Switch"]


@pytest.mark.parametrize(
    ("f", "kept"),
    [
        (lambda late, rates, row: pt.exp(pt.where(late, rates[0], late + row)), "Exp"),
        (lambda late, rates, row: pt.where(late, rates[0], rates[1]) / (late + row), "TrueDiv"),
        (lambda late, rates, row: pt.where(late[:1], rates[0], rates[1]) * late, "Mul"),
    ],
    ids=["large branch", "large operand", "small condition"],
)
def test_operations_of_large_arrays_stay(f, kept):
    assert kept in full([f])


def test_the_gradient_of_a_branch_that_is_not_chosen_is_zero():
    late, rates = pt.matrix("late", dtype="bool"), pt.vector("rates")
    total = pt.log(pt.where(late, rates[0], rates[1])).sum()
    values = [np.ones((2, 3), bool), np.array([0.5, 0.0])]
    compare_onnx_and_py([late, rates], pytensor.grad(total, rates), values)
    f = pytensor.function([late, rates], pytensor.grad(total, rates), mode="ONNX")
    np.testing.assert_array_equal(f(*values), [12.0, 0.0])
