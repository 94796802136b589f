"""What single rules of the conversion save: the exported graph against the plain form by hand.

``python -m benchmarks.rules``; both forms run with the same options on one thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx
import onnxruntime
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from benchmarks.timing import Table, interleaved
from pytensor_onnx import export_onnx, nn
from pytensor_onnx.running.session import SessionOptions


@dataclass(frozen=True)
class Rule:
    """A graph to export, the same in ONNX by hand without the rule, and values of its inputs."""

    label: str
    inputs: Sequence[Variable]
    output: Variable | Sequence[Variable]
    by_hand: str
    values: Sequence[np.ndarray]
    bound: float
    tolerance: float = 0.0


def _drawn(shapes: dict[str, tuple[int, ...]]) -> tuple[list[TensorVariable], list[np.ndarray]]:
    """Return float32 variables of given names and shapes, and normal numbers for them."""
    rng = np.random.default_rng(0)
    variables = [pt.tensor(name, shape=shape, dtype="float32") for name, shape in shapes.items()]
    return variables, [rng.normal(size=shape).astype("float32") for shape in shapes.values()]


def number_beside_short_axes() -> Rule:
    """Return a step of gradient descent for filters of 1 by 1."""
    shape = (256, 256, 1, 1)
    w, g = (pt.tensor(name, shape=shape, dtype="float32") for name in "wg")
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[256, 256, 1, 1] w, float[256, 256, 1, 1] g) => (float[256, 256, 1, 1] y)
        <float rate = {0.125}> { step = Mul(rate, g)  y = Sub(w, step) }
    """
    values = [np.random.default_rng(0).normal(size=shape).astype("float32") for _ in range(2)]
    return Rule(
        "descent step of filters (256, 256, 1, 1)",
        [w, g],
        w - np.float32(0.125) * g,
        by_hand,
        values,
        0.3,
    )


def filter_gradient() -> Rule:
    """Return the gradient of filters (256, 256, 3, 3) for 8 images of 4 by 4."""
    shapes = {"x": (8, 256, 4, 4), "d": (8, 256, 4, 4)}
    (x, d), values = _drawn(shapes)
    w = pt.tensor("w", shape=(256, 256, 3, 3), dtype="float32")
    y = nn.conv2d(x, w, (1, 1), filter_flip=False)
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[8, 256, 4, 4] x, float[8, 256, 4, 4] d) => (float[256, 256, 3, 3] y)
        <int64[8] widths = {0, 0, 1, 1, 0, 0, 1, 1}, int64[1] zero = {0}, int64[1] one = {1},
         int64[1] two = {2}, int64[1] three = {3}, int64[1] four = {4}, int64[1] five = {5},
         int64[1] six = {6}, int64[3] windows = {8, 2304, 16}, int64[3] rows = {8, 256, 16},
         int64[4] apart = {256, 3, 3, 256}> {
           padded = Pad(x, widths)
           a = Slice(padded, zero, four, two)
           b = Slice(padded, one, five, two)
           c = Slice(padded, two, six, two)
           abc = Concat <axis = 2> (a, b, c)
           e = Slice(abc, zero, four, three)
           f = Slice(abc, one, five, three)
           g = Slice(abc, two, six, three)
           efg = Concat <axis = 2> (e, f, g)
           matrices = Reshape(efg, windows)
           gradients = Reshape(d, rows)
           columns = Transpose <perm = [0, 2, 1]> (gradients)
           products = MatMul(matrices, columns)
           sum = ReduceSum <keepdims = 0> (products, zero)
           filters = Reshape(sum, apart)
           y = Transpose <perm = [3, 0, 2, 1]> (filters)
        }
    """
    gradient = pt.grad(None, w, known_grads={y: d})
    return Rule("gradient of filters", [x, d], gradient, by_hand, values, 0.5, 1e-3)


def filter_gradient_of_short_images() -> Rule:
    """Return the gradient of filters (64, 64, 3, 3) for 2 images of 2 by 2."""
    shapes = {"x": (2, 64, 2, 2), "d": (2, 64, 2, 2)}
    (x, d), values = _drawn(shapes)
    w = pt.tensor("w", shape=(64, 64, 3, 3), dtype="float32")
    y = nn.conv2d(x, w, (1, 1), filter_flip=False)
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[2, 64, 2, 2] x, float[2, 64, 2, 2] d) => (float[64, 64, 3, 3] y)
        <int64[8] widths = {0, 0, 1, 1, 0, 0, 1, 1}, int64[1] zero = {0}, int64[1] one = {1},
         int64[1] two = {2}, int64[1] three = {3}, int64[1] four = {4},
         int64[2] windows = {576, 8}, int64[2] rows = {64, 8}, int64[4] filters = {64, 64, 3, 3}> {
           channels = Transpose <perm = [1, 0, 2, 3]> (x)
           padded = Pad(channels, widths)
           a = Slice(padded, zero, two, three)
           b = Slice(padded, one, three, three)
           c = Slice(padded, two, four, three)
           abc = Concat <axis = 1> (a, b, c)
           e = Slice(abc, zero, two, two)
           f = Slice(abc, one, three, two)
           g = Slice(abc, two, four, two)
           efg = Concat <axis = 1> (e, f, g)
           matrix = Reshape(efg, windows)
           outputs = Transpose <perm = [1, 0, 2, 3]> (d)
           gradients = Reshape(outputs, rows)
           products = Gemm <transB = 1> (gradients, matrix)
           y = Reshape(products, filters)
        }
    """
    gradient = pt.grad(None, w, known_grads={y: d})
    return Rule("gradient of filters, 2 x 2", [x, d], gradient, by_hand, values, 0.7, 1e-3)


