"""Files of every opset and target follow the standard, load, run and agree with PyTensor."""

from collections.abc import Iterator
from hashlib import sha256

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import ONNXProgram, export_onnx, nn
from pytensor_onnx.targets import get_profile
from tests.conftest import compare_onnx_and_py
from tests.fuzz.cases import Case
from tests.fuzz.comparison import check
from tests.fuzz.graphs import Graph
from tests.fuzz.operations import OPERATIONS
from tests.fuzz.quietness import quiet

TARGETS = ("onnxruntime", "web", "standard")
OPSETS = [(v, t) for t in TARGETS for v in range(18, get_profile(t).max_opset + 1)]
RNG = np.random.default_rng(0)


def options_for(opset: int, target: str) -> dict[str, object]:
    """Return the options of an export that keeps the dtypes of its inputs."""
    return {"opset_version": opset, "target": target, "precision": "float64"}


def assert_follows_schemas(program: ONNXProgram) -> None:
    """Assert that the opset has each operator with these attributes and numbers of operands."""
    (version,) = (o.version for o in program.proto.opset_import if not o.domain)
    bodies = [program.proto.graph, *program.proto.functions]
    for node in (node for body in bodies for node in _nodes(body)):
        if node.domain:
            continue
        schema = onnx.defs.get_schema(node.op_type, version)
        given = {attribute.name: attribute.type for attribute in node.attribute}
        assert given.keys() <= schema.attributes.keys(), node
        for name, attribute in schema.attributes.items():
            assert name in given or not attribute.required, node
            assert name not in given or int(attribute.type) == given[name], node
        assert schema.min_input <= len(node.input) <= schema.max_input, node
        assert schema.min_output <= len(node.output) <= schema.max_output, node


def _nodes(body: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    for node in body.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def network(x: pt.TensorVariable) -> list[pt.TensorVariable]:
    """Return what changed from opset to opset, in the dtype of x (N, 4, H, W)."""
    ones, zeros = np.ones(4, x.type.dtype), np.zeros(4, x.type.dtype)
    filters = RNG.standard_normal((4, 4, 2, 2)).astype(x.type.dtype)
    rows = x.reshape((x.shape[0], 4, -1))
    pooled = nn.max_pool(x, 2, padding=1, dilation=2)
    return [
        nn.avg_pool(x, 2, stride=1, dilation=2),
        nn.lp_pool(x, 2, ceil_mode=True),
        pooled,
        pt.grad(pooled.sum(), x),
        nn.leaky_relu(x, 0.1),
        nn.elu(x, 0.3),
        nn.gelu(x),
        nn.mish(x),
        nn.hard_swish(x),
        nn.conv2d(x, filters),
        nn.batch_norm(x, ones, zeros, zeros, ones),
        nn.layer_norm(x, np.ones(5, x.type.dtype), np.zeros(5, x.type.dtype)),
        nn.rms_norm(x),
        nn.group_norm(x, 2, ones, zeros),
        nn.attention(rows[:, None], rows[:, None], rows[:, None]),
        nn.upsample(x, 2),
        pt.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], mode="wrap"),
        pt.cumprod(x, axis=1),
        (x > 0).any(axis=1),
        pt.tile(pt.le(x[0, 0], x[0, 1]), (1, 0)),
        pt.switch(pt.le(x, 0), x, 2),
        pt.maximum(x, 0).argmax(axis=2),
    ]


@pytest.mark.parametrize("opset", [18, 19, 20, 23, 26, 28])
@pytest.mark.slow
def test_networks_of_every_opset(opset):
    target = TARGETS[opset % 2]
    x = pt.tensor("x", shape=(None, 4, None, 5), dtype="float32")
    value = RNG.standard_normal((2, 4, 4, 5)).astype("float32")
    options = {"opset_version": opset, "target": target}
    program = compare_onnx_and_py([x], network(x), [value], atol=1e-5, **options)
    assert_follows_schemas(program)


@pytest.mark.sweep
@pytest.mark.parametrize(("opset", "target"), OPSETS)
def test_networks_of_every_opset_and_target_in_every_dtype(opset, target):
    options = options_for(opset, target)
    for dtype in ("float32", "float64"):
        x = pt.tensor("x", shape=(None, 4, None, 5), dtype=dtype)
        assert_follows_schemas(export_onnx([x], network(x), verify=False, **options))
        if target != "standard" or dtype == "float32":
            value = RNG.standard_normal((2, 4, 4, 5)).astype(dtype)
            tolerance = 1e-5 if dtype == "float32" else 1e-12
            compare_onnx_and_py([x], network(x), [value], atol=tolerance, **options)


@pytest.mark.sweep
@pytest.mark.parametrize(("opset", "target"), OPSETS)
def test_operations_of_every_opset_and_target(opset, target):
    options = options_for(opset, target)
    for position, operation in enumerate(OPERATIONS):
        graph = Graph()
        # As outside of these tests: PyTensor has rewrites that fail on float16.
        with quiet(), pytensor.config.change_flags(on_opt_error="warn"):
            for draw in range(3):
                graph.apply(operation, sha256(f"{opset} {position} {draw}".encode()).digest())
            outputs = [t for t in graph.terms if t.variable.owner is not None]
            if outputs:
                inputs, results = ([t.variable for t in ts] for ts in (graph.inputs, outputs))
                assert_follows_schemas(export_onnx(inputs, results, verify=False, **options))
                if target == "standard" and graph.evaluation.not_finite:
                    continue  # which ONNX Runtime loses without the guards of its target
                check(Case(graph, outputs, [], options=options))
