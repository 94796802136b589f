"""Names of axes are names, whatever they read like, and one name stands for one size."""

import re

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx

ARITHMETIC = ["k+1", "2*k", "k[1:]", "(k+1)", "'k'", "3", "k[:-1]*2+4"]


def dims_by_name(program):
    graph = program.model.graph
    return {v.name: [str(dim) for dim in v.shape] for v in [*graph.inputs, *graph.outputs]}


def shapes_by_text(program, arguments):
    """Return the sizes that each text in the file stands for."""
    sizes = {}
    values = [*arguments, *program(*arguments)]
    for texts, array in zip(dims_by_name(program).values(), values, strict=True):
        for text, size in zip(texts, array.shape, strict=True):
            sizes.setdefault(text, set()).add(size)
    return sizes


@pytest.mark.parametrize("name", ARITHMETIC)
def test_an_empty_axis_is_guarded_whatever_its_name(name):
    x, y = pt.tensor3("x"), pt.tensor3("y")
    program = export_onnx([x, y], x @ y, dynamic_axes={"x": {2: name}, "y": {1: name}})
    assert dims_by_name(program)["x"][2] == name
    found = program(np.ones((2, 3, 0)), np.ones((2, 0, 3)))
    np.testing.assert_array_equal(found, np.zeros((2, 3, 3)))


@pytest.mark.parametrize("name", ["k+1", "2*k", "k[1:]", "2*k+2", "k*k"])
def test_a_name_that_reads_like_a_computed_size_is_another(name):
    x, y = pt.vector("x"), pt.vector("y")
    longer = pt.concatenate([x, [0.0]])
    outputs = [longer, pt.tile(x, 2), x[1:], pt.tile(longer, 2), pt.outer(x, x).ravel(), y * 2]
    program = export_onnx([x, y], outputs, dynamic_axes={"x": {0: "k"}, "y": {0: name}})
    assert dims_by_name(program)["y"] == [name]
    sizes = shapes_by_text(program, [np.ones(3), np.ones(23)])
    assert all(len(found) == 1 for found in sizes.values()), sizes
    assert sizes[name] == {23}


def test_equal_sizes_have_one_text():
    x = pt.vector("x")
    outputs = [
        pt.concatenate([x, x]),
        pt.tile(x, 2),
        pt.concatenate([x, [0.0], x])[1:],
        pt.stack([x, x]).ravel(),
    ]
    program = export_onnx([x], outputs, dynamic_axes={"x": {0: "batch"}})
    assert set(shapes_by_text(program, [np.ones(3)])) == {"batch", "2*batch"}


def test_the_name_of_an_output_that_reads_like_a_computed_size_is_another():
    x = pt.vector("x")
    outputs = [x[x > 0], pt.concatenate([x, [0.0]])]
    axes = {"x": {0: "k"}, "positive": {0: "k+1"}}
    program = export_onnx([x], outputs, output_names=["positive", "longer"], dynamic_axes=axes)
    assert dims_by_name(program) == {"x": ["k"], "positive": ["k+1"], "longer": ["(k+1)"]}


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        (
            {"a": {0: "n"}, "b": {0: "m"}},
            "axis 0 of b the name 'm', but the graph makes its size n",
        ),
        ({"a": {0: "n"}, "y": {-1: "m"}}, "axis -1 of y the name 'm'"),
        ({"c": {0: "k"}}, "axis 0 of c the name 'k', but the graph makes its size 1"),
    ],
    ids=["equal sizes", "an output", "a known size"],
)
def test_names_that_the_file_does_not_have_are_told(axes, text):
    a, b, c = pt.vector("a"), pt.vector("b"), pt.vector("c", shape=(1,))
    with pytest.warns(UserWarning, match=re.escape(text)):
        export_onnx([a, b, c], {"y": a + b + c}, dynamic_axes=axes, verify=False)


def test_consistent_names_are_taken_without_a_warning(recwarn):
    a, b = pt.vectors("a", "b")
    axes = {name: {0: "n"} for name in ("a", "b", "y")}
    export_onnx([a, b], {"y": a + b}, dynamic_axes=axes, verify=False)
    assert not [w for w in recwarn if "dynamic_axes" in str(w.message)]
