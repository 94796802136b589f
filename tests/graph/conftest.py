"""A builder, and a way to run the emitted nodes."""

import onnx_ir as ir
import onnxruntime
import pytest

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import DOMAINS


@pytest.fixture
def scope():
    return ModelScope(21)


@pytest.fixture
def build(scope):
    return Builder(scope)


def value(name="x", dtype=ir.DataType.DOUBLE, shape=("n", 3)):
    return ir.val(name, dtype=dtype, shape=shape)


def run(build, inputs, outputs, **feeds):
    """Close the builder as a model and run it."""
    outputs = build.own_results(outputs)
    nodes = build.nodes
    for x in inputs:
        build.scope.names.unique(x.name)
    name_values(nodes, build.scope.names)
    graph = ir.Graph(
        inputs,
        outputs,
        nodes=nodes,
        initializers=list(build.scope.initializers.values()),
        opset_imports={"": build.scope.opset_version, **DOMAINS},
        name="g",
    )
    functions = [local.function for local in build.scope.functions.values()]
    proto = ir.to_proto(ir.Model(graph, ir_version=10, functions=functions))
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
