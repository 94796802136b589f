"""Files of other kinds are called so, wherever a model is given."""

import gzip
import io
import json
import pickle
import zipfile

import numpy as np
import onnx
import pytensor.tensor as pt
import pytest

from pytensor_onnx import PyTensorONNXError, export_onnx, from_onnx, load
from pytensor_onnx.exporting.files.file_latency import measure_latency
from pytensor_onnx.graph.model_reading import parse_model, read_model
from pytensor_onnx.serving.tensors import served_model
from pytensor_onnx.web.site import describe_page
from pytensor_onnx_scoring import Scorer, ScoringError

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"


def archive(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for name in names:
            written.writestr(name, b"content")
    return file.getvalue()


def safetensors():
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)


KINDS = {
    "empty": (b"", "it is empty"),
    "pointer": (POINTER, "pointer of Git LFS: git lfs pull"),
    "html": (b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html></html>", "a page in HTML"),
    "head": (b"<!-- moved -->\n<html lang='en'>", "a page in HTML"),
    "text": (b"hello", "it is text: 'hello'"),
    "long text": ("Grüße ".encode() * 5000, "it is text: 'Grüße Grüße"),
    "utf-16": ("hello".encode("utf-16"), "it is text: 'hello'"),
    "json": (b'{"message": "Not Found"}', "it is JSON: "),
    "xml": (b'<?xml version="1.0"?><net name="n"/>', "XML, as models of OpenVINO"),
    "gzip": (gzip.compress(b"model"), "compressed by gzip: unpack"),
    "zip": (archive("folder/net.onnx"), "ZIP: unpack it, and give the file in it, folder/net.onnx"),
    "damaged zip": (archive("net.onnx")[:20], "damaged archive of ZIP"),
    "torch": (archive("net/data.pkl", "net/data/0"), "torch.onnx.export"),
    "keras": (archive("config.json", "model.weights.h5"), "a model of Keras"),
    "npz": (archive("x.npy"), "NumPy's arrays"),
    "pickle": (pickle.dumps({"weights": [1.0]}), "a pickle of Python"),
    "safetensors": (safetensors(), "safetensors, which has no graph"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(20), "TensorFlow Lite"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(20), "HDF5"),
    "unknown": (bytes(range(128, 256)), "damaged, or was not copied to its end"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_other_kinds_are_called_so(tmp_path, kind):
    content, text = KINDS[kind]
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    for read in (read_model, from_onnx, load):
        with pytest.raises(PyTensorONNXError, match=r"model\.onnx cannot be read as") as error:
            read(file)
        assert text in str(error.value)
    if kind != "unknown":
        with pytest.raises(ScoringError) as error:
            Scorer(file)
        assert text in str(error.value)
    of_bytes = kind not in ("zip", "damaged zip", "torch", "keras", "npz")
    with pytest.raises(PyTensorONNXError) as error:
        from_onnx(content)
    assert (text in str(error.value)) == of_bytes


def test_a_folder_names_the_models_in_it(tmp_path):
    (tmp_path / "b.onnx").touch()
    for read in (from_onnx, load, Scorer):
        with pytest.raises((PyTensorONNXError, ScoringError), match=r"a folder.*such as b\.onnx"):
            read(tmp_path)


def test_a_model_that_was_cut_is_damaged(tmp_path):
    file = tmp_path / "model.onnx"
    x = pt.vector("x")
    export_onnx([x], pt.exp(x) * np.arange(3.0), file)
    content = file.read_bytes()
    assert len(parse_model(content).graph) >= 1
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(PyTensorONNXError, match="damaged, or was not copied to its end"):
        measure_latency(file)


def test_weights_that_are_a_pointer_are_called_so(tmp_path):
    file = tmp_path / "model.onnx"
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    info = onnx.helper.make_tensor_value_info
    values = [info(name, 1, [64]) for name in "xy"]
    weights = onnx.numpy_helper.from_array(np.ones(64, "float32"), "w")
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    options = {"save_as_external_data": True, "location": "model.data", "size_threshold": 0}
    onnx.save(model, file, **options)
    (tmp_path / "model.data").write_bytes(POINTER)
    for read in (from_onnx, load):
        with pytest.raises(PyTensorONNXError, match=r"model\.data, which is a pointer of Git LFS"):
            read(file)


@pytest.mark.parametrize("text", ["production", "[", "3", '{"x": 3}', '{"x": "other"}'])
def test_metadata_of_other_tools_are_no_state(tmp_path, text):
    file = tmp_path / "model.onnx"
    x = pt.vector("x")
    export_onnx([x], {"y": x * 2}, file)
    model = onnx.load(file)
    keys = ("state", "feature_names") if text[0] == "{" else ("state", "encodings", "feature_names")
    onnx.helper.set_model_props(model, dict.fromkeys(keys, text))
    onnx.save(model, file)
    np.testing.assert_array_equal(load(file)([1.0, 2.0]), [2, 4])
    assert [v.name for v in from_onnx(file).inputs] == ["x"]
    assert [v["name"] for v in describe_page(file, {})["inputs"]] == ["x"]
    assert served_model(read_model(file)).inputs[0].name == "x"
