"""Files tell their rows and columns."""

import json

import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.errors import ArgumentError

X, SHIFT = pt.matrix("x", shape=(None, 2)), pt.vector("shift", shape=(2,))
BOTH = {"shifted": X + SHIFT, "sum": X.sum(axis=1)}
NAMES = {"x": ["a", "b"], "shifted": ["c", "d"]}
AXES = {"x": {0: "row"}}


def metadata(program):
    found = program.model.metadata_props
    return found.get("batch_axis"), json.loads(found.get("feature_names", "{}"))


def test_rows_and_columns_are_in_the_metadata():
    program = export_onnx([X, SHIFT], BOTH, dynamic_axes=AXES, feature_names=NAMES, verify=False)
    assert metadata(program) == ("row", NAMES)
    assert metadata(program.select("sum")) == ("row", {"x": ["a", "b"]})


def test_an_axis_of_rows_is_told_only_where_there_is_one():
    points = pt.matrix("points", shape=(None, 2))
    distances = {"distances": X @ points.T}
    assert metadata(export_onnx([X, points], distances, verify=False))[0] is None
    assert metadata(export_onnx([X], X.sum(axis=0), verify=False))[0] is None


WRONG = {
    "unknown": ({"y": ["a"]}, "feature_names has 'y': choose of x"),
    "size": ({"x": ["a"]}, r"gives x 1 columns: its shape is \[row, 2\]"),
    "rank": ({"shift": ["a", "b"]}, r"gives shift 2 columns: its shape is \[2\]"),
    "text": ({"x": "ab"}, "give a list of names"),
    "twice": ({"x": ["a", "a"]}, "the column 'a' twice"),
    "shared": ({"shifted": ["a", "sum"]}, "outputs shifted and sum the column 'sum'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_names_that_do_not_fit_are_refused(name):
    features, message = WRONG[name]
    with pytest.raises(ArgumentError, match=message):
        export_onnx([X, SHIFT], BOTH, dynamic_axes=AXES, feature_names=features, verify=False)
