"""Products of sequences and fixed matrices are taken before the loop, with the same values."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.loops.loop_cases import scan

LENGTHS = [0, 1, 2, 20]
RTOL = 1e-9
STEPS = {
    "row times matrix": lambda e, h, w: pt.tanh(e @ w + h),
    "matrix times row": lambda e, h, w: pt.tanh(w.T @ e + h),
    "function of the row": lambda e, h, w: pt.tanh(pt.exp(e)[::-1] @ w * h + e.sum()),
    "twice": lambda e, h, w: pt.tanh((e @ w) @ (w.T @ w) + h),
}


def values(*shape):
    return np.random.default_rng(3).normal(scale=0.5, size=shape)


def operators_in_loop(program):
    """Return the operators in the bodies of loops."""
    bodies = [
        attribute.as_graph()
        for node in program.model.graph.all_nodes()
        if node.op_type in ("Scan", "Loop")
        for attribute in node.attributes.values()
        if attribute.name == "body"
    ]
    return [node.op_type for body in bodies for node in body]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_vectors(step):
    x, start, w = pt.matrix("x"), pt.vector("start"), pt.matrix("w")
    h = scan(step, sequences=[x], outputs_info=[start], non_sequences=[w])
    first, *others = ([values(length, 3), values(2), values(3, 2)] for length in LENGTHS)
    program = compare_onnx_and_py([x, start, w], h, first, also=others, rtol=RTOL)
    assert operators_in_loop(program).count("MatMul") == (step is STEPS["twice"])


@pytest.mark.parametrize("length", LENGTHS)
def test_batches(length):
    x, start, w = pt.tensor3("x"), pt.matrix("start"), pt.matrix("w")
    h = scan(
        lambda e, h, w: pt.tanh(e @ w + h), sequences=[x], outputs_info=[start], non_sequences=[w]
    )
    arrays = [values(length, 4, 3), values(4, 2), values(3, 2)]
    program = compare_onnx_and_py([x, start, w], h, arrays, rtol=RTOL)
    assert "MatMul" not in operators_in_loop(program)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_gradients(step):
    x, start, w = pt.matrix("x"), pt.vector("start"), pt.matrix("w")
    h = scan(step, sequences=[x], outputs_info=[start], non_sequences=[w])
    gradients = pt.grad((h**2).sum(), [x, start, w])
    first, *others = ([values(length, 3), values(2), values(3, 2)] for length in LENGTHS[1:])
    compare_onnx_and_py([x, start, w], gradients, first, also=others, rtol=RTOL)


def test_product_with_the_state_stays():
    x, start, w = pt.matrix("x"), pt.vector("start"), pt.matrix("w")
    h = scan(
        lambda e, h, w: pt.tanh(e + h @ w), sequences=[x], outputs_info=[start], non_sequences=[w]
    )
    arrays = [values(5, 2), values(2), values(2, 2)]
    program = compare_onnx_and_py([x, start, w], h, arrays, rtol=RTOL)
    assert operators_in_loop(program).count("MatMul") == 1


@pytest.mark.slow
def test_sequence_that_is_only_multiplied_is_not_read_in_the_loop():
    x, start, w = pt.matrix("x"), pt.vector("start"), pt.matrix("w")
    h = scan(STEPS["row times matrix"], sequences=[x], outputs_info=[start], non_sequences=[w])
    arrays = [values(5, 3), values(2), values(3, 2)]
    program = compare_onnx_and_py([x, start, w], h, arrays, rtol=RTOL)
    (loop,) = (node for node in program.model.graph.all_nodes() if node.op_type == "Scan")
    assert len(loop.inputs) == 2


def test_sequences_and_weights_that_are_used_elsewhere():
    x, start, w = pt.matrix("x"), pt.vector("start"), pt.matrix("w")
    h = scan(STEPS["row times matrix"], sequences=[x], outputs_info=[start], non_sequences=[w])
    arrays = [values(4, 3), values(2), values(3, 2)]
    compare_onnx_and_py([x, start, w], [h, x @ w, w.sum(), pt.tanh(x @ w)[0]], arrays, rtol=RTOL)


def test_large_matrices_of_doubles_are_not_copied_in_each_step():
    """ONNX Runtime copies a matrix that a vector of float64 on its left is multiplied by."""
    for n_units, is_row in ((8, True), (256, False)):
        x, u = pt.matrix("x", shape=(None, n_units)), pt.matrix("u", shape=(n_units, n_units))
        h = scan(lambda e, h, u: pt.exp(e - h @ u), [x], [pt.zeros(n_units)], [u])
        arrays = [np.ones((2, n_units)), np.full((n_units, n_units), 0.1)]
        program = compare_onnx_and_py([x, u], h, arrays)
        assert ("Unsqueeze" not in operators_in_loop(program)) == is_row
