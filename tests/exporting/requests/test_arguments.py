"""Arguments as users of torch.onnx, PyTensor and PyMC write them work, or are told what to give."""

import io
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.type_other import NoneConst

import pytensor_onnx
from pytensor_onnx import (
    ArgumentError,
    InputError,
    MissingFolderError,
    PyTensorONNXError,
    compile_onnx,
    export_function_onnx,
    export_onnx,
    export_training_step,
    export_value_and_grad,
)

FORM = "export_onnx([x], y, 'model.onnx')"
ARRAY = np.ones(2)
X, Y = pt.vector("x"), pt.vector("y")
MATRIX = pt.matrix("m")
TOTAL = pytensor.shared(0.0, name="total")


def names(program):
    graph = program.model.graph
    return [value.name for value in graph.inputs], [value.name for value in graph.outputs]


def dims(program):
    graph = program.model.graph
    return [[str(dim) for dim in value.shape] for value in [*graph.inputs, *graph.outputs]]


def refused(message, function, *arguments, error=ArgumentError, **options):
    """Assert that a call is refused with a message of one line."""
    with pytest.raises(error) as raised:
        function(*arguments, **options)
    assert isinstance(raised.value, PyTensorONNXError)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def function():
    return pytensor.function([X], X + 1, mode="FAST_COMPILE")


# Inputs and outputs


def test_a_dict_of_outputs_names_them():
    program = export_onnx([X], {"double": X * 2, "half": X / 2})
    assert names(program) == (["x"], ["double", "half"])
    np.testing.assert_array_equal(program(ARRAY), [2 * ARRAY, ARRAY / 2])


@pytest.mark.parametrize("options", [{}, {"output_names": ["double"]}])
def test_a_single_output_is_the_array_itself_however_it_is_named(options):
    outputs = X * 2 if options else {"double": X * 2}
    program = export_onnx([X], outputs, **options)
    np.testing.assert_array_equal(program(ARRAY), 2 * ARRAY, strict=True)
    [listed] = export_onnx([X], [X * 2])(ARRAY)
    np.testing.assert_array_equal(listed, 2 * ARRAY, strict=True)


@pytest.mark.parametrize("export", [export_onnx, export_value_and_grad, compile_onnx])
def test_one_variable_stands_for_a_list_of_one(export):
    cost = (X**2).sum()
    one, listed = export(X, cost), export([X], cost)
    assert names(one) == names(listed)
    assert str(one(ARRAY)) == str(listed(ARRAY))


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b")])
def test_output_names_name_outputs(given):
    program = export_onnx([X], [X + 1, X], output_names=given)
    assert names(program) == (["x"], ["a", "b"])


def test_every_exporting_function_accepts_output_names(function, tmp_path):
    assert names(export_function_onnx(function, output_names=["a"]))[1] == ["a"]
    assert names(compile_onnx([X], X, output_names="a"))[1] == ["a"]
    assert names(export_value_and_grad([X], X.sum(), output_names=["a", "b"]))[1] == ["a", "b"]
    weight = pytensor.shared(1.0, name="w")
    step = export_training_step(
        (X * weight).sum(), [weight], {weight: weight / 2}, output_names=["cost"]
    )
    assert names(step)[1] == ["cost", "w_next"]


@pytest.mark.parametrize(
    ("outputs", "given", "message"),
    [
        ([X + 1], ["a", "b"], "output_names has 2 names for 1 outputs: ['a', 'b']"),
        ([X, X], ["a", "a"], "the names of the outputs are not all different: ['a', 'a']"),
        (X, ["x"], "'x' cannot name an output: an input has this name"),
        (X, ["total"], "'total' cannot name an output: an input has this name"),
        (X, ["a b"], "'a b' cannot name an output: take letters, digits and the characters"),
        (X, [3], "3 cannot name an output: take letters"),
        ({"a": X}, ["b"], "the outputs are a dict, which names them: leave out output_names"),
        ({"x": X}, None, "'x' cannot name an output: an input has this name"),
    ],
)
def test_names_that_outputs_cannot_have_are_refused(outputs, given, message):
    updates = {TOTAL: TOTAL + 1}
    refused(message, export_onnx, [X], outputs, output_names=given, updates=updates)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), f"give the inputs and the outputs: {FORM}"),
        (([X],), "the outputs are missing: give the inputs and then the outputs"),
        (([X], []), f"there are no outputs: {FORM}"),
        (([X], {}), f"there are no outputs: {FORM}"),
        (([X], [NoneConst]), f"all outputs are None, and a file needs at least one: {FORM}"),
        (([ARRAY], X), "inputs[0] is a NumPy array: give variables; arrays to verify on are exam"),
        ((ARRAY, X), "inputs is a NumPy array: give variables; arrays to verify on are example_in"),
        (([X], ARRAY), "outputs is a NumPy array: give variables; arrays to verify on are exampl"),
        (([X], [X, 3.0]), "outputs[1] is of type float: give variables; arrays to verify on are"),
        (([X], 3.0), "outputs is of type float: give variables"),
        (
            ({"x": X}, X),
            "inputs is of type dict: give a list of variables, which have the names of",
        ),
        ((["x"], X), f"inputs[0] is of type str: give variables, {FORM}"),
        (([pt.constant(1.0)], X), "inputs[0] is the constant 1.0, which is no input"),
        (
            (np.tanh, ARRAY),
            "inputs is of type ufunc: call it on variables, export_onnx([x], f(x), ",
        ),
        (([X], len), "outputs is of type builtin_function_or_method: call it on variables"),
        (("model.onnx", [X], X), f"the path stands first: give it last, {FORM}"),
        ((Path("model.onnx"), [X]), f"the path stands first: give it last, {FORM}"),
    ],
)
def test_invalid_inputs_and_outputs_are_refused_with_the_valid_ones(arguments, message):
    refused(message, export_onnx, *arguments)


