"""Axes get other names, and computed sizes follow."""

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ArgumentError, InputError, export_onnx, load


def dims(program):
    return [[str(d) for d in v.shape] for v in (*program.inputs, *program.model.graph.outputs)]


@pytest.fixture
def program():
    x, y = pt.matrix("x"), pt.matrix("y")
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    return export_onnx([x, y], pt.concatenate([x, y, x[:, :1]], axis=1), dynamic_axes=axes)


def test_names_and_computed_sizes_change(program, tmp_path):
    renamed = program.rename_axes({"batch": "rows", "x_dim1": "m", "y_dim1": "n"})
    assert dims(renamed) == [["rows", "m"], ["rows", "n"], ["rows", "m+m[:1]+n"]]
    assert dims(program)[0] == ["batch", "x_dim1"]
    onnx.checker.check_model(renamed.proto, full_check=True)
    given = np.ones((2, 3)), np.ones((2, 4))
    np.testing.assert_array_equal(renamed(*given), program(*given))
    with pytest.raises(InputError, match="dimension 'rows'"):
        renamed(np.ones((2, 3)), np.ones((1, 4)))
    loaded = load(renamed.save(tmp_path / "model.onnx"))
    assert dims(loaded)[:2] == dims(renamed)[:2]
    assert dims(loaded.rename_axes({"rows": "batch"}))[0] == ["batch", "m"]


def test_names_may_be_exchanged(program):
    swapped = program.rename_axes({"x_dim1": "y_dim1", "y_dim1": "x_dim1"})
    assert dims(swapped)[:2] == [["batch", "y_dim1"], ["batch", "x_dim1"]]
    swapped.verify()


def test_bodies_of_loops_and_later_conversions_have_the_new_names():
    x, w = pt.matrix("x"), pytensor.shared(np.ones(3), name="w")
    rows = pytensor.scan(lambda row, last: last + row * w, [x], [pt.zeros(3)], return_updates=False)
    renamed = export_onnx([x], rows).rename_axes({"x_dim0": "time"})
    assert "x_dim0" not in str(renamed.model)
    again = renamed.replace_weights({"w": np.full(3, 2.0)})
    assert dims(again)[0][0] == "time"
    assert "x_dim0" not in str(again.model)


def test_all_problems_of_names_are_named(program):
    with pytest.raises(ArgumentError) as error:
        program.rename_axes({"bacth": "rows", "x_dim1": "batch", "y_dim1": "my axis"})
    assert str(error.value) == (
        "there is no axis 'bacth': choose of batch; 'batch' would name two axes, whose sizes may "
        "differ; 'my axis' cannot name an axis"
    )
