"""Files with large weights are read as others, and never have these in memory twice."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytensor_onnx import PyTensorONNXError, from_onnx
from pytensor_onnx.graph.large_files import LARGE, read_apart

RNG = np.random.default_rng(0)


def weight(dtype: str, *shape: int) -> np.ndarray:
    return RNG.integers(-9, 9, shape).astype(dtype)


WEIGHTS = {
    "single": weight("float32", 700, 400),
    "small": weight("float32", 4),
    "double": weight("float64", 400, 400),
    "half": weight("float16", 1500, 400),
    "bytes": weight("int8", 3000, 400),
    "brain": weight("int32", 1500, 400).astype(ml_dtypes.bfloat16),
}


def model(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        tensors,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    helper.set_model_props(proto, {"author": "somebody"})
    return proto


def test_weights_are_those_of_the_parser(tmp_path):
    onnx.save(model(WEIGHTS), tmp_path / "file.onnx")
    found = read_apart(tmp_path / "file.onnx")
    assert list(found.graph.initializers) == list(WEIGHTS)
    for name, value in found.graph.initializers.items():
        array = value.const_value.numpy()
        assert array.dtype == WEIGHTS[name].dtype
        np.testing.assert_array_equal(array, WEIGHTS[name])
    assert found.metadata_props == {"author": "somebody"}
    assert [node.op_type for node in found.graph] == ["Identity"]
    assert found.graph.inputs[0].name == "x"


def test_files_without_large_weights_are_left_to_the_parser(tmp_path):
    onnx.save(model({"small": WEIGHTS["small"]}), tmp_path / "small.onnx")
    many = {f"w{i}": weight("float32", 250, 400) for i in range(4)}
    onnx.save(model(many), tmp_path / "many.onnx")
    assert (tmp_path / "many.onnx").stat().st_size > LARGE
    (tmp_path / "text.onnx").write_bytes(b"no model " * LARGE)
    (tmp_path / "zeros.onnx").write_bytes(bytes(2 * LARGE))
    for name in ("small", "many", "text", "zeros"):
        assert read_apart(tmp_path / f"{name}.onnx") is None


@pytest.mark.parametrize("end", [0.3, 0.99])
def test_a_file_that_ends_early_has_its_error(tmp_path, end):
    data = model(WEIGHTS).SerializeToString()
    (tmp_path / "part.onnx").write_bytes(data[: int(end * len(data))])
    assert read_apart(tmp_path / "part.onnx") is None
    with pytest.raises(PyTensorONNXError, match="damaged, or was not copied to its end"):
        from_onnx(tmp_path / "part.onnx")


def test_weights_in_other_files_stay_there(tmp_path):
    proto = model(WEIGHTS)
    onnx.save(proto, tmp_path / "file.onnx", save_as_external_data=True, location="data")
    assert read_apart(tmp_path / "file.onnx") is None
    assert from_onnx(tmp_path / "file.onnx").outputs[0].name == "y"


CODE = """
import resource, sys
from pytensor_onnx import from_onnx
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
graph = from_onnx(sys.argv[1])
print((peak() - before) * 1024)
"""


@pytest.mark.slow
def test_an_import_takes_the_memory_of_its_weights(tmp_path):
    weights = {f"w{i}": weight("float32", 2000, 2000) for i in range(8)}
    proto = model(weights)
    proto.graph.node[0].op_type = "Relu"
    onnx.save(proto, tmp_path / "file.onnx")
    command = [sys.executable, "-c", CODE, str(tmp_path / "file.onnx")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(found.stdout) < 1.5 * sum(array.nbytes for array in weights.values())