def test_models_of_pytensor_ml_stand_alone():
    layers = pytest.importorskip("pytensor_ml.layers")
    from pytensor_ml.model import Model

    x = layers.Input("x", shape=(None, 2))
    model = Model(layers.Linear("fc", n_in=2, n_out=1)(x)).initialize(seed=0)
    message = "a model is exported alone, export_onnx(model, 'model.onnx'); arrays to verify on are"
    refused(message, export_onnx, model, (np.ones((1, 2)),))
    refused(message, export_onnx, model, np.ones((1, 2)), "model.onnx")


def test_wrt_cost_and_updates_that_are_no_variables_are_refused():
    refused("cost is of type float", export_value_and_grad, [X], 3.0)
    refused("wrt[0] is of type str", export_value_and_grad, [X], X.sum(), "x")
    message = "updates give new values to shared variables, and x is none: updates={shared: new_val"
    refused(message, export_onnx, [X], X, updates={X: X + 1})


def test_updates_may_be_numbers():
    program = export_onnx([X], X, updates={TOTAL: 2.5})
    program(ARRAY)
    assert program.state["total"] == 2.5


# Functions and PyMC


def test_errors_for_functions_name_the_function_that_exports_them(function):
    message = "a compiled function is exported by export_function_onnx(function, 'model.onnx')"
    refused(message, export_onnx, function, "model.onnx")
    refused(message, export_onnx, [X], function)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X, "function is of type TensorVariable: give the result of pytensor.function, or variab"),
        (
            np.tanh,
            "function is of type ufunc: give the result of pytensor.function, or va",
        ),
        ("model.onnx", "function is of type str: give the result of pytensor.function"),
    ],
)
def test_values_other_than_compiled_functions_are_refused(given, message):
    refused(message, export_function_onnx, given)


def test_point_functions_of_pymc_are_exported_and_models_refused_with_advice():
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        pm.Normal("observed", pm.Normal("mu"), 1.0, observed=[1.0, 2.0])
    point = model.compile_logp(mode="FAST_COMPILE")
    program = export_function_onnx(point)
    np.testing.assert_allclose(program(0.5), point({"mu": 0.5}), rtol=1e-12)
    message = "a PyMC model stands for several graphs: choose one, such as export_function_onnx("
    refused(message, export_onnx, model)
    refused(message, export_onnx, [X], model)
    refused(message, export_function_onnx, model)
    refused("a compiled function is exported by export_function_onnx", export_onnx, point)


# Axes


@pytest.mark.parametrize("axes", [[0], (0,), {0}, range(1), [0, -1]])
def test_a_list_of_dynamic_axes_leaves_their_names_open(axes):
    program = export_onnx([MATRIX], MATRIX * 2, dynamic_axes={"m": axes})
    assert dims(program) == [["m_dim0", "m_dim1"]] * 2


def test_dynamic_axes_stay_so_beside_example_inputs():
    example = np.ones((2, 3))
    for axes in ({0: "batch"}, {-2: "batch"}):
        program = export_onnx(
            [MATRIX], MATRIX * 2, example_inputs=[example], dynamic_axes={"m": axes}
        )
        assert dims(program) == [["batch", "3"]] * 2
        assert program(np.ones((5, 3))).shape == (5, 3)
    program = export_onnx([MATRIX], MATRIX * 2, example_inputs=[example], dynamic_axes={"m": [1]})
    assert dims(program) == [["2", "m_dim1"]] * 2


