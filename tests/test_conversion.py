"""Rewritten graphs become models: names, dimensions, outputs, metadata, opsets."""

import re
import time

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx import InputError, PyTensorONNXError, export_onnx
from pytensor_onnx.conversion import ConversionOptions, convert
from tests.conftest import compare_onnx_and_py, op_types

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -0.5]])


def converted(inputs, outputs, **options):
    fgraph = FunctionGraph(list(inputs), list(outputs), clone=True)
    return convert(fgraph, ConversionOptions(opset_version=21, **options))


def names(values):
    return [v.name for v in values]


def dims(value):
    return [str(d) if isinstance(d, ir.SymbolicDim) else d for d in value.shape]


def input_dims(program):
    return [dims(v) for v in program.model.graph.inputs]


# Names


def test_inputs_and_outputs_carry_the_names_of_variables():
    x, y = pt.vectors("x", "y")
    total = x + y
    total.name = "total"
    graph = export_onnx([x, y], [total, total * 2]).model.graph
    assert names(graph.inputs) == ["x", "y"]
    assert names(graph.outputs) == ["total", "output_1"]


def test_unnamed_inputs_and_outputs_are_numbered_by_position():
    a, x, b = pt.vector(), pt.vector("x"), pt.vector()
    graph = export_onnx([a, x, b], [a + x, b - x]).model.graph
    assert names(graph.inputs) == ["input_0", "x", "input_2"]
    assert names(graph.outputs) == ["output_0", "output_1"]


def test_equal_names_are_made_unique():
    x, y = pt.vector("x"), pt.vector("x")
    z = pt.exp(x + y)
    z.name = "x"
    graph = export_onnx([x, y], [z, z + 1]).model.graph
    assert names(graph.inputs) == ["x", "x_1"]
    assert names(graph.outputs) == ["x_2", "output_1"]


def test_a_name_taken_by_an_input_is_not_given_to_a_constant():
    x, c = pt.vector("c_2.0"), pt.vector("c")
    program = export_onnx([x, c], x * 2.0 + c * np.array([3.0, 4.0]))
    np.testing.assert_array_equal(program([1.0, 2.0], [1.0, 1.0]), [5.0, 8.0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a b", "a_b"), ("β", "β"), ("x[0]", "x_0"), ("layer.weight", "layer.weight"), ("?", "value")],
)
def test_names_are_made_identifiers(name, expected):
    x = pt.vector(name)
    program = export_onnx([x], x + 1)
    assert names(program.model.graph.inputs) == [expected]
    np.testing.assert_array_equal(program([1.0]), [2.0])


def test_intermediate_values_carry_the_names_of_variables():
    x = pt.matrix("x")
    hidden = pt.exp(x)
    hidden.name = "hidden"
    graph = export_onnx([x], hidden.sum(axis=0)).model.graph
    assert "hidden" in [v.name for node in graph for v in node.outputs]


def test_names_wanted_win_over_those_of_variables():
    x = pt.vector("x")
    graph = converted([x], [x * 2], input_names=["left"], output_names=["twice"]).model.graph
    assert names(graph.inputs) == ["left"]
    assert names(graph.outputs) == ["twice"]


# Outputs of every kind


def test_an_input_returned_as_output():
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], [x, x + 1], [X])
    assert sorted(op_types(program)) == ["Add", "Identity"]
    assert names(program.model.graph.outputs) == ["x_1", "output_1"]


def test_one_variable_returned_twice():
    x = pt.matrix("x")
    y = pt.exp(x)
    program = compare_onnx_and_py([x], [y, y], [X])
    assert op_types(program) == ["Exp", "Identity"]


def test_constants_returned():
    x = pt.matrix("x")
    constant = pt.constant(np.array([1.5, 2.5]), name="c")
    program = compare_onnx_and_py([x], [constant, x, constant], [X])
    assert names(program.model.graph.outputs) == ["c", "x_1", "c_1"]


def test_an_input_that_nothing_uses_stays_an_input():
    x, unused = pt.matrix("x"), pt.vector("unused", dtype="int8")
    program = compare_onnx_and_py([x, unused], [x * 2], [X, np.zeros(3, "int8")])
    assert names(program.model.graph.inputs) == ["x", "unused"]


def test_a_model_without_inputs():
    program = export_onnx([], pt.constant(np.arange(3.0)) + 1)
    np.testing.assert_array_equal(program(), [1.0, 2.0, 3.0])


def test_only_constants_in_use_are_stored():
    x = pt.matrix("x")
    graph = export_onnx([x], [pt.exp(x).max(axis=0), (x * 2).sum()]).model.graph
    for value in graph.initializers.values():
        assert value.uses()


# Dimensions


def test_unnamed_dimensions_are_named_after_input_and_axis():
    x, y = pt.matrix("x"), pt.tensor("y", shape=(None, 3, None))
    assert input_dims(export_onnx([x, y], [x.sum(), y.sum()])) == [
        ["x_dim0", "x_dim1"],
        ["y_dim0", 3, "y_dim2"],
    ]


