"""A program of some outputs computes these only, of the inputs that they need."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ArgumentError, ONNXProgram, compile_onnx, export_onnx, load


@pytest.fixture
def program() -> ONNXProgram:
    x, y, z = pt.vector("x"), pt.scalar("y"), pt.scalar("z")
    factor = pt.exp(y)
    loop = pytensor.scan(lambda t: t * pt.log(factor), sequences=[x], return_updates=False)
    outputs = {"sum": x.sum(), "gamma": pt.gammaln(z), "scaled": loop, "shifted": z + y}
    return compile_onnx([x, y, z], outputs)


@pytest.mark.slow
def test_values_inputs_and_nodes(program: ONNXProgram, tmp_path: Path) -> None:
    total = program.select("sum")
    assert [v.name for v in total.inputs] == ["x"]
    assert total([1.0, 2.0]) == 3.0
    assert {node.op_type for node in total.model.graph} == {"ReduceSum"}
    assert not total.model.functions
    scaled, again = program.select(["scaled", "sum"])(y=2.0, x=[1.0, 2.0])
    np.testing.assert_array_equal(scaled, [2.0, 4.0])
    assert again == 3.0
    np.testing.assert_allclose(program.select("gamma")(5.0), np.log(24.0))
    assert len(program([1.0], 1.0, 1.0)) == 4
    assert total.save(tmp_path / "sum.onnx").stat().st_size > 0


def test_a_selected_program_is_verified_and_pickled(program: ONNXProgram) -> None:
    scaled = program.select(["scaled"])
    assert scaled.verify([[1.0, 2.0], 3.0]) is scaled
    (result,) = pickle.loads(pickle.dumps(scaled))([1.0], 4.0)
    np.testing.assert_array_equal(result, [4.0])


def test_states_and_encoded_values_stay() -> None:
    total, x = pytensor.shared(np.array(1.0), "total"), pt.scalar("x")
    z = pt.zvector("z")
    program = export_onnx(
        [x, z], {"twice": 2 * x, "conj": z.conj(), "sum": z.sum()}, updates={total: total + 1.0}
    )
    twice = program.select("twice")
    assert (twice(2.0), twice(3.0), twice.state["total"]) == (4.0, 6.0, 3.0)
    assert program.state["total"] == 1.0
    (conjugate,) = program.select([program.model.graph.outputs[1].name])([1 + 2j])
    np.testing.assert_array_equal(conjugate, [1 - 2j])
    assert json.loads(program.model.metadata_props["encodings"])["inputs"]
    assert not any(json.loads(twice.model.metadata_props["encodings"]).values())


def test_sizes_are_read_from_the_inputs_that_are_left() -> None:
    x, y = pt.matrix("x"), pt.matrix("y", shape=(None, 3))
    outputs = {"first": pt.zeros(y.shape), "ones": pt.ones(x.shape[0]), "sum": x.sum(axis=0)}
    axes = {"x": {0: "n", 1: "k"}, "y": {0: "n"}}
    program = compile_onnx([y, x], {**outputs, "twice": 2 * y}, dynamic_axes=axes)
    ones = program.select("ones")
    assert [v.name for v in ones.inputs] == ["x"]
    np.testing.assert_array_equal(ones(np.zeros((2, 5))), [1.0, 1.0])
    both = program.select(["twice", "first"])
    assert [v.name for v in both.inputs] == ["y"]
    assert both(np.zeros((4, 3)))[1].shape == (4, 3)


def test_a_program_of_a_file(program: ONNXProgram, tmp_path: Path) -> None:
    loaded = load(program.save(tmp_path / "all.onnx"))
    scaled = loaded.select("scaled")
    assert [v.name for v in scaled.inputs] == ["x", "y"]
    np.testing.assert_array_equal(scaled([1.0, 2.0], y=2.0), [2.0, 4.0])
    np.testing.assert_allclose(loaded.select(["gamma"]).verify()(5.0), [np.log(24.0)])


def test_states_and_encoded_values_of_a_file(tmp_path: Path) -> None:
    total, x, z = pytensor.shared(np.array(1.0), "total"), pt.scalar("x"), pt.zvector("z")
    results = {"twice": 2 * x, "conj": z.conj(), "size": z.shape[0] + pt.ones(2)}
    path = tmp_path / "all.onnx"
    export_onnx([x, z], results, path, updates={total: total + 1.0})
    loaded = load(path)
    twice, size = loaded.select("twice"), loaded.select("size")
    assert (twice(2.0), twice(3.0), twice.state["total"]) == (4.0, 6.0, 3.0)
    assert loaded.state["total"] == 1.0
    np.testing.assert_array_equal(size([1j, 2j, 3j]), [4.0, 4.0])
    (conjugate,) = loaded.select(["conj"])([1 + 2j])
    np.testing.assert_array_equal(conjugate, [1 - 2j])


def test_a_lower_precision_has_its_losses() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    program = compile_onnx([x, y], {"a": pt.exp(x), "b": pt.log(y)}, precision="float32")
    selected = program.select("b").verify()
    assert [loss.text.split(":")[0] for loss in selected.losses] == ["b"]


def test_unknown_names_are_refused(program: ONNXProgram) -> None:
    with pytest.raises(ArgumentError, match="no output 'scale': choose of scaled"):
        program.select(["sum", "scale"])
    with pytest.raises(ArgumentError, match="no output is named"):
        program.select([])
