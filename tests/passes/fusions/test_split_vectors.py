"""Elements of short vectors in loops are read by one Split, and stacked without Unsqueeze."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import ONNXProgram
from tests.conftest import compare_onnx_and_py


def scan(*args, **kwargs):
    return pytensor.scan(*args, return_updates=False, **kwargs)


def in_loops(program: ONNXProgram) -> list[str]:
    """Return the operators in the bodies of loops."""
    outside = list(program.model.graph)
    return [node.op_type for node in program.model.graph.all_nodes() if node not in outside]


def run(step, start, *, dtype="float64", known=True, n_steps=3) -> ONNXProgram:
    """Compare a loop with one vector as its state."""
    start = np.asarray(start, dtype)
    x = pt.tensor("x", dtype=dtype, shape=start.shape if known else (None,))
    scale = pt.scalar("scale", dtype=dtype)
    y = scan(step, outputs_info=[x], non_sequences=[scale], n_steps=n_steps)
    return compare_onnx_and_py([x, scale], y, [start, np.asarray(0.5, dtype)])


def attractor(s: TensorVariable, scale: TensorVariable) -> TensorVariable:
    x, y, z = s[0], s[1], s[-1]
    return s + 0.125 * pt.stack([scale * (y - x), x * (2 - z) - y, x * y - pt.tanh(z)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_state_is_split_and_joined(dtype):
    program = run(attractor, [1.0, -2.0, np.nan], dtype=dtype)
    operators = in_loops(program)
    assert operators.count("Split") == 1
    assert not {"Gather", "Unsqueeze", "Squeeze"} & set(operators)


def test_infinities_and_zeros():
    run(attractor, [np.inf, -0.0, 0.0])


def test_a_number_that_is_needed_as_one_is_squeezed():
    def step(s, total, scale):
        x, y = s[0], s[1]
        following = pt.stack([x * scale, y - x])
        return following, total + x * y

    x, scale = pt.vector("x", shape=(2,)), pt.scalar("scale")
    y = scan(step, outputs_info=[x, pt.zeros(())], non_sequences=[scale], n_steps=3)
    program = compare_onnx_and_py([x, scale], y, [[1.0, 2.0], 0.5])
    operators = in_loops(program)
    assert operators.count("Split") == operators.count("Squeeze") == 1
    assert "Unsqueeze" not in operators


def test_a_number_may_decide_a_branch():
    def step(s, scale):
        x, y, z = s[0], s[1], s[2]
        chosen = ifelse(x < y, x * pt.exp(y), x - y)
        return pt.stack([y * scale, x * z, x - y, y + z, z * scale, x + z, chosen])

    assert "Split" in in_loops(run(step, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))


def test_bounds_stay_numbers():
    def step(s, scale):
        x, y = s[0], s[1]
        return pt.stack([x * y, y - x]) + pt.clip(s, x - y, x + y)

    program = run(step, [1.0, 2.0])
    assert "Split" in in_loops(program)


def test_an_array_meets_the_numbers():
    m = pt.matrix("m")

    def step(s, m):
        x, y = s[0], s[1]
        return pt.stack([x * y, y - x]), m * x + y

    x = pt.vector("x", shape=(2,))
    y = scan(step, outputs_info=[x, None], non_sequences=[m], n_steps=3)
    for shape in ((2, 3), (1, 1), (0, 2)):
        compare_onnx_and_py([x, m], y, [[1.0, 2.0], np.ones(shape)])


@pytest.mark.parametrize("case", ["one element", "unknown size", "long", "integers"])
def test_vectors_that_are_not_split(case):
    if case == "one element":
        operators = in_loops(run(lambda s, scale: s * scale + s[1], [1.0, 2.0]))
    elif case == "unknown size":
        operators = in_loops(run(attractor, [1.0, 2.0, 3.0], known=False))
    elif case == "long":
        operators = in_loops(
            run(lambda s, scale: s + pt.repeat(s[0] * s[1] - s[2], 17) * scale, np.ones(17))
        )
    else:
        x = pt.tensor("x", dtype="int64", shape=(2,))
        y = scan(lambda s: pt.stack([s[0] + s[1], s[1] * s[0]]), outputs_info=[x], n_steps=3)
        operators = in_loops(compare_onnx_and_py([x], y, [np.array([1, 2])]))
    assert "Gather" in operators
    assert "Split" not in operators