def filter_gradient_by_channel() -> Rule:
    """Return the gradient of filters (128, 1, 3, 3) in 128 groups for 8 images of 4 by 4."""
    shapes = {"x": (8, 128, 4, 4), "d": (8, 128, 4, 4)}
    (x, d), values = _drawn(shapes)
    w = pt.tensor("w", shape=(128, 1, 3, 3), dtype="float32")
    y = nn.conv2d(x, w, (1, 1), filter_flip=False, num_groups=128)
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[8, 128, 4, 4] x, float[8, 128, 4, 4] d) => (float[128, 1, 3, 3] y)
        <int64[8] widths = {0, 0, 1, 1, 0, 0, 1, 1}, int64[1] zero = {0}, int64[1] one = {1},
         int64[1] two = {2}, int64[1] three = {3}, int64[1] four = {4}, int64[1] five = {5},
         int64[1] six = {6}, int64[4] windows = {8, 128, 9, 16}, int64[4] columns = {8, 128, 16, 1},
         int64[4] apart = {128, 1, 3, 3}> {
           padded = Pad(x, widths)
           a = Slice(padded, zero, four, two)
           b = Slice(padded, one, five, two)
           c = Slice(padded, two, six, two)
           abc = Concat <axis = 2> (a, b, c)
           e = Slice(abc, zero, four, three)
           f = Slice(abc, one, five, three)
           g = Slice(abc, two, six, three)
           efg = Concat <axis = 2> (e, f, g)
           matrices = Reshape(efg, windows)
           gradients = Reshape(d, columns)
           products = MatMul(matrices, gradients)
           sum = ReduceSum <keepdims = 0> (products, zero)
           filters = Reshape(sum, apart)
           y = Transpose <perm = [0, 1, 3, 2]> (filters)
        }
    """
    gradient = pt.grad(None, w, known_grads={y: d})
    return Rule("gradient of filters by channel", [x, d], gradient, by_hand, values, 0.6, 1e-3)


def rms_norm() -> Rule:
    """Return an RMS norm of 64 rows of 2048."""
    x = pt.tensor("x", shape=(64, 2048), dtype="float32")
    gamma = pt.tensor("gamma", shape=(2048,), dtype="float32")
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[64, 2048] x, float[2048] gamma) => (float[64, 2048] y)
        <int64[1] last = {-1}, float epsilon = {1e-5}> {
           squares = Mul(x, x)
           square = ReduceMean <keepdims = 1> (squares, last)
           sum = Add(square, epsilon)
           root = Sqrt(sum)
           quotient = Div(x, root)
           y = Mul(quotient, gamma)
        }
    """
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(64, 2048)).astype("float32"), np.ones(2048, "float32")]
    result = nn.rms_norm(x, gamma, epsilon=1e-5)
    return Rule("RMS norm", [x, gamma], result, by_hand, values, 0.7, 1e-5)


