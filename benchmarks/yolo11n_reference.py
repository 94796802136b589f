"""YOLO11n as other exporters write it, node by node: the reference for the example's file.

Every convolution keeps its batch norm, every SiLU is a Sigmoid and a Mul, and the decoding is
spelled out. Shares nothing with `examples/yolo11n`.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BOTTLENECKS = {2: 16, 4: 32, 13: 64, 16: 32, 19: 64}
DEEP = {6: 64, 8: 128, 22: 128}
STRIDES = (8, 16, 32)


class Reference:
    """A graph that grows node by node; methods return the name of a value."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, **attributes))
        return names

    def one(self, op_type: str, *inputs: str, **attributes: object) -> str:
        return self.add(op_type, *inputs, **attributes)[0]

    def constant(self, value: object, dtype: str = "float32") -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def weight(self, name: str) -> str:
        self.constants[name] = self.weights[name]
        return name

    def conv(self, x: str, path: str, stride: int = 1, groups: int = 1, act: bool = True) -> str:
        weight = f"{path}.conv.weight"
        kernel = self.weights[weight].shape[-1]
        y = self.one(
            "Conv",
            x,
            self.weight(weight),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
            group=groups,
        )
        parts = ("weight", "bias", "running_mean", "running_var")
        norm = [self.weight(f"{path}.bn.{part}") for part in parts]
        y = self.one("BatchNormalization", y, *norm, epsilon=1e-3)
        return self.one("Mul", y, self.one("Sigmoid", y)) if act else y

    def plain(self, x: str, path: str) -> str:
        return self.one("Conv", x, self.weight(f"{path}.weight"), self.weight(f"{path}.bias"))

    def concat(self, *xs: str, axis: int = 1) -> str:
        return self.one("Concat", *xs, axis=axis)

    def reshape(self, x: str, *shape: int) -> str:
        return self.one("Reshape", x, self.constant(shape, "int64"))

    def split(self, x: str, *sizes: int, axis: int = 1) -> list[str]:
        return self.add("Split", x, self.constant(sizes, "int64"), outputs=len(sizes), axis=axis)

    def bottleneck(self, x: str, path: str) -> str:
        return self.one("Add", x, self.conv(self.conv(x, f"{path}.cv1"), f"{path}.cv2"))

    def c3k2(self, x: str, path: str, hidden: int, deep: bool) -> str:
        u, v = self.split(self.conv(x, f"{path}.cv1"), hidden, hidden)
        inner = f"{path}.m.0"
        if deep:
            a = self.conv(v, f"{inner}.cv1")
            for i in range(2):
                a = self.bottleneck(a, f"{inner}.m.{i}")
            t = self.conv(self.concat(a, self.conv(v, f"{inner}.cv2")), f"{inner}.cv3")
        else:
            t = self.bottleneck(v, inner)
        return self.conv(self.concat(u, v, t), f"{path}.cv2")

    def sppf(self, x: str, path: str) -> str:
        levels = [self.conv(x, f"{path}.cv1")]
        for _ in range(3):
            pool = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2] * 4}
            levels.append(self.one("MaxPool", levels[-1], **pool))
        return self.conv(self.concat(*levels), f"{path}.cv2")

    def attention(self, x: str, path: str, h: int, w: int) -> str:
        z = self.reshape(self.conv(x, f"{path}.qkv", act=False), 1, 2, 128, h * w)
        q, k, v = self.split(z, 32, 32, 64, axis=2)
        scores = self.one("MatMul", self.one("Transpose", q, perm=[0, 1, 3, 2]), k)
        scores = self.one("Mul", scores, self.constant(32**-0.5))
        weights = self.one("Transpose", self.one("Softmax", scores, axis=-1), perm=[0, 1, 3, 2])
        mixed = self.reshape(self.one("MatMul", v, weights), 1, 128, h, w)
        position = self.conv(self.reshape(v, 1, 128, h, w), f"{path}.pe", groups=128, act=False)
        return self.conv(self.one("Add", mixed, position), f"{path}.proj", act=False)

    def c2psa(self, x: str, path: str, h: int, w: int) -> str:
        a, b = self.split(self.conv(x, f"{path}.cv1"), 128, 128)
        b = self.one("Add", b, self.attention(b, f"{path}.m.0.attn", h, w))
        f = self.conv(self.conv(b, f"{path}.m.0.ffn.0"), f"{path}.m.0.ffn.1", act=False)
        return self.conv(self.concat(a, self.one("Add", b, f)), f"{path}.cv2")

    def upsample(self, x: str) -> str:
        return self.one("Resize", x, "", self.constant([1, 1, 2, 2]), mode="nearest")

    def layer(self, index: int, x: str, height: int, width: int) -> str:
        path = f"model.{index}"
        if index in BOTTLENECKS or index in DEEP:
            hidden = {**BOTTLENECKS, **DEEP}[index]
            return self.c3k2(x, path, hidden, deep=index in DEEP)
        if index == 9:
            return self.sppf(x, path)
        if index == 10:
            return self.c2psa(x, path, height // 32, width // 32)
        if index in (11, 14):
            return self.upsample(x)
        return self.conv(x, path, stride=2)

    def head(self, features: list[str], height: int, width: int) -> str:
        maps = []
        for i, x in enumerate(features):
            box = self.conv(self.conv(x, f"model.23.cv2.{i}.0"), f"model.23.cv2.{i}.1")
            box = self.plain(box, f"model.23.cv2.{i}.2")
            score = self.conv(x, f"model.23.cv3.{i}.0.0", groups=(64, 128, 256)[i])
            score = self.conv(score, f"model.23.cv3.{i}.0.1")
            score = self.conv(score, f"model.23.cv3.{i}.1.0", groups=80)
            score = self.conv(score, f"model.23.cv3.{i}.1.1")
            score = self.plain(score, f"model.23.cv3.{i}.2")
            maps.append(self.reshape(self.concat(box, score), 1, 144, -1))
        return self.decode(self.concat(*maps, axis=2), height, width)

    def decode(self, maps: str, height: int, width: int) -> str:
        box, score = self.split(maps, 64, 80)
        cells = height * width // 64 * 21 // 16
        bins = self.one("Transpose", self.reshape(box, 1, 4, 16, cells), perm=[0, 2, 1, 3])
        bins = self.one("Softmax", bins, axis=1)
        sides = self.one("Conv", bins, self.weight("model.23.dfl.conv.weight"))
        before, after = self.split(self.reshape(sides, 1, 4, cells), 2, 2)
        centres, strides = self.anchors(height, width)
        first, last = self.one("Sub", centres, before), self.one("Add", centres, after)
        middle = self.one("Div", self.one("Add", first, last), self.constant(2))
        boxes = self.concat(middle, self.one("Sub", last, first))
        boxes = self.one("Mul", boxes, strides)
        return self.concat(boxes, self.one("Sigmoid", score))

    def anchors(self, height: int, width: int) -> tuple[str, str]:
        points = [
            (x + 0.5, y + 0.5, stride)
            for stride in STRIDES
            for y in range(height // stride)
            for x in range(width // stride)
        ]
        x, y, stride = np.array(points).T
        return self.constant([[x, y]]), self.constant([[stride]])


def reference_model(weights: Mapping[str, np.ndarray], height: int, width: int) -> onnx.ModelProto:
    """Return the network for one image of a size."""
    graph = Reference(weights)
    outputs: list[str] = []
    x = "images"
    skips = {12: 6, 15: 4, 18: 13, 21: 10}
    for index in range(23):
        if index in skips:
            x = graph.concat(x, outputs[skips[index]])
        else:
            x = graph.layer(index, x, height, width)
        outputs.append(x)
    decoded = graph.head([outputs[i] for i in (16, 19, 22)], height, width)
    value = helper.make_tensor_value_info
    shape = (1, 3, height, width)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "yolo11n",
            [value("images", TensorProto.FLOAT, shape)],
            [value(decoded, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    return onnx.shape_inference.infer_shapes(model)
