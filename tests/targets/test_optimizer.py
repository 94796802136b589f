"""Graph rewrites of ONNX Runtime: rewrites that change results, and safe forms next to them.

What changes results is in the table of defects (`passes/defects/`), with a guard against it, or
with the reason why no exported graph has it. If a wrong one turns out right, a newer runtime does
better.
"""

from itertools import pairwise
from time import process_time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

from tests.levels import LEVELS, run_at
from tests.targets.conftest import is_repaired, repaired, typed

RNG = np.random.default_rng(0)
ROWS = {"x": RNG.normal(size=(5, 16))}
PRODUCT = {"a": RNG.normal(size=(2, 4, 3)), "b": RNG.normal(size=(2, 3, 5))}
WHOLE = {"x": np.array([1, 3, -7, 2]), "z": np.array([10, -35, 15, 5])}
NORMALIZED = {**ROWS, "s": RNG.normal(size=16), "t": RNG.normal(size=16), "e": np.array(0.1)}
IMAGE = {"x": RNG.normal(size=(1, 2, 6, 6)) - 5}
PADS = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
AXIS = {"axis": np.array([-1])}


def single(arrays):
    return {name: array.astype("float32") for name, array in arrays.items()}


def model_of(lines, feeds, constants, opset=21):
    """Return a model of nodes in ONNX's textual form; the last node makes y."""
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(c)))
        for name, c in constants.items()
    ]
    nodes += [parser.parse_node(line) for line in lines]
    inputs = [typed(name, array) for name, array in feeds.items()]
    return helper.make_model(
        helper.make_graph(nodes, "pattern", inputs, [onnx.ValueInfoProto(name="y")]),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=10,
    )


def next_to_neutral(line, constant):
    """Return a graph that subtracts one from an operator's result for it, or for a zero."""
    start = "Sub(x, x)" if line.startswith(("w = Add", "w = Sub", "w = Sum")) else "Exp(zero)"
    lines = ["zero = Sub(x, x)", f"o = {start}", *line.split("; "), "y = Sub(w, o)"]
    return lines, ROWS, {"c": constant}


def scaled(line, **constants):
    return ["p = MatMul(a, b)", *line.split("; ")], PRODUCT, constants


def normalized(
    square="Pow(d, two)", total="v, c", centred="x, m", quotient="d, r", feeds=NORMALIZED, mean=""
):
    """Return a graph that the runtime takes for a LayerNormalization, rightly or not."""
    mean = mean or "ReduceMean<keepdims = 1>({}, axis)"
    lines = [
        *(f"m = {mean.format('x')}", f"d = Sub({centred})", f"q = {square}"),
        *(f"v = {mean.format('q')}", f"w = Add({total})", "r = Sqrt(w)", f"u = Div({quotient})"),
        *("k = Mul(u, s)", "y = Add(k, t)"),
    ]
    dtype = feeds["x"].dtype
    numbers = {"two": 2.0, "four": 4.0, "c": 0.1}
    return lines, feeds, AXIS | {k: np.array(v, dtype) for k, v in numbers.items()}


def root_mean_square(square):
    lines = [f"q = {square}", "v = ReduceMean<keepdims = 1>(q, axis)", "w = Add(v, c)"]
    feeds = {name: NORMALIZED[name] for name in ("x", "s")}
    return (
        [*lines, "r = Sqrt(w)", "u = Div(x, r)", "y = Mul(u, s)"],
        feeds,
        AXIS
        | {
            "two": 2.0,
            "c": 0.1,
        },
    )


def gelu(root=2**0.5, one=1.0, scale="Div(x, c)"):
    lines = [f"a = {scale}", "b = Erf(a)", "d = Add(b, one)", "e = Mul(x, d)", "y = Mul(e, half)"]
    numbers = {"c": root, "one": one, "half": 0.5}
    return lines, single(ROWS), {k: np.float32(v) for k, v in numbers.items()}


def fast_gelu(factor):
    lines = [
        *("a = Mul(x, f)", "b = Mul(x, a)", "g = Add(b, one)", "h = Mul(x, c)", "i = Mul(h, g)"),
        *("j = Tanh(i)", "k = Add(j, one)", "l = Mul(x, half)", "m = Mul(l, k)", "y = Neg(m)"),
    ]
    numbers = {"f": 0.044715, "one": 1.0, "c": factor, "half": 0.5}
    return lines, single(ROWS), {k: np.float32(v) for k, v in numbers.items()}


def reciprocal_product(one, feeds):
    return ["a = Abs(x)", "q = Div(one, a)", "p = Mul(q, z)", "y = Abs(p)"], feeds, {"one": one}


