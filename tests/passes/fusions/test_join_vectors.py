"""Formulas of many short vectors are computed once, for the vectors joined."""

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.fusions.merge_equal import join_vectors
from pytensor_onnx.passes.model_pass import Passes
from tests.conftest import compare_onnx_and_py, op_types

SIZES = (3, 1, 5, 2, 4)


def vectors(letter: str, dtype: str = "float32", sizes: tuple[int, ...] = SIZES) -> list:
    return [pt.tensor(f"{letter}{i}", shape=(n,), dtype=dtype) for i, n in enumerate(sizes)]


def values(variables: list) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    found = [rng.normal(size=x.type.shape).astype(x.type.dtype) for x in variables]
    found[0][0], found[2][:2], found[3][0] = np.nan, [np.inf, -np.inf], -0.0
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_of_one_formula_are_computed_together(dtype):
    w, g = vectors("w", dtype), vectors("g", dtype)
    updated = [0.5 * x + 0.25 * y for x, y in zip(w, g, strict=True)]
    program = compare_onnx_and_py([*w, *g], updated, values([*w, *g]))
    assert sorted(op_types(program)) == ["Add", "Concat", "Concat", "Mul", "Mul", "Split"]


def test_a_result_may_be_a_vector_of_another_formula():
    w, v, g = vectors("w"), vectors("v"), vectors("g")
    velocities = [0.5 * x + y for x, y in zip(v, g, strict=True)]
    updated = [x - 0.25 * y for x, y in zip(w, velocities, strict=True)]
    program = compare_onnx_and_py([*w, *v, *g], [*velocities, *updated], values([*w, *v, *g]))
    assert op_types(program).count("Split") == 2
    assert op_types(program).count("Concat") == 3


def test_results_in_another_order_take_the_joined_vectors():
    w, v, g = vectors("w"), vectors("v"), vectors("g")
    velocities = [0.5 * x + y for x, y in zip(v, g, strict=True)]
    updated = [x - 0.25 * y for x, y in zip(w, velocities, strict=True)]
    outputs = [*velocities, *(updated[i] for i in (2, 0, 4, 1, 3))]
    program = compare_onnx_and_py([*w, *v, *g], outputs, values([*w, *v, *g]))
    assert op_types(program).count("Concat") == 3


def test_numbers_may_be_computed():
    w, g = vectors("w"), vectors("g")
    rate = pt.scalar("rate", dtype="float32")
    updated = [x - pt.exp(rate) * y for x, y in zip(w, g, strict=True)]
    program = compare_onnx_and_py([rate, *w, *g], updated, [np.float32(-1.0), *values([*w, *g])])
    assert op_types(program).count("Exp") == 1
    assert op_types(program)[-1] == "Split"


def test_other_numbers_and_other_operators_are_other_formulas():
    w, g = vectors("w", sizes=(2,) * 12), vectors("g", sizes=(2,) * 12)
    updated = [x - (0.5 if i < 6 else 0.25) * y for i, (x, y) in enumerate(zip(w, g, strict=True))]
    program = compare_onnx_and_py([*w, *g], updated, values([*w, *g]))
    assert op_types(program).count("Split") == 2


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(lambda x, y: 0.5 * x + y, id="the result before"),
        pytest.param(lambda x, y: 0.5 * y.sum() + x, id="a sum of the result before"),
    ],
)
def test_results_that_depend_on_each_other_stay_apart(step):
    x, *rest = vectors("x", sizes=(3,) * 6)
    results = [x]
    for y in rest:
        results.append(step(y, results[-1]))
    program = compare_onnx_and_py([x, *rest], results[1:], values([x, *rest]))
    assert "Split" not in op_types(program)


@pytest.mark.parametrize(
    ("sizes", "formula"),
    [
        pytest.param((3, 2, 4), lambda x, y: 0.5 * x + y, id="few"),
        pytest.param((2000,) * 5, lambda x, y: 0.5 * x + y, id="long"),
        pytest.param((3,) * 5, lambda x, y: x + y, id="one operator"),
        pytest.param((0,) * 5, lambda x, y: 0.5 * x + y, id="empty"),
        pytest.param((3,) * 5, lambda x, y: pt.exp(0.5 * x) + y.sum(), id="other operators"),
    ],
)
def test_joining_that_gains_nothing_is_left(sizes, formula):
    x, y = vectors("x", sizes=sizes), vectors("y", sizes=sizes)
    results = [formula(a, b) for a, b in zip(x, y, strict=True)]
    assert "Split" not in op_types(export_onnx([*x, *y], results, verify=False))


@pytest.mark.slow
def test_long_chains_are_followed_some_way():
    scope = ModelScope(21)
    builder = Builder(scope)
    x = [ir.val(f"x{i}", dtype=ir.DataType.FLOAT, shape=(3,)) for i in range(4)]
    results = x
    for _ in range(1500):
        results = [builder.Neg(y) for y in results]
    name_values(builder.nodes, scope.names)
    model = ir.Model(
        ir.Graph(x, results, nodes=builder.nodes, name="main", opset_imports={"": 21}),
        ir_version=10,
    )
    assert Passes(model, scope).run(join_vectors)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def test_updates_of_a_function_are_those_of_the_variables():
    w = [pytensor.shared(np.full(n, n, "float32"), f"w{i}") for i, n in enumerate(SIZES)]
    g = vectors("g")
    updates = [(x, x - np.float32(0.5) * y) for x, y in zip(w, g, strict=True)]
    f = pytensor.function(g, [], updates=updates, mode="ONNX")
    gradients = [np.full(n, 2 * i, "float32") for i, n in enumerate(SIZES)]
    f(*gradients)
    for i, (x, n) in enumerate(zip(w, SIZES, strict=True)):
        np.testing.assert_array_equal(x.get_value(), np.full(n, n - i, "float32"))