def batch_norm_gradient() -> Rule:
    """Return the gradient of batch norm in training for 8 images of 64 channels."""
    shape = (8, 64, 16, 16)
    x, d = (pt.tensor(name, shape=shape, dtype="float32") for name in "xd")
    gamma = pt.tensor("gamma", shape=(64,), dtype="float32")
    zeros, ones = np.zeros(64, "float32"), np.ones(64, "float32")
    y = nn.batch_norm_train(x, gamma, zeros, zeros, ones)[0]
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[8, 64, 16, 16] x, float[8, 64, 16, 16] d, float[64] gamma)
            => (float[8, 64, 16, 16] y)
        <int64[3] others = {0, 2, 3}, int64[3] apart = {0, 2, 3}, float epsilon = {1e-5},
         float share = {0.00048828125}, float less = {-0.00048828125}, float minus = {-1}> {
           total = ReduceSum <keepdims = 0> (x, others)
           mean = Mul(total, share)
           means = Unsqueeze(mean, apart)
           centred = Sub(x, means)
           squares = Mul(centred, centred)
           square = ReduceSum <keepdims = 0> (squares, others)
           var = Mul(square, share)
           sum = ReduceSum <keepdims = 0> (d, others)
           moved = Add(var, epsilon)
           root = Sqrt(moved)
           along = Mul(d, centred)
           product = ReduceSum <keepdims = 0> (along, others)
           slope = Div(product, root)
           roots = Unsqueeze(root, apart)
           both = Mul(roots, roots)
           gammas = Unsqueeze(gamma, apart)
           slopes = Unsqueeze(slope, apart)
           a = Mul(less, slopes)
           b = Mul(a, gammas)
           c = Mul(b, centred)
           through_var = Div(c, both)
           rest = ReduceSum <keepdims = 1> (centred, others)
           e = Mul(share, slopes)
           f = Mul(e, gammas)
           g = Mul(f, rest)
           h = Div(g, both)
           sums = Unsqueeze(sum, apart)
           i = Mul(minus, sums)
           j = Mul(i, gammas)
           k = Div(j, roots)
           l = Add(k, h)
           through_mean = Mul(share, l)
           m = Mul(d, gammas)
           n = Div(m, roots)
           o = Add(n, through_mean)
           y = Add(o, through_var)
        }
    """
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype("float32") for _ in "xd"]
    gradient = pt.grad(None, x, known_grads={y: d})
    return Rule(
        "gradient of batch norm", [x, d, gamma], gradient, by_hand, [*values, ones], 0.8, 1e-4
    )


def silu_gradient() -> Rule:
    """Return the sum of SiLU and its gradient for 8 images of 64 channels."""
    shape = (8, 64, 16, 16)
    x, d = (pt.tensor(name, shape=shape, dtype="float32") for name in "xd")
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[8, 64, 16, 16] x, float[8, 64, 16, 16] d) => (float[8, 64, 16, 16] y)
        <float one = {1}> {
           s = Sigmoid(x)
           first = Mul(d, s)
           along = Mul(d, x)
           rest = Sub(one, s)
           slope = Mul(s, rest)
           second = Mul(along, slope)
           gradient = Add(first, second)
           silu = Mul(x, s)
           y = Add(silu, gradient)
        }
    """
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype("float32") for _ in "xd"]
    y = nn.silu(x)
    gradient = pt.grad(None, x, known_grads={y: d})
    return Rule("SiLU and its gradient", [x, d], y + gradient, by_hand, values, 0.95, 1e-5)