def padded(line):
    return ["a = Pad(x, pads)", *line.split("; ")], IMAGE, PADS


NEAR_ONE = 1.00000001
WRONG = {
    "tiny term": next_to_neutral("w = Add(o, c)", 1e-300),
    "tiny term on the left": next_to_neutral("w = Add(c, o)", 7e-46),
    "tiny term taken off": next_to_neutral("w = Sub(o, c)", np.array([-1e-60])),
    "factor near one": next_to_neutral("w = Mul(o, c)", NEAR_ONE),
    "factor near one on the left": next_to_neutral("w = Mul(c, o)", 2 - NEAR_ONE),
    "divisor near one": next_to_neutral("w = Div(o, c)", np.array([[NEAR_ONE]])),
    "factor of a product": scaled("y = Mul(p, c)", c=0.1),
    "divisor of a product": scaled("y = Div(p, c)", c=3.0),
    "size that divides a product": scaled(
        "n = Shape<start = 2>(a); f = Cast<to = 11>(n); y = Div(p, f)"
    ),
    "root of a size that divides a product": scaled(
        "n = Shape<end = 1>(b); f = Cast<to = 11>(n); r = Sqrt(f); y = Div(p, r)"
    ),
    "whole quotient that is a factor": reciprocal_product(np.array(1), WHOLE),
    "reciprocal with another axis": reciprocal_product(
        np.ones((1, 1)), {k: v.astype("float64") for k, v in WHOLE.items()}
    ),
    "fourth power": normalized("Pow(d, four)", feeds=single(NORMALIZED)),
    "power of two": normalized("Pow(two, d)", feeds=single(NORMALIZED)),
    "variable variance added": normalized(total="v, e", feeds=single(NORMALIZED)),
    "constant added on the left": normalized(total="c, v", feeds=single(NORMALIZED)),
    "mean less its values": normalized(centred="m, x", feeds=single(NORMALIZED)),
    "deviation below": normalized(quotient="r, d", feeds=single(NORMALIZED)),
    "root mean square": root_mean_square("Pow(x, two)"),
    "nearly the root of two": gelu(root=1.414226),
    "nearly one": gelu(one=1.000009),
    "nearly the root of two over pi": fast_gelu(0.797892),
    "transposed matrix times a vector": (
        ["b = Transpose<perm = [1, 0]>(a)", "y = MatMul(b, v)"],
        {"a": RNG.normal(size=(3, 3)), "v": RNG.normal(size=3)},
        {},
    ),
    "maxima of padded values": padded("y = MaxPool<kernel_shape = [3, 3]>(a)"),
}
# In ONNX Runtime 1.32.
REPAIRED = (
    *("factor of a product", "divisor of a product", "size that divides a product"),
    *("root of a size that divides a product", "variable variance added"),
    *("constant added on the left", "root mean square", "maxima of padded values"),
)
SAFE = {
    "sum": next_to_neutral("w = Sum(o, c)", 1e-300),
    "negative product": next_to_neutral("n = Mul(o, c); w = Neg(n)", -NEAR_ONE),
    "negative quotient": next_to_neutral("n = Div(o, c); w = Neg(n)", -NEAR_ONE),
    "product with minus the absolute value": next_to_neutral(
        "a = Abs(c); n = Neg(a); m = Mul(o, n); z = Sub(c, c); l = Less(c, z); e = Exp(z); "
        "k = Neg(e); s = Where(l, e, k); w = Mul(m, s)",
        NEAR_ONE,
    ),
    "constant less a value": next_to_neutral("w = Sub(c, o)", 1e-300),
    "constant by a value": next_to_neutral("w = Div(c, o)", NEAR_ONE),
    "two elements": next_to_neutral("w = Mul(o, c)", np.full(16, NEAR_ONE)),
    "copy of a product": scaled("q = Max(p); y = Mul(q, c)", c=0.1),
    "power of two as a factor": scaled("y = Mul(p, c)", c=0.25),
    "copy of an operand": (
        ["s = Mul(a, c)", "m = Max(s)", "y = MatMul(m, b)"],
        PRODUCT,
        {"c": 0.1},
    ),
    "gemm": (
        ["p = Gemm(a, b)", "y = Mul(p, c)"],
        {name: array[0] for name, array in PRODUCT.items()},
        {"c": 0.1},
    ),
    "reciprocal near one": reciprocal_product(
        np.array(NEAR_ONE), {k: v.astype("float64") for k, v in WHOLE.items()}
    ),
    "product with itself": normalized("Mul(d, d)"),
    "sum over a number": normalized(mean="ReduceSum<keepdims = 1>({}, axis)"),
    "mean of products": root_mean_square("Mul(x, x)"),
    "copy before maxima": padded("b = Max(a); y = MaxPool<kernel_shape = [3, 3]>(b)"),
    "maxima of padded values that are used twice": padded(
        "m = MaxPool<kernel_shape = [3, 3], strides = [6, 6]>(a); n = ReduceSum(a); y = Add(m, n)"
    ),
    "erf of a product": gelu(1 / 1.41422, 1.0, "Mul(x, c)"),
    "casts that lose digits": (
        ["a = Abs(x)", "b = Cast<to = 1>(a)", "c = Cast<to = 11>(b)", "y = Neg(c)"],
        ROWS,
        {},
    ),
    "casts that lose bits": (
        ["a = Abs(x)", "b = Cast<to = 3>(a)", "c = Cast<to = 7>(b)", "y = Neg(c)"],
        {"x": 1000 * WHOLE["x"]},
        {},
    ),
    "relu in half a range": (
        ["r = Relu(x)", "y = Clip(r, low, high)"],
        single(ROWS),
        {"low": np.float32(-0.5), "high": np.float32(0.5)},
    ),
    "whole sums and products": (
        ["a = Abs(x)", "b = Add(a, zero)", "c = Mul(b, one)", "d = Div(c, one)", "y = Neg(d)"],
        WHOLE,
        {"zero": np.array(0), "one": np.array(1)},
    ),
    "reshape to sizes": (
        [
            "n = Shape<end = 1>(x)",
            "s = Concat<axis = 0>(n, last)",
            "y = Reshape<allowzero = 1>(x, s)",
        ],
        {"x": np.zeros((2, 0))},
        {"last": np.array([0])},
    ),
}