@pytest.mark.parametrize(
    ("outputs", "axes", "expected"),
    [
        # As torch.onnx is given them: the graph says the same.
        (X * 2, {"x": {0: "batch"}, "out": {0: "batch"}}, [["batch"], ["batch"]]),
        (X * 2, {"out": {0: "batch"}}, [["batch"], ["batch"]]),
        (X[X > 0], {"x": {0: "n"}, "out": {0: "kept"}}, [["n"], ["kept"]]),
        # A wrong claim is not made.
        (X[X > 0], {"x": {0: "n"}, "out": {0: "n"}}, [["n"], None]),
        (pt.concatenate([X, X]), {"x": {0: "n"}, "out": {0: "n"}}, [["n"], ["2*n"]]),
        (X * 2, {"x": {0: "n"}, "out": {0: "m"}}, [["n"], ["n"]]),
    ],
)
def test_axes_of_outputs_get_names_where_the_graph_has_none(outputs, axes, expected):
    program = export_onnx([X], outputs, dynamic_axes=axes, output_names=["out"])
    found = dims(program)
    if expected[1] is None:
        assert found[1] != found[0]
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            ["x"],
            "dynamic_axes is a list: give the axes of each input by name: dynamic_axes={'x': {",
        ),
        ({X: [0]}, "dynamic_axes has the key x: give the axes of each input by name"),
        ({"x": 0}, "dynamic_axes gives 'x' the value 0: give the axes of each input by name"),
        (
            {"x": {"a": "b"}},
            "dynamic_axes gives 'x' the axes ['a']: give the axes of each input by",
        ),
        ({"x": {0: None}}, "dynamic_axes gives an axis of 'x' the name None: give the axes"),
        ({"x": [1]}, "dynamic_axes names axis 1 of input 'x', which has 1 axes"),
        ({"x": [0, -1]}, "dynamic_axes names axis 0 of input 'x' twice"),
        ({"out": [1]}, "dynamic_axes names axis 1 of output 'out', which has 1 axes"),
        ({"z": [0]}, "dynamic_axes names ['z'], but the inputs are ['x'] and the outputs ['out']"),
    ],
)
def test_axes_in_another_form_are_refused(axes, message):
    refused(message, export_onnx, [X], X * 2, dynamic_axes=axes, output_names=["out"])


# Example inputs


@pytest.mark.parametrize("given", [{"y": ARRAY, "x": 2 * ARRAY}, (2 * ARRAY, ARRAY)])
def test_example_inputs_are_given_by_name_or_in_order(given):
    program = export_onnx([X, Y], X - Y, example_inputs=given)
    assert dims(program) == [["2"]] * 3
    assert "given inputs" in str(program.verification)


def test_one_example_stands_for_a_list_of_one():
    assert dims(export_onnx(MATRIX, MATRIX * 2, example_inputs=np.ones((2, 3)))) == [["2", "3"]] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": ARRAY}, "example_inputs has the names ['x'], the inputs are ['x', 'y']"),
        (
            {"x": ARRAY, "z": 1},
            "example_inputs has the names ['x', 'z'], the inputs are ['x', 'y']",
        ),
        ([ARRAY], "example_inputs has 1 values, but there are 2 inputs: x, y"),
        (ARRAY, "example_inputs has 1 values, but there are 2 inputs: x, y"),
        ([ARRAY] * 3, "example_inputs has 3 values, but there are 2 inputs: x, y"),
        (
            [ARRAY, 3.0],
            "the example of input y does not fit it: Wrong number of dimensions: expected",
        ),
        ([ARRAY, ["a"]], "the example of input y does not fit it: "),
    ],
)
def test_examples_that_do_not_fit_are_refused(given, message):
    refused(message, export_onnx, [X, Y], X - Y, example_inputs=given, error=InputError)


# Keywords


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("opset", "did you mean opset_version?"),
        ("opset_versoin", "did you mean opset_version?"),
        ("input_names", "inputs have the names of their variables: x.name = 'pixels'"),
        ("dynamic_shapes", "dynamic_axes={'x': {0: 'batch'}} names axes"),
        ("args", "inputs are variables; arrays to verify on are example_inputs"),
        ("f", "the file to write is path"),
        ("do_constant_folding", "it takes assume_finite, dynamic_axes, example_inputs, "),
    ],
)
def test_errors_for_unknown_keywords_list_the_known_ones(function, keyword, hint):
    weight = pytensor.shared(1.0, name="w")
    step = (X * weight).sum(), [weight], {weight: weight / 2}
    for export, arguments in (
        (export_onnx, ([X], X)),
        (compile_onnx, ([X], X)),
        (export_value_and_grad, ([X], X.sum())),
        (export_function_onnx, (function,)),
        (export_training_step, step),
    ):
        message = f"{export.__name__} has no argument {keyword!r}: {hint}"
        refused(message, export, *arguments, **{keyword: 1}, error=TypeError)


