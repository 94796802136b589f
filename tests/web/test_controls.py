import onnx_ir as ir
import pytest

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.web.controls import describe_input, describe_output


def value(dims, dtype="FLOAT", name="x"):
    return ir.Value(name=name, shape=ir.Shape(dims), type=ir.TensorType(ir.DataType[dtype]))


@pytest.mark.parametrize(
    ("dims", "dtype", "kind"),
    [
        ([], "FLOAT", "slider"),
        (["batch"], "DOUBLE", "slider"),
        ([1, 1], "INT64", "slider"),
        ([], "BOOL", "checkbox"),
        ([3], "FLOAT", "sliders"),
        (["batch", 12], "FLOAT16", "sliders"),
        ([13], "FLOAT", "table"),
        ([3], "INT32", "table"),
        (["rows", "columns"], "DOUBLE", "table"),
        (["batch", 3, 64, 64], "FLOAT", "image"),
        ([1, 1, 28, 28], "FLOAT", "drawing"),
        ([1, 1, 128, 128], "FLOAT", "image"),
        ([1, 25, 96], "FLOAT", "table"),
        (["n", 50, 155, 3], "FLOAT", "image"),
        (["n", 50, 155, 4], "FLOAT", "table"),
        (["a", "b", 4], "FLOAT", "table"),
    ],
)
def test_inputs_have_controls_by_their_sizes(dims, dtype, kind):
    assert describe_input(value(dims, dtype), {}, None)["control"]["kind"] == kind


def test_states_of_generators_have_seeds():
    state = describe_input(value([3], "UINT64"), {}, "generator")
    assert state["control"] == {"kind": "seed", "label": "x"}
    assert state["dtype"] == "uint64"


@pytest.mark.parametrize(
    ("dims", "kind"),
    [
        ([], "number"),
        ([1], "number"),
        ([10], "bars"),
        (["batch", 10], "bars"),
        ([32], "bars"),
        ([33], "lines"),
        ([100], "lines"),
        (["n"], "lines"),
        (["n", 2], "bars"),
        ([3, 3], "table"),
        ([100, 2], "lines"),
        ([1000, 1000], "table"),
        ([100, "n"], "table"),
        ([2, 3, 4], "table"),
    ],
)
def test_outputs_have_views_by_their_sizes(dims, kind):
    assert describe_output(value(dims), {})["view"]["kind"] == kind


def test_selected_probabilities_are_percentages():
    build = Builder(ModelScope(21))
    y = build.Gather(build.Softmax(value([10])), build.ints([1, 2]), axis=0)
    assert describe_output(y, {})["view"]["percent"]


@pytest.mark.parametrize(("dims", "kind"), [(["n"], "table"), ([2], "sliders"), ([], "slider")])
def test_a_list_of_numbers_needs_a_control_for_several(dims, kind):
    given = {"value": [1.5, 2] if dims else 1.5}
    assert describe_input(value(dims), given, None)["control"]["kind"] == kind


def test_options_override_what_sizes_suggest():
    given = {"kind": "sliders", "label": "Size", "min": 0, "labels": ["a", "b"]}
    assert describe_input(value([2]), given, None)["control"] == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "dial"}, "kind is one of slider, sliders.*, not 'dial'"),
        ({"min": "low"}, "input x: min is a number, not 'low'"),
        ({"kind": "slider", "value": [1]}, r"input x: value is a number, not \[1\]"),
        ({"min": 3, "max": 1}, "input x: min is less than max"),
        (
            {"maximum": 3},
            "input x: 'maximum' is no option of slider, which has kind, label, least, max",
        ),
    ],
)
def test_wrong_options_are_named(given, message):
    with pytest.raises(PyTensorONNXError, match=message):
        describe_input(value([]), given, None)


@pytest.mark.parametrize(
    ("dims", "dtype", "message"),
    [
        ([2], "STRING", "input x: no control gives values of type STRING"),
    ],
)
def test_inputs_without_control_are_refused(dims, dtype, message):
    with pytest.raises(PyTensorONNXError, match=message):
        describe_input(value(dims, dtype), {}, None)
