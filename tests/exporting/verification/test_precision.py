"""Graphs written in float64 and exported in float32 or float16."""

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse

from pytensor_onnx import export_function_onnx, export_onnx, nn
from pytensor_onnx.errors import ArgumentError, InputError, PyTensorONNXError
from pytensor_onnx.exporting.verification.results import evaluate_all

RNG = np.random.default_rng(0)


def function_of(x):
    inner = x.type()
    return OpFromGraph([inner], [pt.exp(inner) / 3 + pt.arange(3), inner.sum()], name="f")(x)[0]


def nested_functions(x):
    outer, inner = x.type(), x.type()
    half = OpFromGraph([inner], [inner / 2])
    return OpFromGraph([outer], [half(outer + 1) * outer])(x)


def loop(x):
    return pytensor.scan(
        lambda row, total: pt.tanh(row / 3) + total,
        sequences=[x],
        outputs_info=[pt.zeros(x.shape[1])],
        return_updates=False,
    )


GRAPHS = {
    "elementwise": lambda x: pt.exp(x) / 3 + pt.switch(x > 0, x, -x) ** 2,
    "sizes": lambda x: x * x.shape[0] + pt.arange(3) / 2 + pt.lt(x, x.shape[1]),
    "sums": lambda x: (x / 3).sum(axis=0) + (x / 7).mean() + pt.prod(x),
    "mean of integers": lambda x: pt.argmax(x, axis=1).mean() + x.std(axis=0),
    "casts": lambda x: pt.cast(pt.cast(x * 10, "int64"), "float64") / 4,
    "selection": lambda x: pt.set_subtensor(x[1:, [0, 2]], 1 / (1 + x[1:, :2] ** 2)),
    "products": lambda x: pt.dot(x, x.T) / 3 + pt.eye(3),
    "special functions": lambda x: pt.gammaln(x**2 + 1) + pt.erf(x),
    "factorisations": lambda x: pt.linalg.cholesky(x @ x.T + 3 * pt.eye(3)),
    "branches": lambda x: ifelse(pt.gt(x[0, 0], 5), x / 3, x / 7),
    "functions": function_of,
    "nested functions": nested_functions,
    "loops": loop,
    "networks": lambda x: nn.layer_norm(nn.gelu(x), x[0], x[1], epsilon=0.5),
    "gradients": lambda x: pt.grad(pt.log1p(pt.exp(x)).sum(), x),
    "constants": lambda x: x * pytensor.shared(np.arange(3.0), name="weights"),
}


def floats(program):
    """Return the float dtypes of all values of a model, in functions as well."""
    graph = program.model.graph
    values = [*graph.inputs, *graph.initializers.values()]
    values += [v for node in graph.all_nodes() for v in node.outputs]
    return {v.dtype.name for v in values if v.dtype is not None and v.dtype.is_floating_point()}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_computed_in_float32(name):
    x = pt.matrix("x")
    value = RNG.normal(size=(3, 3))
    wide = export_onnx([x], GRAPHS[name](x))(value)
    program = export_onnx([x], GRAPHS[name](x), precision="float32")
    result = program(value.astype("float32"))
    assert result.dtype == ("float32" if wide.dtype == "float64" else wide.dtype)
    np.testing.assert_allclose(result, wide, rtol=1e-5, atol=1e-6)
    assert program.model.graph.inputs[0].dtype == ir.DataType.FLOAT


@pytest.mark.parametrize("name", ["elementwise", "sizes", "casts", "products", "networks"])
def test_no_float64_is_left(name):
    x = pt.matrix("x")
    assert floats(export_onnx([x], GRAPHS[name](x), precision="float32")) == {"FLOAT"}


def test_one_graph_is_exported_in_each_precision():
    x = pt.matrix("x")
    y = pt.special.softmax(x, axis=1) + function_of(x[0])
    for precision in ("float32", "float16"):
        assert export_onnx([x], y, precision=precision).model.graph.outputs[0].dtype.name == (
            "FLOAT" if precision == "float32" else "FLOAT16"
        )


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_programs_take_and_return_complex_numbers_as_narrower_pairs(precision):
    z = pt.zvector("z")
    program = export_onnx([z], [z * 2, pt.abs(z)], precision=precision)
    numbers = np.array([3 + 4j, -6 + 8j])
    doubled, sizes = program(numbers)
    np.testing.assert_array_equal(doubled, (2 * numbers).astype("complex64"))
    assert doubled.dtype == "complex64"
    np.testing.assert_array_equal(sizes, [5, 10])


def test_half_precision_has_sums_in_single():
    x = pt.vector("x")
    program = export_onnx([x], (x / 3).sum(), precision="float16")
    assert floats(program) == {"FLOAT16", "FLOAT"}
    value = np.full(3000, 1, "float16")
    assert program(value) == pytest.approx(1000, rel=1e-3)
    assert program(value).dtype == "float16"


def test_state_is_narrowed_and_computed_on():
    x, total = pt.scalar("x"), pytensor.shared(1.5, name="total")
    function = pytensor.function([x], 2 * x, updates={total: total + x}, mode="FAST_COMPILE")
    program = export_function_onnx(function, precision="float32")
    assert program.state["total"].dtype == "float32"
    assert program(np.float32(0.25)) == 0.5
    assert program.state["total"] == np.float32(1.75)


