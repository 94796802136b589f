"""The native library exists, switches turn it off, and it runs no regions of files."""

import json

import numpy as np
import onnx
import onnx_ir
import onnxruntime
import pytest
from onnx import helper

from pytensor_onnx import PyTensorONNXError, native
from pytensor_onnx.exporting.files.loading import load
from pytensor_onnx.kernels.regions import fuse
from pytensor_onnx.running.session import Session
from pytensor_onnx.serving.folders import SERVERS, write_serving_folder
from pytensor_onnx.serving.tensors import served_model
from pytensor_onnx.web.site import build_site
from pytensor_onnx_scoring import Scorer, ScoringError


def test_the_installed_package_has_a_library_for_this_machine():
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(str(native.library()))


@pytest.mark.parametrize(("value", "is_on"), [("0", False), ("1", True), (None, True)])
def test_an_environment_variable_and_an_option_switch_the_kernels_off(monkeypatch, value, is_on):
    monkeypatch.delenv(native.SWITCH, raising=False)
    if value is not None:
        monkeypatch.setenv(native.SWITCH, value)
    assert native.is_on() is is_on
    assert native.is_on(True)
    assert not native.is_on(False)


def test_the_functions_with_kernels_have_names():
    names = native.function_kernels()
    assert {"Cholesky_lower_float64", "GammaLn_float32_in_blocks"} <= set(names)
    assert "Sigmoid_float32" not in names
    options = onnxruntime.SessionOptions()
    native.register(options, names)


def outside_model(place):
    """Return a model of one region, which no session of this process has made."""
    double = onnx.TensorProto.DOUBLE
    x, y = (helper.make_tensor_value_info(name, double, ["rows"]) for name in "xy")
    plain = helper.make_model(
        helper.make_graph([helper.make_node(op, ["x"], ["y"]) for op in ("Exp",)], "g", [x], [y])
    )
    chain = onnx.ModelProto.FromString(plain.SerializeToString())
    chain.graph.node.add(op_type="Neg", input=["y"], output=["z"])
    chain.graph.output[0].name = "z"
    fused = onnx.load_model_from_string(fuse(chain.SerializeToString()).model)
    [region] = fused.graph.node
    domains = [helper.make_opsetid(name, 1) for name in (native.REGION_DOMAIN, "own")]
    domains.append(helper.make_opsetid("", 21))
    functions = []
    nodes = [
        helper.make_node("Region", ["x"], ["y"], domain=region.domain, tape=region.attribute[0].s)
    ]
    if place == "body":
        y.name, outer = "inner", helper.make_tensor_value_info("y", double, ["rows"])
        nodes[0].output[0] = "inner"
        body = helper.make_graph(nodes, "body", [], [y])
        yes = helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])
        nodes = [helper.make_node("Constant", [], ["yes"], value=yes)]
        nodes.append(helper.make_node("If", ["yes"], ["y"], then_branch=body, else_branch=body))
        y = outer
    elif place == "function":
        functions = [helper.make_function("own", "F", ["x"], ["y"], nodes, domains)]
        nodes = [helper.make_node("F", ["x"], ["y"], domain="own")]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=domains, functions=functions, ir_version=10)


@pytest.mark.parametrize("place", ["graph", "body", "function"])
def test_files_have_no_regions(place, tmp_path):
    model, path = outside_model(place), tmp_path / "model.onnx"
    onnx.save(model, path)
    source = model.SerializeToString()
    assert fuse(source).model is None
    for register in (
        lambda options: options.register_custom_ops_library(str(native.library())),
        native.register,
    ):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        register(options)
        for given in (source, str(path)):
            with pytest.raises(Exception, match=r"pytensor\.kernels:Region"):
                onnxruntime.InferenceSession(given, options)
    loaded = onnx_ir.load(path)
    for given in (source, path, model, loaded):
        with pytest.raises(ScoringError, match="which only sessions of pytensor-onnx make"):
            Scorer(given)({"x": np.ones(2)})
    for opens in (
        lambda: Session(path),
        lambda: Session(loaded),
        lambda: load(path).session,
        lambda: served_model(loaded),
        lambda: build_site(path, tmp_path / "page"),
    ):
        with pytest.raises(PyTensorONNXError, match="which only sessions make"):
            opens()


@pytest.mark.parametrize("place", ["graph", "body", "function"])
@pytest.mark.parametrize("server", SERVERS)
def test_no_folder_of_a_server_has_regions(place, server, tmp_path):
    onnx.save(outside_model(place), tmp_path / "model.onnx")
    with pytest.raises(PyTensorONNXError, match=r"operators of pytensor\.kernels, which only"):
        write_serving_folder(tmp_path / "model.onnx", server, tmp_path / "served")
    assert not (tmp_path / "served").exists()


def test_regions_need_the_key_of_the_process(monkeypatch):
    """The runtime may read a configuration in a model, which has no such entries."""
    model = outside_model("graph")
    entries = {"pytensor_onnx.regions": "1", "config_entries": {"pytensor_onnx.regions": "1"}}
    model.metadata_props.add(key="ort_config", value=json.dumps({"session_options": entries}))
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(str(native.library()))
    with pytest.raises(Exception, match=r"pytensor\.kernels:Region"):
        onnxruntime.InferenceSession(model.SerializeToString(), options)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("pytensor_onnx.regions", "0" * 32)
    with pytest.raises(Exception, match="is not the key of this process"):
        options.register_custom_ops_library(str(native.library()))
    options = onnxruntime.SessionOptions()
    native.register_with_regions(options)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    np.testing.assert_allclose(session.run(None, {"x": np.zeros(3)})[0], -1)