def differs(pattern, level):
    """Return whether a level of optimization makes more than a rounding of difference."""
    lines, feeds, constants = pattern
    model = model_of(lines, feeds, constants)
    [right], [found] = (run_at(name, model, feeds) for name in ("DISABLE_ALL", level))
    if right.shape != found.shape or right.dtype.kind != "f":
        return not np.array_equal(right, found)
    unit = np.finfo(right.dtype).eps * np.max(np.abs(right), initial=0)
    return bool(np.max(np.abs(right - found), initial=0) > 8 * unit)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=repaired("1.32") if n in REPAIRED else ()) for n in WRONG]
)
def test_rewrites_change_results(name):
    assert differs(WRONG[name], "ENABLE_ALL")


@pytest.mark.parametrize("name", SAFE)
def test_other_forms_keep_their_results(name):
    assert not any(differs(SAFE[name], level) for level in LEVELS)


def session(lines, constants, inputs, dtype="float64"):
    """Return a session of nodes in ONNX's textual form, with inputs of sizes 1."""
    feeds = {name: np.ones((1, 1), dtype) for name in inputs}
    proto = model_of(lines, feeds, constants)
    return onnxruntime.InferenceSession(proto.SerializeToString()), feeds


@pytest.mark.parametrize("factor", [np.inf, pytest.param(np.nan, marks=repaired("1.32"))])
def test_constant_factors_of_products_must_be_finite(factor):
    with pytest.raises(Exception, match="finite"):
        session(["p = MatMul(a, b)", "y = Mul(p, c)"], {"c": factor}, "ab")


def test_relus_before_clips_in_float64_are_refused():
    lines, bounds = ["r = Relu(x)", "y = Clip(r, low, high)"], {"low": 0.5, "high": 2.0}
    with pytest.raises(Exception, match="Unexpected data type for Clip"):
        session(lines, bounds, "x")
    single_bounds = {name: np.float32(bound) for name, bound in bounds.items()}
    loaded, feeds = session(lines, single_bounds, "x", "float32")
    assert loaded.run(None, feeds)[0] == 1


@pytest.mark.slow
@pytest.mark.skipif(
    is_repaired("1.32"), reason="in ONNX Runtime 1.32 it takes half of the time of 48,000 nodes"
)
def test_sharing_constants_takes_most_of_the_time():
    n = 16_000
    constants = {f"c{i}": 0.5 for i in range(n)}
    names = ["x", *(f"v{i}" for i in range(1, n)), "y"]
    steps = zip(pairwise(names), constants, strict=True)
    nodes = [helper.make_node("Mul", [a, c], [b]) for (a, b), c in steps]
    proto = model_of([], {"x": np.ones(3)}, constants)
    proto.graph.node.extend(nodes)
    model = proto.SerializeToString()
    seconds = [process_time()]
    for disabled in ([], ["ConstantSharing"]):
        onnxruntime.InferenceSession(model, disabled_optimizers=disabled)
        seconds.append(process_time())
    with_sharing, without = np.diff(seconds)
    assert with_sharing > 2 * without
