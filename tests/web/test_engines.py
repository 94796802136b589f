"""The two modules of WebAssembly: their kernels, their sizes, and which of them a model has."""

import gzip
import subprocess

import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import nn
from pytensor_onnx.web.tape_file import CORE, MODULE, wasm_module, write_tape
from tests.web.tapes import assert_as_native, in_node, needs_tapes, saved

FLOATS = ("float64", "float32")
RNG = np.random.default_rng(0)
UNARY = {
    *("neg", "abs", "sign", "reciprocal", "sqrt", "exp", "log", "sin", "cos", "tan", "arcsin"),
    *("arccos", "arctan", "sinh", "cosh", "tanh", "floor", "ceil", "round", "isnan", "isinf"),
    *("sigmoid", "softplus", "log1p", "expm1"),
}
OF_INTEGERS = ("neg", "abs", "sign")
BINARY = (
    "add",
    "sub",
    "mul",
    "true_div",
    "maximum",
    "minimum",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "pow",
)
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "int_div", "mod")
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 700.0, -700.0, np.inf, -np.inf, np.nan]


@pytest.fixture(autouse=True)
def node():
    needs_tapes()


def module_of(folder):
    """Return the name of the module that stands beside a tape."""
    content = gzip.decompress((folder / f"{MODULE}.gz").read_bytes())
    return next(name for name in (CORE, MODULE) if wasm_module(name).read_bytes() == content)


def numbers(dtype, size):
    if dtype in FLOATS:
        values = np.resize(np.concatenate([EDGES, RNG.normal(scale=5, size=40)]), size)
        return values.astype(dtype)
    info = np.iinfo(dtype)
    drawn = RNG.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
    return np.where(RNG.random(size) < 0.5, drawn, drawn % 7 + 1).astype(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32", "uint64", "uint32", "uint8"])
def test_elementwise_kernels_have_the_results_of_native_ones(tmp_path, dtype):
    x, y = (pt.vector(name, dtype=dtype) for name in "xy")
    number, condition = pt.scalar("number", dtype=dtype), pt.vector("condition", dtype="bool")
    is_float, is_signed = dtype in FLOATS, dtype.startswith("int")
    unary = UNARY if is_float else OF_INTEGERS if is_signed else ()
    binary = BINARY if is_float else (*BINARY, *BITS)
    outputs = {name: getattr(pt, name)(x) for name in unary}
    for name in binary:
        op = getattr(pt, name)
        outputs |= {name: op(x, y), f"{name}_left": op(number, y), f"{name}_right": op(x, number)}
    # Integers of numbers out of range depend on the processor.
    within = pt.switch(pt.isnan(x), 0, pt.clip(x, 0, 100)) if is_float else x
    outputs |= {f"to_{to}": pt.cast(within, to) for to in ("float32", "int64", "uint8", "bool")}
    pairs = {"arrays": (x, y), "left": (number, y), "right": (x, number)}
    outputs |= {f"where_{k}": pt.switch(condition, a, b) for k, (a, b) in pairs.items()}
    path = saved(tmp_path, [x, y, number, condition], outputs, precision="float64")
    calls = []
    for size in (1, 2, 5, 40, 700):
        given = {"x": numbers(dtype, size), "y": numbers(dtype, size)[::-1].copy()}
        # Runs of equal conditions, and single ones.
        runs = np.repeat(RNG.random(size) < 0.5, 9)[:size]
        mixed = np.where(np.arange(size) % 50 < 25, runs, RNG.random(size) < 0.5)
        calls.append(given | {"number": np.array(numbers(dtype, 3)[2]), "condition": mixed})
    assert_as_native(path, *calls)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_of_squares_and_magnitudes_have_the_bits_of_native_ones(tmp_path, axis):
    x = pt.matrix("x")
    outputs = {
        "squares": (x**2).sum(axis),
        "norm": pt.sqrt((x**2).sum(axis)),
        "magnitudes": abs(x).sum(axis),
        "product": x.prod(axis),
        "total": x.sum(axis),
        "largest": x.max(axis),
        "smallest": x.argmin(axis),
    }
    path = saved(tmp_path, [x], outputs, precision="float64")
    sizes = [(3, 5), (1, 300), (300, 3), (40, 40), (2, 2)]
    calls = [{"x": RNG.normal(size=size)} for size in sizes]
    assert_as_native(path, *calls)


def test_layers_of_steps_and_pads_by_elements_are_covered(tmp_path):
    x = pt.tensor3("x", dtype="float32", shape=(None, 7, 5))
    parts = [RNG.normal(size=size).astype("float32") for size in ((5, 24), (6, 24), (24,), (24,))]
    y, h, _ = nn.lstm(x, *parts)
    padded = pt.pad(x, [(2, 1), (0, 3), (1, 2)], mode="reflect")
    path = saved(tmp_path, [x], {"y": y, "h": h, "padded": padded})
    calls = [{"x": RNG.normal(size=(n, 7, 5)).astype("float32")} for n in (3, 4)]
    assert_as_native(path, *calls)


def test_a_convolutional_network_has_the_core(tmp_path):
    x = pt.tensor4("x", dtype="float32", shape=(None, 1, 8, 8))
    filters, weights = (RNG.normal(size=n).astype("float32") for n in ((4, 1, 3, 3), (5, 16)))
    h = nn.avg_pool(nn.max_pool(nn.relu(nn.conv2d(x, filters, padding=1)), 2), 2)
    path = saved(tmp_path, [x], {"y": nn.linear(h.reshape((-1, 16)), weights)})
    calls = [{"x": RNG.normal(size=(n, 1, 8, 8)).astype("float32")} for n in (1, 3)]
    assert_as_native(path, *calls)
    assert module_of(tmp_path) == CORE


def test_a_model_has_the_smallest_module_with_its_kernels(tmp_path):
    x, m = pt.vector("x"), pt.matrix("m")
    common = pt.linalg.cholesky(m)[0] + pt.exp(x).sum() + pt.sort(x)[0]
    cases = ((common, CORE), (m[0] + pt.sin(x), MODULE), (m[0] + pt.gammaln(x), MODULE))
    for y, name in cases:
        write_tape(saved(tmp_path, [x, m], {"y": y}, precision="float64"), tmp_path)
        assert module_of(tmp_path) == name
    assert wasm_module(CORE).stat().st_size < 170_000


def test_a_module_without_the_kernels_of_a_model_is_refused(tmp_path):
    x = pt.vector("x")
    write_tape(saved(tmp_path, [x], {"y": pt.sin(x)}), tmp_path)
    core = gzip.compress(wasm_module(CORE).read_bytes())
    (tmp_path / f"{MODULE}.gz").write_bytes(core)
    with pytest.raises(subprocess.CalledProcessError) as raised:
        in_node(tmp_path, "")
    assert "tape.wasm.gz has no kernels for model.tape: write both anew" in raised.value.stderr


def test_a_run_that_could_not_begin_is_ended(tmp_path):
    n, x = pt.lscalar("n"), pt.scalar("x")
    write_tape(saved(tmp_path, [n, x], {"y": pt.alloc(x, n)}, precision="float64"), tmp_path)
    code = """
    const x = { data: Float64Array.of(2), dims: [] };
    const feeds = (n) => ({ n: { data: BigInt64Array.of(n), dims: [] }, x });
    const message = await model.call(feeds(2n ** 28n)).catch((error) => error.message);
    model.exports.end();
    model.exports.end();
    const { y } = await model.call(feeds(3n));
    console.log(JSON.stringify([message, [...y.data]]));
    """
    assert in_node(tmp_path, code) == ["out of memory", [2, 2, 2]]
