"""Models that are exported, imported and exported again have the same nodes and values."""

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest
from onnx import TensorProto, helper
from pytensor.graph.traversal import applys_between, graph_inputs
from pytensor.raise_op import Assert

from pytensor_onnx import export_onnx, from_onnx
from tests.importing.models import PYTHON, by_runtime, evaluated, model_of

x, y, i = pt.dmatrix("x"), pt.lmatrix("y"), pt.lvector("i")
X = np.array([[1.0, np.nan, 3.0], [4.0, 6.0, 5.0]])
Y = np.array([[4, -7, 2], [0, 3, -5]])
OPERATIONS = {
    "argmax": pt.argmax(x, axis=1),
    "any": pt.any(x > 2, axis=0),
    "maximum": pt.max(x, axis=0),
    "integer maximum": pt.max(y, axis=1),
    "sort": pt.sort(x, axis=1),
    "unique": pt.unique(x),
    "integer quotient": y // (y[::-1] - 3),
    "remainder": pt.mod(x, 2.5),
    "cumulative product": pt.cumprod(x, axis=1),
    "check": Assert("too small")(x, pt.all(y > -9)),
    "written elements": pt.set_subtensor(x[y[:, 0] % 2, 1:][:, i], 7.0),
    "sizes": pt.zeros_like(x),
    "product": x.T @ x,
    "padding": pt.pad(x, ((1, 2), (0, 1)), mode="edge"),
    "nonzero": pt.stack(pt.nonzero(y)),
}
VALUES = {"x": X, "y": Y, "i": np.array([0, 1])}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_comes_back_as_itself(name):
    result = OPERATIONS[name]
    inputs = [v for v in (x, y, i) if v in list(graph_inputs([result]))]
    program = export_onnx(inputs, result, verify=False)
    graph = from_onnx(program)
    again = export_onnx(graph.inputs, graph.outputs[0], verify=False)
    assert len(again.model.graph) <= len(program.model.graph)
    arguments = [VALUES[v.name] for v in inputs]
    np.testing.assert_array_equal(again(*arguments), program(*arguments))


def test_a_failed_check_raises_its_error_again():
    graph = from_onnx(export_onnx([x], Assert("too small")(x, pt.all(x > 0)), verify=False))
    with pytest.raises(AssertionError, match="too small"):
        evaluated(graph, -np.ones((1, 1)))


def one_hot() -> object:
    return model_of(
        [helper.make_node("OneHot", ["i", "depth", "values"], ["y"])],
        inputs={"i": ("n",)},
        outputs={"y": ("n", 5)},
        constants={"depth": np.int64(5), "values": np.float32([0, 2])},
        dtypes={"i": TensorProto.INT64},
    )


def test_an_operator_of_many_operations_stays_one():
    graph = from_onnx(one_hot())
    program = export_onnx(graph.inputs, graph.outputs[0], dynamic_axes=graph.dynamic_axes)
    assert [node.op_type for node in program.model.graph] == ["OneHot"]
    assert str(program) == "ONNXProgram(i: int64[n] -> y: float32[n, 5])"
    places = np.array([3, -1])
    for result in (evaluated(graph, places)[0], program(places)):
        np.testing.assert_array_equal(result, by_runtime(one_hot(), places)[0])


def test_an_operator_of_a_newer_opset_is_exported_as_its_expression():
    model = model_of(
        [helper.make_node("GridSample", ["x", "grid"], ["y"], mode="nearest")],
        inputs={"x": ("n", 1, 4, 4), "grid": ("n", 2, 2, 2)},
        outputs={"y": ("n", 1, 2, 2)},
    )
    graph = from_onnx(model)
    for opset, is_kept in ((21, True), (19, False)):
        program = export_onnx(graph.inputs, graph.outputs, opset_version=opset, verify=False)
        operators = [node.op_type for node in program.model.graph]
        assert (operators == ["GridSample"]) is is_kept


def test_an_axis_of_unknown_size_is_broadcast_at_run_time():
    model = model_of(
        [helper.make_node("Expand", ["x", "shape"], ["y"])],
        inputs={"x": ("n", "m")},
        outputs={"y": ("k", "l")},
        constants={"shape": np.int64([3, 1])},
    )
    graph = from_onnx(model)
    for rows in (1, 3):
        value = np.ones((rows, 2), "float32")
        np.testing.assert_array_equal(evaluated(graph, value)[0], np.ones((3, 2)))
    with pytest.raises(AssertionError, match="its size is not 1"):
        evaluated(graph, np.ones((2, 2), "float32"))


def test_an_operator_with_indices_has_a_gradient():
    model = model_of(
        [helper.make_node("GatherND", ["x", "i"], ["y"])],
        inputs={"x": (3, 2), "i": (4, 2)},
        outputs={"y": (4,)},
        dtypes={"i": TensorProto.INT64},
    )
    graph = from_onnx(model)
    (values, places), (result,) = graph.inputs, graph.outputs
    gradient = pytensor.grad(result.sum(), values)
    chosen = np.array([[0, 1], [2, 0], [0, 1], [1, 1]])
    found = gradient.eval({values: np.zeros((3, 2), "float32"), places: chosen}, mode=PYTHON)
    np.testing.assert_array_equal(found, [[0, 2], [0, 1], [1, 0]])