def test_dynamic_axes_rename_dimensions_from_either_end():
    x = pt.tensor3("x")
    program = export_onnx([x], x * 2, dynamic_axes={"x": {0: "batch", -1: "features"}})
    assert input_dims(program) == [["batch", "x_dim1", "features"]]
    assert dims(program.model.graph.outputs[0]) == ["batch", "x_dim1", "features"]


@pytest.mark.parametrize(
    ("dynamic_axes", "message"),
    [
        ({"z": {0: "batch"}}, r"dynamic_axes names \['z'\], but the inputs are \['x', 'y'\]"),
        ({"x": {2: "batch"}}, r"axis 2 of input 'x', which has 2 axes"),
        ({"x": {-3: "batch"}}, r"axis -3 of input 'x', which has 2 axes"),
        ({"y": {0: "batch"}}, r"axis 0 of input 'y', which has 0 axes"),
        ({"x": {0: ""}}, r"axis 0 of input 'x'.*''"),
        ({"x": {0: 3}}, r"axis 0 of input 'x'.*3"),
        ({"x": {0: "a", -2: "b"}}, r"axis 0 of input 'x' twice"),
    ],
)
def test_dynamic_axes_that_do_not_fit_are_refused(dynamic_axes, message):
    x, y = pt.matrix("x"), pt.scalar("y")
    with pytest.raises(PyTensorONNXError, match=message):
        export_onnx([x, y], x * y, dynamic_axes=dynamic_axes)


def test_a_known_size_wins_over_a_name():
    x = pt.tensor("x", shape=(None, 3))
    program = export_onnx([x], x * 2, dynamic_axes={"x": {0: "batch", 1: "features"}})
    assert input_dims(program) == [["batch", 3]]


def test_a_name_made_here_is_never_one_of_the_users():
    x, y = pt.vectors("x", "y")
    program = export_onnx([x, y], [x.sum(), y.sum()], dynamic_axes={"y": {0: "x_dim0"}})
    (first,), (second,) = input_dims(program)
    assert second == "x_dim0"
    assert first != "x_dim0"
    program([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda x, y: x + y, [["x_dim0", "x_dim1"], ["x_dim0", "x_dim1"]]),
        (lambda x, y: x @ y, [["x_dim0", "x_dim1"], ["x_dim1", "y_dim1"]]),
        (lambda x, y: x @ y.T, [["x_dim0", "x_dim1"], ["y_dim0", "x_dim1"]]),
        (lambda x, y: x @ x + y, [["x_dim1", "x_dim1"], ["x_dim1", "x_dim1"]]),
        (lambda x, y: pt.exp(x).sum(0) * y.sum(1), [["x_dim0", "x_dim1"], ["x_dim1", "y_dim1"]]),
        (lambda x, y: pt.switch(x > 0, y, 0), [["x_dim0", "x_dim1"], ["x_dim0", "x_dim1"]]),
        (lambda x, y: x[:, :1] + y.sum(), [["x_dim0", "x_dim1"], ["y_dim0", "y_dim1"]]),
    ],
)
def test_dimensions_that_must_be_equal_have_one_name(expression, expected):
    x, y = pt.matrices("x", "y")
    assert input_dims(export_onnx([x, y], expression(x, y))) == expected


def test_names_of_the_user_win():
    x, y, z = pt.vectors("x", "y", "z")
    program = export_onnx([x, y, z], x + y + z, dynamic_axes={"z": {0: "batch"}})
    assert input_dims(program) == [["batch"]] * 3
    assert dims(program.model.graph.outputs[0]) == ["batch"]


def test_of_two_names_of_the_user_the_first_wins():
    x, y = pt.vectors("x", "y")
    program = export_onnx([x, y], x + y, dynamic_axes={"x": {0: "n"}, "y": {0: "m"}})
    assert input_dims(program) == [["n"], ["n"]]


def test_sizes_win_over_names():
    x, y, z = pt.vector("x"), pt.vector("y", shape=(3,)), pt.vector("z")
    program = export_onnx([x, y, z], (z - x) + y, dynamic_axes={"x": {0: "batch"}})
    assert input_dims(program) == [[3], [3], [3]]


def test_equal_sizes_are_found_in_any_order():
    """Every order of equations between four dimensions ends in one name, the user's."""
    import itertools

    for order in itertools.permutations([(0, 1), (1, 2), (2, 3)]):
        vectors = pt.vectors("a", "b", "c", "d")
        sums = [vectors[i] + vectors[j] for i, j in order]
        program = export_onnx(vectors, sums, verify=False, dynamic_axes={"c": {0: "batch"}})
        assert input_dims(program) == [["batch"]] * 4


def test_every_dimension_of_intermediate_values_is_named():
    x, i = pt.matrix("x"), pt.lscalar("i")
    y = pt.concatenate([x[i:], x[:i] * 2]).reshape((-1, 2))
    graph = export_onnx([x, i], [pt.exp(y), y.sum(axis=0)], verify=False).model.graph
    for node in graph:
        for value in node.outputs:
            assert value.shape is not None
            assert all(isinstance(d, int) or d.value for d in value.shape)


