import json
import subprocess

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytensor.tensor as pt
import pytest
import yaml

from pytensor_onnx import export_onnx
from pytensor_onnx.cli.app import main
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.serving.folders import SERVERS, write_serving_folder
from pytensor_onnx_scoring import Scorer


@pytest.fixture
def rows(tmp_path):
    """A file in which each tensor begins with the rows."""
    x, y = pt.matrix("x", shape=(None, 3)), pt.vector("y")
    outputs = {"sum": x.sum(axis=1) + y, "pair": pt.stack([y, -y], axis=1)}
    axes = {"x": {0: "row"}, "y": {0: "row"}}
    path = tmp_path / "of rows.onnx"
    features = {"pair": ["low", "high"]}
    export_onnx([x, y], outputs, path, dynamic_axes=axes, feature_names=features)
    return path


def test_triton_batches_where_each_tensor_begins_with_the_rows(rows, tmp_path):
    write_serving_folder(rows, "triton", tmp_path / "models")
    folder = tmp_path / "models" / "of_rows"
    assert (folder / "config.pbtxt").read_text().split("\n") == [
        'name: "of_rows"',
        'platform: "onnxruntime_onnx"',
        "max_batch_size: 1024",
        "dynamic_batching { }",
        *("input {", '  name: "x"', "  data_type: TYPE_FP64", "  dims: [ 3 ]", "}"),
        *("input {", '  name: "y"', "  data_type: TYPE_FP64", "  dims: [ 1 ]"),
        *("  reshape: { shape: [ ] }", "}"),
        *("output {", '  name: "sum"', "  data_type: TYPE_FP64", "  dims: [ 1 ]"),
        *("  reshape: { shape: [ ] }", "}"),
        *("output {", '  name: "pair"', "  data_type: TYPE_FP64", "  dims: [ 2 ]"),
        *('  label_filename: "pair_labels.txt"', "}", ""),
    ]
    assert (folder / "pair_labels.txt").read_text() == "low\nhigh\n"
    assert (folder / "1" / "model.onnx").read_bytes() == rows.read_bytes()


def test_triton_does_not_batch_a_file_with_an_input_of_all_rows(served, tmp_path):
    write_serving_folder(served.path, "triton", tmp_path / "models")
    text = (tmp_path / "models" / "volumes" / "config.pbtxt").read_text()
    assert "max_batch_size: 0\ninput" in text
    # Triton has no tensors of rank 0; its ONNX Runtime takes one element for them.
    assert '  name: "scale"\n  data_type: TYPE_FP64\n  dims: [ 1 ]\n}' in text
    assert '  name: "size"\n  data_type: TYPE_FP64\n  dims: [ -1, 3 ]\n}' in text


def test_triton_does_not_batch_rows_that_depend_on_each_other(tmp_path):
    x = pt.vector("x")
    path = tmp_path / "centered.onnx"
    export_onnx([x], {"y": x - x.mean()}, path, dynamic_axes={"x": {0: "row"}})
    write_serving_folder(path, "triton", tmp_path / "models")
    assert "max_batch_size: 0" in (tmp_path / "models/centered/config.pbtxt").read_text()


@pytest.mark.parametrize("server", ["mlserver", "bentoml", "mlflow"])
def test_rows_that_depend_on_each_other_are_no_table_of_a_server(tmp_path, server):
    x = pt.vector("x")
    path = tmp_path / "sums.onnx"
    export_onnx([x], {"y": pt.cumsum(x)}, path, dynamic_axes={"x": {0: "row"}})
    with pytest.raises(PyTensorONNXError, match="depends on the other rows of a batch"):
        write_serving_folder(path, server, tmp_path / "served")


def test_kserve_has_a_manifest_and_the_metadata(rows, tmp_path):
    write_serving_folder(rows, "kserve", tmp_path / "kserve")
    manifest = yaml.safe_load((tmp_path / "kserve" / "inference_service.yaml").read_text())
    assert manifest["metadata"]["name"] == "of-rows"
    assert manifest["spec"]["predictor"]["model"]["protocolVersion"] == "v2"
    metadata = json.loads((tmp_path / "kserve" / "metadata.json").read_text())
    session = onnxruntime.InferenceSession(rows)
    for kind, tensors in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
        shapes = [[-1 if isinstance(dim, str) else dim for dim in x.shape] for x in tensors]
        assert [x["shape"] for x in metadata[kind]] == shapes
        assert [x["name"] for x in metadata[kind]] == [x.name for x in tensors]
    assert (tmp_path / "kserve" / "repository" / "of_rows" / "config.pbtxt").is_file()


@pytest.mark.parametrize("server", ["mlserver", "bentoml", "mlflow"])
def test_folders_of_tables_have_the_constants_and_an_example(served, tmp_path, server):
    write_serving_folder(served.path, server, tmp_path, {"scale": 2.0})
    [options] = tmp_path.rglob("scorer.json")
    scorer = Scorer(options.parent / "model.onnx", **json.loads(options.read_text()))
    for example in tmp_path.glob("example.json"):
        told = json.loads(example.read_text())
        columns = told.get("columns", told)
        np.testing.assert_array_equal(scorer(columns)["volume"], served.expected(columns)["volume"])
    with pytest.raises(PyTensorONNXError, match=r"scale.*constants=[\s\S]*--constant NAME=VALUE"):
        write_serving_folder(served.path, server, tmp_path / "other")