@pytest.mark.slow
def test_compiled_functions_with_fused_operations_are_narrowed():
    x = pt.vector("x")
    function = pytensor.function([x], pt.exp(x) * 2 + 1 / (1 + x**2), mode="JAX")
    program = export_function_onnx(function, precision="float32")
    assert floats(program) == {"FLOAT"}


def test_draws_are_made_in_single_precision():
    rng = pytensor.shared(np.random.default_rng(3), name="rng")
    _, draw = pt.random.normal(size=(4,), rng=rng, return_next_rng=True)
    with pytest.warns(UserWarning, match="every run"):
        program = export_onnx([], draw, precision="float32")
    assert program().dtype == "float32"
    (loss,) = program.losses
    assert str(loss) == "random numbers drawn in float32 are others than in float64"


def test_lost_constants_are_named_with_their_lines():
    x = pt.vector("x")
    y = (x + 1e-300) * pt.constant(1e300, name="huge") + np.array([1e200, 1.0])
    with pytest.raises(PyTensorONNXError, match="no value in float32") as error:
        export_onnx([x], y, precision="float32")
    text = str(error.value)
    assert text.count("\n- ") == 3
    assert "1e-300" in text
    assert "huge" in text
    assert "array up to 1e+200" in text
    assert text.count("test_precision.py") == 3


def test_infinities_are_constants_of_every_precision():
    x = pt.vector("x")
    program = export_onnx([x], pt.switch(x > 0, x, -np.inf), precision="float16")
    np.testing.assert_array_equal(program(np.float16([1, -1])), np.float16([1, -np.inf]))


def test_the_graph_in_float32_is_evaluated_once_for_the_comparison_and_the_losses(monkeypatch):
    graphs = []
    for module in ("comparison", "rounding"):
        monkeypatch.setattr(
            f"pytensor_onnx.exporting.verification.{module}.evaluate_all",
            lambda graph, x: graphs.append(graph) or evaluate_all(graph, x),
        )
    x = pt.vector("x")
    program = export_onnx(
        [x], pt.exp(x) / 3, precision="float32", example_inputs=[np.ones(2, "f4")]
    )
    assert graphs == [program.conversion.reference, program.conversion.narrowing.written]
    assert 0 < program.losses[0].error < 1e-7


def test_the_report_has_the_error_and_the_operation_that_loses_most():
    x = pt.vector("x")
    near = x + 1e4
    near.name = "near"
    y = near - 1e4
    y.name = "y"
    program = export_onnx([x], y, precision="float32", example_inputs=[np.float32([0.1, 0.2])])
    first, worst = program.losses
    assert str(first).startswith("y: error ")
    assert 1e-5 < first.error < 1e-2
    assert "Sub (y)" in str(worst)
    assert "test_precision.py" in worst.line
    assert "## Precision" in program.report()


def test_unknown_precisions_are_refused():
    x = pt.vector("x")
    with pytest.raises(ArgumentError, match="precision is one of 'float64', 'float32', 'float16'"):
        export_onnx([x], x, precision="int8")


def test_the_web_has_float32_unless_asked():
    x = pt.vector("x")
    program = export_onnx([x], {"y": pt.exp(x) + 1, "n": x.shape[0]}, target="web")
    assert [v.dtype.name for v in program.model.graph.outputs] == ["FLOAT", "INT64"]
    assert floats(program) == {"FLOAT"}
    assert 'precision="float64" keeps' in program.report()
    wide = export_onnx([x], pt.exp(x), target="web", precision="float64")
    assert floats(wide) == {"DOUBLE"}
    assert not any("keeps" in str(line) for line in wide.changes)


def test_wider_arrays_than_the_inputs_are_refused_with_a_way_out():
    x, n = pt.vector("x"), pt.vector("n", dtype="int32")
    program = export_onnx([x, n], pt.exp(x) * n, target="web")
    hint = (
        r"x: float32\[x_dim0\] was given float64\[3\]: at \[0\], 0\.1 is no number of float32\. "
        r'Convert it by \.astype\("float32"\), or .*'
    )
    with pytest.raises(InputError, match=hint + 'precision="float64"$'):
        program(np.zeros(3) + 0.1, np.int32([1, 2, 3]))
    with pytest.raises(InputError, match=r"n: .* was given float64\[3\]: at \[0\], 0\.5 is no"):
        program(np.float32([0, 0, 0]), np.zeros(3) + 0.5)
    with pytest.raises(InputError, match=r"x: .* was given float32\[1, 1\]$"):
        program(np.float32([[0]]), np.int32([1]))


def test_sums_of_float32_for_the_web_accumulate_in_float64():
    x = pt.vector("x", dtype="float32")
    program = export_onnx([x], x.sum(), target="web")
    assert "DOUBLE" in floats(program)
    assert not any("keeps" in str(line) for line in program.changes)


def test_constants_beyond_float32_name_what_keeps_them():
    x = pt.vector("x")
    with pytest.raises(PyTensorONNXError, match='with precision="float64"\n- 1e-300'):
        export_onnx([x], pt.log(x + 1e-300), target="web")