def test_operations_that_keep_the_size_keep_its_name():
    """New names at every node would make a runtime plan its memory in quadratic time."""
    x, i = pt.vector("x"), pt.lscalar("i")
    y = x[i:]
    for f in (pt.exp, pt.erf, lambda y: pt.special.softmax(y, axis=0), pt.tan):
        y = f(y)
    graph = export_onnx([x, i], y, verify=False).model.graph
    names = {str(d) for node in graph for v in node.outputs for d in v.shape if d != 1}
    assert names == {"slice_dim0"}


@pytest.mark.parametrize("sizes", [((1,), (3,)), ((3,), (1,)), ((2,), (3,))])
def test_sizes_that_differ_are_refused_where_pytensor_refuses_them(sizes):
    """ONNX would broadcast the one."""
    x, y = pt.vectors("x", "y")
    values = [np.ones(shape) for shape in sizes]
    for mode in ("FAST_COMPILE", "ONNX"):
        with pytest.raises(ValueError, match=r"."):
            pytensor.function([x, y], x + y, mode=mode)(*values)
    with pytest.raises(InputError, match=f"'x_dim0' is {sizes[0][0]} in x and {sizes[1][0]} in y"):
        export_onnx([x, y], x + y)(*values)


def test_sizes_of_one_are_broadcast_where_the_type_says_so():
    x, y = pt.matrix("x"), pt.row("y")
    compare_onnx_and_py([x, y], [x + y], [X, X[:1]])


# Metadata


def test_nodes_say_what_they_were_made_from():
    x, y = pt.matrices("x", "y")
    z = x @ y
    z.name = "product"
    model = export_onnx([x, y], pt.exp(z)).model
    by_op = {node.op_type: node.metadata_props for node in model.graph}
    assert by_op["MatMul"]["pytensor.op"] == "Dot"
    assert by_op["MatMul"]["pytensor.variable"] == "product"
    assert by_op["Exp"]["pytensor.op"] == "Exp"
    assert "pytensor.variable" not in by_op["Exp"]


def test_every_node_has_its_origin_those_of_the_legaliser_too():
    x = pt.matrix("x", dtype="int64")
    model = export_onnx([x], [pt.sign(x), x.max(axis=0), x // 3]).model
    for node in model.graph:
        assert node.metadata_props["pytensor.op"]


def test_the_model_says_who_made_it():
    x = pt.matrix("x")
    model = export_onnx([x], x + 1).proto
    assert model.producer_name == "pytensor-onnx"
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata["pytensor_version"] == pytensor.__version__
    assert metadata["pytensor_onnx_version"] == model.producer_version
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", model.producer_version)


# Opsets

GRAPHS = {
    "network": lambda x, y: pt.special.softmax(pt.maximum(x @ y.T, 0) + 1, axis=1),
    "gradient": lambda x, y: pt.grad(pt.log1pexp(x * y).sum(), x),
    "special": lambda x, y: pt.erf(x) + pt.tan(y) + pt.log1p(pt.abs(x)) + pt.arcsinh(y),
    "reductions": lambda x, y: x.max(axis=0) + y.argmin(axis=0) + x.prod() + pt.all(x > y),
    "shapes": lambda x, y: pt.concatenate([x, y]).reshape((-1, 2))[:, ::-1].T,
    "integers": lambda x, y: (x.astype("int64") // 2 + y.astype("int8") % 3).sum(axis=1),
    "update": lambda x, y: pt.set_subtensor(x[0, 1:], 2 * y[1, 1:]) - pt.zeros_like(y),
    "choice": lambda x, y: pt.switch(pt.isnan(x / y), x > y, pt.eq(x, y)),
}


@pytest.mark.parametrize("opset_version", range(18, 29))
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.few(11)
def test_every_opset_gives_a_valid_model_with_the_same_values(graph, opset_version):
    x, y = pt.matrices("x", "y")
    outputs = [GRAPHS[graph](x, y)]
    program = compare_onnx_and_py(
        [x, y], outputs, [X, X[::-1] + 0.25], rtol=1e-11, opset_version=opset_version
    )
    onnx.checker.check_model(program.proto, full_check=True)
    assert program.proto.opset_import[0].version == opset_version
    assert program.proto.ir_version == {27: 13, 28: 14}.get(opset_version, 10)


@pytest.mark.parametrize("opset_version", [9, 12, 29])
def test_other_opsets_are_refused(opset_version):
    x = pt.matrix("x")
    with pytest.raises(PyTensorONNXError, match=rf"opset_version={opset_version}.*13 to 28"):
        export_onnx([x], x + 1, opset_version=opset_version)


# Speed


@pytest.mark.slow
def test_conversion_is_linear():
    def seconds(n):
        x = pt.matrix("x")
        y = x
        for _ in range(n):
            y = pt.exp(y) if y.owner and y.owner.op != pt.exp else y * x
        fgraph = FunctionGraph([x], [y], clone=False)
        best = np.inf
        for _ in range(3):
            start = time.perf_counter()
            convert(fgraph, ConversionOptions(opset_version=21))
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(2000) < 2 * 4 * seconds(500)