def upsampling_gradient() -> Rule:
    """Return the gradient of doubling the sides of 2 images of 128 channels."""
    x = pt.tensor("x", shape=(2, 128, 4, 4), dtype="float32")
    d = pt.tensor("d", shape=(2, 128, 8, 8), dtype="float32")
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[2, 128, 8, 8] d) => (float[2, 128, 4, 4] y)
        <int64[5] rows = {2, 128, 4, 2, 8}, int64[5] columns = {2, 128, 4, 4, 2},
         int64[1] three = {3}, int64[1] last = {4}> {
           by_row = Reshape(d, rows)
           halved = ReduceSum <keepdims = 0> (by_row, three)
           by_column = Reshape(halved, columns)
           y = ReduceSum <keepdims = 0> (by_column, last)
        }
    """
    value = np.random.default_rng(0).normal(size=d.type.shape).astype("float32")
    y = nn.resize(x, scales=2.0, coordinates="asymmetric", rounding="floor")
    gradient = pt.grad(None, x, known_grads={y: d})
    return Rule("gradient of upsampling", [d], gradient, by_hand, [value], 0.3, 1e-5)


def maximum_of_magnitudes() -> Rule:
    """Return the largest magnitude of each of 256 rows."""
    [x], values = _drawn({"x": (256, 1024)})
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[256, 1024] x) => (float[256] y)
        <int64[1] last = {1}, float nan = {nan}> {
           magnitudes = Abs(x)
           is_nan = IsNaN(magnitudes)
           counts = Cast <to = 2> (is_nan)
           any_count = ReduceMax <keepdims = 0> (counts, last)
           any_nan = Cast <to = 9> (any_count)
           largest = ReduceMax <keepdims = 0> (magnitudes, last)
           y = Where(any_nan, nan, largest)
        }
    """
    return Rule("largest magnitudes", [x], pt.max(abs(x), axis=1), by_hand, values, 0.8)


def gradient_over_a_batch() -> Rule:
    """Return the gradient of weights of 256 x 1024 from 4 texts of 64 tokens."""
    [x, d], values = _drawn({"x": (4, 64, 256), "d": (4, 64, 1024)})
    by_hand = """
        <ir_version: 10, opset_import: ["": 21]>
        main (float[4, 64, 256] x, float[4, 64, 1024] d) => (float[256, 1024] y)
        <int64[1] first = {0}> {
           columns = Transpose <perm = [0, 2, 1]> (x)
           products = MatMul(columns, d)
           y = ReduceSum <keepdims = 0> (products, first)
        }
    """
    y = (x.mT @ d).sum(axis=0)
    return Rule("gradient of weights over a batch", [x, d], y, by_hand, values, 0.85, 1e-4)


RULES: list[Callable[[], Rule]] = [
    number_beside_short_axes,
    filter_gradient,
    filter_gradient_of_short_images,
    filter_gradient_by_channel,
    rms_norm,
    batch_norm_gradient,
    silu_gradient,
    upsampling_gradient,
    maximum_of_magnitudes,
    gradient_over_a_batch,
]


def measure() -> Table:
    """Time both forms of each rule, and compare their results."""
    table = Table(
        "Rules of the conversion",
        ["one thread, µs a call", "exported", "plain form", "ratio"],
        note="The plain form has the operators that the graph is written with.",
    )
    for make in RULES:
        rule = make()
        names = [str(v.name) for v in rule.inputs]
        feed = dict(zip(names, rule.values, strict=True))
        program = export_onnx(rule.inputs, rule.output, verify=False)
        plain = onnx.parser.parse_model(rule.by_hand)
        sessions = [_session(model) for model in (program.proto, plain)]
        results = [session.run(None, feed) for session in sessions]
        for pair in zip(*results, strict=True):
            np.testing.assert_allclose(*pair, rtol=rule.tolerance, atol=rule.tolerance)
        # Without the check of inputs in Python, which takes longer than 160 updates.
        outputs = [[x.name for x in s.get_outputs()] for s in sessions]
        calls = {
            str(i): partial(s._sess.run, outputs[i], feed, None) for i, s in enumerate(sessions)
        }
        ours, theirs = interleaved(calls, rounds=40).values()
        cells = (f"{1e6 * ours:.1f}", f"{1e6 * theirs:.1f}", f"{ours / theirs:.2f}")
        table.rows.append([rule.label, *cells])
        table.claim(f"{rule.label}, exported against plain", ours / theirs, rule.bound)
    return table


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = SessionOptions(threads=1).to_runtime()
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


if __name__ == "__main__":
    measure().show()