def test_weights_apart_go_with_the_file(tmp_path):
    x = pt.vector("x", shape=(None,))
    weights = np.arange(1000.0)
    path = tmp_path / "apart.onnx"
    program = export_onnx([x], {"y": x[:, None] * weights})
    ir.save(program.model, path, external_data="apart.data")
    write_serving_folder(path, "mlserver", tmp_path / "folder")
    (tmp_path / "apart.data").unlink()
    found = Scorer(tmp_path / "folder" / "model.onnx")({"x": [2.0]})
    np.testing.assert_array_equal(found["y"], [2 * weights])


def test_a_folder_with_files_is_refused(served, tmp_path, capsys):
    (tmp_path / "kept").write_text("")
    command = ["serve-config", str(served.path), "--for", "triton", "-o", str(tmp_path)]
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert "is not an empty folder" in capsys.readouterr().err


def test_force_replaces_files_and_keeps_others(rows, tmp_path, capsys):
    folder = tmp_path / "models"
    write_serving_folder(rows, "triton", folder)
    (folder / "kept").write_text("")
    config = folder / "of_rows" / "config.pbtxt"
    config.write_text("old")
    # The model in the folder may be the one that is given.
    again = folder / "of_rows" / "1" / "model.onnx"
    again = again.rename(again.with_name("of rows.onnx"))
    command = ["serve-config", str(again), "--for", "triton", "-o", str(folder), "--force"]
    with pytest.raises(SystemExit, match="0"):
        main(command)
    assert config.read_text().startswith('name: "of_rows"')
    assert (folder / "kept").exists()
    assert again.with_name("model.onnx").read_bytes() == rows.read_bytes()
    assert (
        len(write_serving_folder(again.with_name("model.onnx"), "triton", folder, force=True)) > 1
    )
    (tmp_path / "file").touch()
    with pytest.raises(PyTensorONNXError, match="is a file: name a folder"):
        write_serving_folder(rows, "triton", tmp_path / "file", force=True)


def test_a_sequence_is_no_tensor_of_a_server(tmp_path):
    x = onnx.helper.make_tensor_sequence_value_info("x", 1, [None])
    y = onnx.helper.make_tensor_value_info("y", 1, [None])
    node = onnx.helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0)
    graph = onnx.helper.make_graph([node], "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, ir_version=10), tmp_path / "model.onnx")
    with pytest.raises(PyTensorONNXError, match=r"Sequence.* which servers cannot exchange"):
        write_serving_folder(tmp_path / "model.onnx", "triton", tmp_path / "models")


def test_the_command_names_the_next_step(served, tmp_path, capsys):
    for server in SERVERS:
        folder = str(tmp_path / server)
        given = [] if server in ("triton", "kserve") else ["--constant", "scale=2"]
        with pytest.raises(SystemExit, match="0"):
            main(
                ["serve-config", str(served.path), "--for", server, "-o", folder, *given, "--json"]
            )
        printed = json.loads(capsys.readouterr().out)
        assert folder in printed["next"]
        assert len(printed["files"]) >= 2
    with pytest.raises(SystemExit, match="2"):
        main(["serve-config", str(served.path), "--for", "mlflow", "--constant", "scale"])
    assert "write NAME=VALUE" in capsys.readouterr().err


def test_names_with_tabs_and_line_ends_are_printed_in_one_line_that_a_shell_reads(
    served, tmp_path, capsys
):
    folder = tmp_path / "it's\ta\\new\nfolder"
    command = ["serve-config", str(served.path), "--for", "triton", "-o", str(folder)]
    with pytest.raises(SystemExit, match="0"):
        main(command)
    *wrote, following = capsys.readouterr().out.splitlines()
    assert all(r"it's\ta\new\nfolder/volumes/" in line for line in wrote)
    assert all(line.isprintable() for line in [*wrote, following])
    echo = following.replace("next: tritonserver ", "printf %s ")
    read = subprocess.run(["bash", "-c", echo], capture_output=True, text=True, check=True)
    assert read.stdout == f"--model-repository={folder}"


@pytest.mark.sweep
def test_the_files_are_those_of_the_servers(rows, served, tmp_path):
    """Run with `uv run --all-extras --with tritonclient --with grpcio pytest -m sweep`."""
    model_config = pytest.importorskip("tritonclient.grpc.model_config_pb2")
    from google.protobuf import text_format

    for path in (rows, served.path):
        write_serving_folder(path, "triton", tmp_path / path.stem)
        [config] = (tmp_path / path.stem).rglob("config.pbtxt")
        read = text_format.Parse(config.read_text(), model_config.ModelConfig())
        session = onnxruntime.InferenceSession(path)
        assert [x.name for x in read.input] == [x.name for x in session.get_inputs()]
        assert [x.name for x in read.output] == [x.name for x in session.get_outputs()]
        assert all(x.data_type for x in read.input)


@pytest.mark.sweep
def test_the_metadata_are_those_of_the_protocol(rows, tmp_path):
    """Run with `uv run --all-extras --with mlserver pytest -m sweep`."""
    types = pytest.importorskip("mlserver.types")
    write_serving_folder(rows, "kserve", tmp_path / "kserve")
    types.MetadataModelResponse.model_validate_json(
        (tmp_path / "kserve" / "metadata.json").read_text()
    )


@pytest.mark.sweep
def test_the_manifest_is_one_of_kserve(rows, tmp_path):
    """Run with `uv run --all-extras --with kserve pytest -m sweep`."""
    kserve = pytest.importorskip("kserve")
    write_serving_folder(rows, "kserve", tmp_path / "kserve")
    manifest = yaml.safe_load((tmp_path / "kserve" / "inference_service.yaml").read_text())
    spec = manifest["spec"]["predictor"]["model"]
    names = kserve.V1beta1ModelSpec.attribute_map.values()
    assert spec.keys() <= set(names)