# Paths


@pytest.mark.parametrize("argument", ["path", "state_path"])
def test_paths_that_cannot_be_written_are_refused_before_the_work(
    function, tmp_path, monkeypatch, argument
):
    monkeypatch.setattr("pytensor_onnx.exporting.program.converting.convert", None)
    missing = tmp_path / "missing" / "model.onnx"
    weight = pytensor.shared(1.0, name="w")
    calls = [
        (export_onnx, ([X], X)),
        (export_function_onnx, (function,)),
        (export_value_and_grad, ([X], X.sum())),
        (export_training_step, ((X * weight).sum(), [weight], {weight: weight / 2})),
    ]
    for export, arguments in calls:
        for given in (missing, str(missing)):
            message = (
                f"{argument}={str(missing)!r} cannot be written: there is no folder "
                f"{str(missing.parent)!r}"
            )
            refused(message, export, *arguments, error=MissingFolderError, **{argument: given})
        message = f"{argument}={str(tmp_path)!r} is a folder: give the name of a file in it"
        refused(message, export, *arguments, **{argument: tmp_path})
        message = f"{argument} is of type BytesIO: give the name of a file, or take the bytes from "
        refused(message, export, *arguments, **{argument: io.BytesIO()})
    assert not list(tmp_path.iterdir())


def test_programs_name_a_missing_folder(tmp_path):
    program = export_onnx([X], X, updates={TOTAL: TOTAL + 1})
    missing = tmp_path / "missing" / "model.onnx"
    for save in (program.save, program.save_state):
        refused("cannot be written: there is no folder", save, missing, error=FileNotFoundError)


def test_state_in_a_file_of_another_kind_is_refused():
    message = "the state goes to a file named *.npz or *.onnx, not 'state.json'"
    refused(message, export_onnx, [X], X, updates={TOTAL: TOTAL + 1}, state_path="state.json")


def test_a_state_in_the_file_of_the_model_is_refused(tmp_path):
    file = tmp_path / "model.onnx"
    state_path = tmp_path / "folder" / ".." / file.name
    state_path.parent.parent.mkdir()
    for given in (file, state_path):
        refused(
            f"path and state_path are both {str(given)!r}: give the state a file of its own",
            export_onnx,
            *([X], X, file),
            updates={TOTAL: TOTAL + 1},
            state_path=given,
        )
        assert not file.exists()


# Defaults


@pytest.mark.parametrize("target", ["web", "node"])
def test_state_has_no_defaults_where_a_runtime_takes_no_other_value(target, tmp_path):
    for program in (
        export_onnx([X], X + TOTAL, updates={TOTAL: TOTAL + 1}, target=target),
        export_function_onnx(
            pytensor.function([X], X + TOTAL, updates={TOTAL: TOTAL + 1}, mode="FAST_COMPILE"),
            tmp_path / "model.onnx",
            state_path=tmp_path / "state.npz",
            target=target,
        ),
    ):
        assert names(program)[0] == ["x", "total"]
        assert program.model.graph.inputs[1].const_value is None
        np.testing.assert_array_equal([program([0.0]), program([0.0])], [[0.0], [1.0]])
    assert np.load(tmp_path / "state.npz")["total"] == 0.0
    message = f"a model with a state needs state_path='state.onnx' for target={target!r}: this runt"
    refused(
        message,
        export_onnx,
        *([X], X, tmp_path / "other.onnx"),
        updates={TOTAL: TOTAL + 1},
        target=target,
    )
    assert not (tmp_path / "other.onnx").exists()
    export_onnx([X], X + TOTAL, tmp_path / "other.onnx", target=target)


# Names of the package


@pytest.mark.parametrize("name", pytensor_onnx.__all__)
def test_public_names_are_there(name):
    assert getattr(pytensor_onnx, name) is not None


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "bool"])
def test_a_number_of_numpy_is_taken_for_an_input_without_axes(dtype):
    x, xs = pt.scalar("x", dtype=dtype), pt.vector("xs", dtype=dtype)
    number = np.dtype(dtype).type(1)
    result = compile_onnx([x, xs], [x, xs])(number, np.ones(2, dtype))[0]
    assert (result.dtype, result.shape, result) == (np.dtype(dtype), (), 1)
    with pytest.raises(InputError, match="xs"):
        compile_onnx([x, xs], [x, xs])(number, number)


def test_a_number_of_a_wider_dtype_is_refused():
    x = pt.scalar("x", dtype="int8")
    with pytest.raises(InputError, match="x"):
        compile_onnx([x], x + x)(np.int64(1000))
