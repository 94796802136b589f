"""Small models made of nodes, and their values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytensor
from onnx import TensorProto, helper, numpy_helper
from pytensor.compile.mode import Mode

PYTHON = Mode(linker="py", optimizer=None)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: Mapping[str, Sequence[Any]],
    outputs: Mapping[str, Sequence[Any]],
    constants: Mapping[str, Any] | None = None,
    dtypes: Mapping[str, int] | None = None,
    opset: int = 21,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Return a model of float32 values, unless dtypes say otherwise."""

    def infos(values: Mapping[str, Sequence[Any]]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, (dtypes or {}).get(name, TensorProto.FLOAT), shape)
            for name, shape in values.items()
        ]

    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", infos(inputs), infos(outputs), tensors)
    domains = {node.domain for node in nodes} - {""}
    versions = {"": opset, **{d: 3 if d == "ai.onnx.ml" else 1 for d in domains}}
    imports = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))


def by_runtime(model: onnx.ModelProto, *arrays: Any) -> list[Any]:
    """Return the outputs of a model by ONNX Runtime."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, arrays), strict=True)))


def evaluated(graph: Any, *arrays: Any) -> list[np.ndarray]:
    """Return the outputs of an imported graph by PyTensor's Python implementations."""
    with pytensor.config.change_flags(cxx=""):
        return pytensor.function(graph.inputs, graph.outputs, mode=PYTHON)(*arrays)
