"""Files as PyTorch, JAX and this package write them equal ONNX Runtime's results."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytensor
import pytest
from onnx import helper

from pytensor_onnx import export_onnx, from_onnx
from tests.importing.models import by_runtime, evaluated, model_of

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32") / 2


class Graph:
    """Nodes in the order in which they are added, with constants."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; arrays become constants."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self.nodes.append(helper.make_node(operator, names, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def constant(self, array: Any) -> str:
        """Return the name of a constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name


def attention() -> onnx.ModelProto:
    """Return self-attention of two heads, with the shapes that PyTorch's exporter computes."""
    g = Graph()
    size = [g.add("Gather", g.add("Shape", "x"), np.int64(i), axis=0) for i in (0, 1)]

    def listed(*numbers: Any) -> str:
        parts = [
            g.add("Unsqueeze", n, np.int64([0])) if isinstance(n, str) else np.int64([n])
            for n in numbers
        ]
        return g.add("Concat", *parts, axis=0)

    def head() -> str:
        y = g.add("Add", g.add("MatMul", "x", normal(6, 6)), normal(6))
        return g.add("Transpose", g.add("Reshape", y, listed(*size, 2, 3)), perm=[0, 2, 1, 3])

    q, k, v = head(), head(), head()
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2]))
    weights = g.add("Softmax", g.add("Div", scores, np.float32(3**0.5)), axis=-1)
    y = g.add("Transpose", g.add("MatMul", weights, v), perm=[0, 2, 1, 3])
    y = g.add("Reshape", y, listed(*size, 6))
    y = g.add("LayerNormalization", g.add("Add", "x", y), normal(6), normal(6), axis=-1)
    return model_of(
        g.nodes, inputs={"x": ("n", "t", 6)}, outputs={y: ("n", "t", 6)}, constants=g.constants
    )


def recurrent() -> onnx.ModelProto:
    """Return an LSTM whose first state is zero in the size of the batch."""
    g = Graph()
    batch = g.add("Unsqueeze", g.add("Gather", g.add("Shape", "x"), np.int64(1)), np.int64([0]))
    shape = g.add("Concat", np.int64([1]), batch, np.int64([4]), axis=0)
    zeros = g.add("Expand", np.float32([[[0]]]), shape)
    names = [g.constant(normal(1, 16, n)) for n in (3, 4)] + [g.constant(normal(1, 32))]
    lstm = helper.make_node("LSTM", ["x", *names, "", zeros, zeros], ["y"], hidden_size=4)
    g.nodes.append(lstm)
    y = g.add("Squeeze", "y", np.int64([1]))
    return model_of(
        g.nodes, inputs={"x": ("t", "n", 3)}, outputs={y: ("t", "n", 4)}, constants=g.constants
    )


FILES = {"attention": (attention, (2, 5, 6)), "recurrent": (recurrent, (5, 2, 3))}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_pytorch(name):
    make, shape = FILES[name]
    model, x = make(), normal(*shape)
    graph = from_onnx(model)
    (expected,) = by_runtime(model, x)
    np.testing.assert_allclose(evaluated(graph, x)[0], expected, rtol=1e-5, atol=1e-6)
    program = export_onnx(graph.inputs, graph.outputs, dynamic_axes=graph.dynamic_axes)
    np.testing.assert_allclose(program(x)[0], expected, rtol=1e-5, atol=1e-6)
    if name == "attention":  # a recurrence has a form for few sequences and one for many
        assert len(program.model.graph) <= 1.05 * len(model.graph.node)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_the_gradient_of_a_file_of_pytorch_equals_differences(name):
    make, shape = FILES[name]
    graph = from_onnx(make())
    (x,), value, step = graph.inputs, normal(*shape), 1e-2 * normal(*shape)
    total = (graph.outputs[0] ** 2).sum()
    function = pytensor.function([x], [total, pytensor.grad(total, x)], mode="ONNX")
    difference = function(value + step)[0] - function(value - step)[0]
    slope = 2 * (function(value)[1] * step).sum()
    np.testing.assert_allclose(slope, difference, rtol=2e-2, atol=2e-4)


@pytest.mark.slow
def test_a_detector_comes_back(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "examples" / "yolo11n"))
    from export import export

    program = export(None, size=(64, 64), verify=False)
    graph = from_onnx(program)
    x = normal(1, 3, 64, 64)
    again = export_onnx(graph.inputs, graph.outputs[0], verify=False)
    np.testing.assert_allclose(again(x), np.squeeze(program(x), 0), rtol=1e-4, atol=1e-4)
    assert len(again.model.graph) <= 1.05 * len(program.model.graph)
    for name in ("export", "model", "head", "weights", "blocks"):
        sys.modules.pop(name, None)


@pytest.mark.filterwarnings("ignore")
def test_a_file_of_jax():
    jax2onnx = pytest.importorskip("jax2onnx", reason="the group importing is not installed")
    import jax.numpy as jnp

    w = normal(3, 4)

    def network(x: Any) -> Any:
        return jnp.tanh(x @ w).sum(axis=1)

    model = jax2onnx.to_onnx(network, [("batch", 3)])
    x = normal(5, 3)
    np.testing.assert_allclose(
        evaluated(from_onnx(model), x)[0], by_runtime(model, x)[0], rtol=1e-5, atol=1e-6
    )