def test_products_over_axes_of_unknown_size_keep_one_guard():
    left, right = pt.tensor3("left", dtype="float32"), pt.tensor3("right", dtype="float32")
    program = export_onnx([left, right], (pt.exp(left) @ right).copy("y"))
    graph = from_onnx(program)
    again = export_onnx(graph.inputs, graph.outputs)
    assert len(again.model.graph) == len(program.model.graph)
    empty = np.ones((2, 3, 0), "float32"), np.ones((2, 0, 1), "float32")
    np.testing.assert_array_equal(evaluated(graph, *empty)[0], np.zeros((2, 3, 1)))


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from nodes_of(attribute.g)


def functions_by_other_names(program):
    """Return the model of a program with other names for its functions."""
    model = program.proto
    names = {f.name: f"f{i}" for i, f in enumerate(model.functions)}
    for part in (model.graph, *model.functions):
        for node in nodes_of(part):
            node.op_type = names.get(node.op_type, node.op_type)
    for function in model.functions:
        function.name = names[function.name]
    return model


@pytest.mark.parametrize(
    ("formula", "op"), [(pt.gammaln, "gammaln"), (lambda x: x // 0.3, "int_div")]
)
def test_functions_are_known_by_their_metadata(formula, op):
    x = pt.vector("x")
    model = functions_by_other_names(export_onnx([x], formula(x), verify=False))
    assert len(model.functions) > 0

    def operations():
        return " ".join(str(node.op) for node in applys_between([], from_onnx(model).outputs))

    assert op in operations().lower()
    for function in model.functions:
        del function.metadata_props[:]
    assert op not in operations().lower()


def regression(rows: str | None = None) -> onnx.ModelProto:
    """Return a linear regression as skl2onnx writes it, with a name for its rows or without."""
    coefficients = [0.5, -2.0, 1.25, 0.1]
    node = helper.make_node(
        "LinearRegressor",
        ["x"],
        ["variable"],
        coefficients=coefficients,
        intercepts=[0.5],
        domain="ai.onnx.ml",
        name="LinearRegressor",
    )
    graph = helper.make_graph(
        [node],
        "ONNX(Ridge)",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 4])],
        [helper.make_tensor_value_info("variable", TensorProto.FLOAT, [rows, 1])],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    maker = {"producer_name": "skl2onnx", "producer_version": "1.20.0", "domain": "ai.onnx"}
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **maker)


def logistic() -> onnx.ModelProto:
    """Return logistic functions as they are written out."""
    return model_of(
        [
            helper.make_node("Add", ["x", "shift"], ["shifted"]),
            helper.make_node("Exp", ["shifted"], ["exp"]),
            helper.make_node("Add", ["exp", "one"], ["sum"]),
            helper.make_node("Div", ["one", "sum"], ["p"]),
            helper.make_node("Gather", ["p", "order"], ["y"], axis=1),
        ],
        inputs={"x": ("n", 40)},
        outputs={"y": ("n", 40)},
        constants={
            "shift": np.float32(0.1234567),
            "one": np.float32(1),
            "order": np.arange(40)[::-1].copy(),
        },
    )


@pytest.mark.parametrize("model", [regression(), logistic()])
def test_a_small_file_that_nobody_changed_does_not_grow(model, tmp_path):
    graph = from_onnx(model)
    axes = graph.dynamic_axes
    program = export_onnx(graph.inputs, graph.outputs, tmp_path / "again.onnx", dynamic_axes=axes)
    assert (tmp_path / "again.onnx").stat().st_size <= 1.05 * model.ByteSize()
    again = onnx.load(tmp_path / "again.onnx")
    onnx.checker.check_model(again, full_check=True)
    assert len(again.graph.node) <= len(model.graph.node)
    assert again.graph.input[0].type == model.graph.input[0].type
    assert not again.graph.value_info
    x = np.random.default_rng(0).normal(scale=5, size=(3, program.inputs[0].shape[1]))
    x = x.astype("float32")
    expected = by_runtime(model, x)[0]
    for found in (by_runtime(again, x)[0], program(x)):
        np.testing.assert_allclose(np.ravel(found), np.ravel(expected), rtol=3e-7)


def test_names_of_axes_in_a_file_are_kept():
    graph = from_onnx(regression("rows"))
    program = export_onnx(graph.inputs, graph.outputs, dynamic_axes=graph.dynamic_axes)
    again = program.proto
    assert [d.dim_param for d in again.graph.output[0].type.tensor_type.shape.dim] == ["rows", ""]
    found = {p.key: p.value for p in again.metadata_props}
    assert found == {"batch_axis": "rows", "returns": "list"}
    assert program.model.metadata_props["pytensor_version"]


def test_a_graph_that_somebody_changed_tells_its_operations():
    graph = from_onnx(regression())
    (changed,) = export_onnx(graph.inputs, -graph.outputs[0]).proto.graph.node[-1:]
    assert {p.key for p in changed.metadata_props} == {"pytensor.op"}
    x = pt.fmatrix("x", shape=(None, 4))
    applied = export_onnx([x], graph(x=pt.exp(x))).proto
    assert applied.graph.node[0].metadata_props[0].value == "Exp"
    assert applied.metadata_props[0].key == "batch_axis"
