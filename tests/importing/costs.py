"""Measure the time of imports, of runs of imported networks, and of gradients.

python -m tests.importing.costs
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytensor
from onnx import helper
from pytensor.compile.mode import Mode

from benchmarks.yolo11n_reference import reference_model
from pytensor_onnx import ONNXLinker, SessionOptions, from_onnx
from pytensor_onnx.rewriting import ONNX_QUERY
from tests.importing.models import model_of

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    """Return weights under which numbers keep their scale."""
    return (RNG.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype("float32")


def many_nodes(count: int) -> onnx.ModelProto:
    """Return a network of dense layers with computed shapes, as PyTorch writes them."""
    nodes: list[onnx.NodeProto] = []
    last = "x"

    def add(operator: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    while len(nodes) < count:
        last = add("Relu", add("Add", add("MatMul", last, "weights"), "bias"))
        batch = add("Unsqueeze", add("Gather", add("Shape", last), "zero"), "axes")
        shape = add("Concat", batch, "four", "two", axis=0)
        last = add("Reshape", add("Transpose", add("Reshape", last, shape), perm=[0, 2, 1]), "flat")
    numbers = {"axes": [0], "four": [4], "two": [2], "flat": [-1, 8]}
    return model_of(
        nodes,
        inputs={"x": ("n", 8)},
        outputs={last: ("n", 8)},
        constants={
            "weights": normal(8, 8),
            "bias": normal(8),
            "zero": np.int64(0),
            **{name: np.int64(value) for name, value in numbers.items()},
        },
    )


def residual_network(blocks: int = 8, channels: int = 32, size: int = 56) -> onnx.ModelProto:
    """Return convolutions and batch norms with sums over two of them, as those of ResNet-18."""
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {"ones": np.ones(channels, "float32")}
    constants["zeros"] = 0 * constants["ones"]

    def add(operator: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def convolved(x: str) -> str:
        constants[f"w{len(nodes)}"] = normal(channels, channels, 3, 3)
        y = add("Conv", x, f"w{len(nodes)}", pads=[1, 1, 1, 1])
        return add("BatchNormalization", y, "ones", "zeros", "zeros", "ones")

    last = "x"
    for _ in range(blocks):
        last = add("Relu", add("Add", convolved(add("Relu", convolved(last))), last))
    constants["classes"] = normal(10, channels)
    last = add("Gemm", add("Flatten", add("GlobalAveragePool", last)), "classes", transB=1)
    return model_of(
        nodes,
        inputs={"x": (1, channels, size, size)},
        outputs={last: (1, 10)},
        constants=constants,
    )


def dense_layers(count: int) -> onnx.ModelProto:
    """Return a network of dense layers with hyperbolic tangents."""
    nodes, last = [], "x"
    for i in range(count):
        nodes.append(helper.make_node("Gemm", [last, f"w{i}", f"b{i}"], [f"h{i}"]))
        nodes.append(helper.make_node("Tanh", [f"h{i}"], [f"y{i}"]))
        last = f"y{i}"
    constants = {f"w{i}": normal(16, 16) for i in range(count)}
    constants |= {f"b{i}": normal(16) for i in range(count)}
    return model_of(nodes, inputs={"x": ("n", 16)}, outputs={last: ("n", 16)}, constants=constants)


def seconds(function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of one call."""
    start = clock()
    function()
    return clock() - start


def yolo11n(size: int = 320) -> onnx.ModelProto:
    """Return the file of the example, in the form in which other exporters write it."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "yolo11n"))
    from model import Yolo11n
    from weights import initial_weights

    return reference_model(initial_weights(Yolo11n().state.shapes), size, size)


def ratio_to_runtime(model: onnx.ModelProto, x: np.ndarray, rounds: int = 25) -> float:
    """Return the median ratio of times of an imported network and ONNX Runtime on the file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    graph = from_onnx(model)
    mode = Mode(ONNXLinker(session_options=SessionOptions(threads=1)), ONNX_QUERY)
    function = pytensor.function(graph.inputs, graph.outputs, mode=mode)
    feed = {model.graph.input[0].name: x}
    expected = session.run(None, feed)[0]
    np.testing.assert_allclose(function(x)[0], expected, rtol=1e-4, atol=1e-4)
    return median(
        seconds(lambda: function(x)) / seconds(lambda: session.run(None, feed))
        for _ in range(rounds)
    )


def first_gradient(model: onnx.ModelProto, x: np.ndarray) -> float:
    """Return the time from the file to the first value and gradient of all weights."""

    def run() -> None:
        graph = from_onnx(model, trainable=True)
        total = graph.outputs[0].sum()
        gradients = pytensor.grad(total, list(graph.weights.values()))
        pytensor.function(graph.inputs, [total, *gradients], mode="ONNX")(x)

    return seconds(run)


def main() -> None:
    """Print the times."""
    model = many_nodes(10_000)
    from_onnx(many_nodes(20))
    print(f"import of 10,000 nodes: {seconds(lambda: from_onnx(model), time.process_time):.1f} s")
    ratio = ratio_to_runtime(residual_network(), normal(1, 32, 56, 56))
    print(f"residual network, imported / ONNX Runtime: {ratio:.2f}")
    images = np.abs(normal(1, 3, 320, 320))
    print(f"YOLO11n, imported / ONNX Runtime: {ratio_to_runtime(yolo11n(), images):.2f}")
    print(f"twenty layers, first gradient: {first_gradient(dense_layers(20), normal(4, 16)):.1f} s")


if __name__ == "__main__":
    main()
