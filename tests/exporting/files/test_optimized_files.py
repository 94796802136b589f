import json
import re

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from click.testing import CliRunner
from onnx import helper

from pytensor_onnx import (
    ArgumentError,
    MissingFolderError,
    UnsupportedOpError,
    VerificationError,
    diff_onnx,
    export_onnx,
    optimize_onnx,
)
from pytensor_onnx.cli.app import app
from pytensor_onnx.exporting.files import optimized_files
from pytensor_onnx.exporting.files.optimized_files import FileComparison

RNG = np.random.default_rng(0)


def write(path, *nodes, **metadata):
    """Write a model of another exporter: x of [batch, 4] to y of [batch, 3]."""
    arrays = {"w": RNG.normal(size=(4, 3)), "b": RNG.normal(size=3)}
    stored = [onnx.numpy_helper.from_array(v.astype("float32"), k) for k, v in arrays.items()]
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", size])
        for name, size in (("x", 4), ("y", 3))
    )
    graph = helper.make_graph([helper.make_node(*n) for n in nodes], "g", [x], [y], stored)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="other"
    )
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


@pytest.fixture
def dense(tmp_path):
    """A dense layer behind two negations."""
    return write(
        tmp_path / "dense.onnx",
        ("Neg", ["x"], ["n"]),
        ("Neg", ["n"], ["p"]),
        ("MatMul", ["p", "w"], ["m"]),
        ("Add", ["m", "b"], ["y"]),
        license="CC0",
    )


def test_operators_are_fused_and_results_stay(dense, tmp_path):
    program = optimize_onnx(dense, tmp_path / "small.onnx")
    assert [node.op_type for node in program.model.graph] == ["Gemm"]
    assert program.model.metadata_props["license"] == "CC0"
    found = diff_onnx(dense, tmp_path / "small.onnx")
    assert found.interface == found.results == ()


def test_options_are_those_of_exports(dense):
    program = optimize_onnx(dense, target="web", precision="float16")
    assert program.target == "web"
    assert str(program) == "ONNXProgram(x: float16[batch, 4] -> y: float16[batch, 3])"
    with pytest.raises(ArgumentError, match="did you mean target"):
        optimize_onnx(dense, taget="web")


def test_test_vectors_stay_where_the_precision_does(tmp_path):
    x = pt.fvector("x")
    file = export_onnx([x], (2 * x).copy("y")).save(tmp_path / "a.onnx", vectors=True)
    assert "test_vectors" in optimize_onnx(file).model.metadata_props
    assert "test_vectors" not in optimize_onnx(file, precision="float16").model.metadata_props


def test_a_state_stays(tmp_path):
    x, n = pt.dvector("x"), pytensor.shared(np.zeros(2), name="n")
    export_onnx([x], x + n, tmp_path / "state.onnx", updates={n: n + 1})
    program = optimize_onnx(tmp_path / "state.onnx")
    program([0.0, 0.0])
    np.testing.assert_array_equal(program.state["n"], [1.0, 1.0])


def test_nothing_is_written_where_results_differ(dense, tmp_path, monkeypatch):
    def other(file):
        graph = original(file)
        graph.outputs[0] = (graph.outputs[0] + 1).copy("y")
        return graph

    original = optimized_files.from_onnx
    monkeypatch.setattr(optimized_files, "from_onnx", other)
    with pytest.raises(VerificationError, match="output 'y' differs from that of"):
        optimize_onnx(dense, tmp_path / "small.onnx")
    assert not (tmp_path / "small.onnx").exists()


def test_errors_come_before_the_work(dense, tmp_path):
    with pytest.raises(MissingFolderError):
        optimize_onnx(dense, tmp_path / "missing" / "a.onnx")
    unknown = write(tmp_path / "unknown.onnx", ("Nothing", ["x"], ["y"]))
    with pytest.raises(UnsupportedOpError, match="Nothing"):
        optimize_onnx(unknown)


def test_the_command_names_file_and_counts(dense):
    def run(*options):
        return CliRunner().invoke(app, ["optimize", str(dense), *options])

    result = run("--target", "web")
    assert result.exit_code == 0, result.output
    assert re.search(r"nodes\W+4\W+1\W+0.25", result.output)
    assert re.search(r"difference of results\W+\d.\de", result.output)
    assert "dense.web.onnx: checked, loaded and equal to PyTensor" in result.output
    assert ir.load(dense.with_name("dense.web.onnx")).producer_name == "pytensor-onnx"
    found = json.loads(run("--json", "--always").output)
    assert (found["before"]["nodes"], found["after"]["nodes"]) == (4, 1)
    assert found["comparison"]["nodes"] == [4, 1]
    assert found["comparison"]["difference"] < 1e-6


def test_the_command_keeps_the_better_file(dense, tmp_path, monkeypatch):
    path = tmp_path / "small.onnx"

    def written(*options):
        command = ["optimize", str(dense), "-o", str(path), *options]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        return result.output

    for seconds, is_copy in (((1.0, 2.0), True), ((2.0, 1.0), False)):
        found = FileComparison(seconds, (9, 9), (4, 1), 0.0)
        monkeypatch.setattr(optimized_files, "compare_optimized", lambda *_, f=found: f)
        output = written()
        assert (path.read_bytes() == dense.read_bytes()) is is_copy
        assert ("--always writes the other" in output) is is_copy
        written("--always")
        assert path.read_bytes() != dense.read_bytes()


def test_the_better_file_is_the_faster_one_then_the_smaller_one():
    def is_better(seconds=(1.0, 1.0), size=(10**6, 10**6), nodes=(5, 5)):
        return FileComparison(seconds, size, nodes, 0.0).is_better

    assert is_better()
    assert is_better(seconds=(1.0, 0.9), size=(10**6, 2 * 10**6))
    assert not is_better(seconds=(1.0, 1.1), nodes=(9, 5))
    assert not is_better(size=(10**6, 2 * 10**6))
    assert is_better(seconds=(1e-5, 1.1e-5), size=(500, 900), nodes=(2, 1))
    assert not is_better(nodes=(5, 6))


def test_weights_beside_the_better_file_are_copied(dense, tmp_path, monkeypatch):
    model = onnx.load(dense)
    model.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(RNG.normal(size=(4, 3)).astype("float32"), "w")
    )
    folder, path = tmp_path / "other", tmp_path / "kept.onnx"
    folder.mkdir()
    onnx.save(
        model,
        folder / "a.onnx",
        save_as_external_data=True,
        location="a.data",
        size_threshold=0,
    )
    worse = FileComparison((1.0, 2.0), (9, 9), (4, 4), 0.0)
    monkeypatch.setattr(optimized_files, "compare_optimized", lambda *_: worse)
    result = CliRunner().invoke(app, ["optimize", str(folder / "a.onnx"), "-o", str(path)])
    assert result.exit_code == 0, result.output
    found = diff_onnx(folder / "a.onnx", path)
    assert found.results == found.weights == ()
