"""Models as tapes in Node, compared with the native library."""

import gzip
import hashlib
import json
import re
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import onnx
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special

from pytensor_onnx import nn
from pytensor_onnx.errors import MissingEngineError, PyTensorONNXError, UncoveredError
from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.pymc import export_sampler
from pytensor_onnx.web import tape_file
from pytensor_onnx.web.site import build_site
from pytensor_onnx.web.tape_file import wasm_module, write_tape
from tests.web.pages import (
    await_results,
    downloaded,
    keep_screenshot,
    needs_chromium,
    opened_page,
    results,
)
from tests.web.tapes import assert_as_native, in_node, natively, needs_tapes, run_in_node, saved

RNG = np.random.default_rng(0)
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "web.md"


@pytest.fixture
def node():
    needs_tapes()


@pytest.mark.usefixtures("node")
def test_a_density_and_its_gradient(tmp_path):
    point, y = pt.vector("point", shape=(3,)), np.array([0.5, -1.0, 2.0, 8.0])
    mu, sigma, degrees = point[0], pt.exp(point[1]), pt.softplus(point[2])
    terms = pt.gammaln(degrees) - pt.log(sigma) - pt.log1p(((y - mu) / sigma) ** 2 / degrees)
    density = terms.sum()
    outputs = {"density": density, "gradient": pt.grad(density, point)}
    path = saved(tmp_path, [point], outputs, precision="float64")
    assert_as_native(path, *({"point": RNG.normal(size=3)} for _ in range(5)))


@pytest.mark.usefixtures("node")
def test_a_network_for_batches_of_several_sizes(tmp_path):
    x = pt.matrix("x", shape=(None, 40), dtype="float32")
    weights = [RNG.normal(size=shape).astype("float32") for shape in ((30, 40), (30,), (4, 30))]
    h = pt.tanh(nn.linear(x, weights[0], weights[1]))
    y = nn.softmax(h @ weights[2].T, axis=-1)
    path = saved(tmp_path, [x], {"y": y, "best": y.max(axis=1)})
    calls = [RNG.normal(size=(n, 40)).astype("float32") for n in (1, 7, 300, 0)]
    assert_as_native(path, *({"x": x} for x in calls))


@pytest.mark.usefixtures("node")
def test_activations_that_are_operators_of_onnx(tmp_path):
    x = pt.vector("x", dtype="float32")
    outputs = {"sigmoid": nn.sigmoid(x), "softplus": pt.softplus(x), "erf": pt.erf(x)}
    path = saved(tmp_path, [x], outputs)
    operators = {node.op_type for node in onnx.load(path).graph.node}
    assert operators == {"Sigmoid", "Softplus", "Erf"}
    values = np.linspace(-30, 30, 600, dtype="float32")
    assert_as_native(path, {"x": values})
    [found] = run_in_node(path, tmp_path, {"x": values})
    exact = values.astype("float64")
    np.testing.assert_allclose(found["sigmoid"], special.expit(exact), rtol=3e-7)
    np.testing.assert_allclose(found["softplus"], np.logaddexp(0, exact), rtol=3e-7)
    np.testing.assert_allclose(found["erf"], special.erf(exact), rtol=3e-7)


@pytest.mark.usefixtures("node")
def test_layers_that_are_several_instructions(tmp_path):
    x = pt.matrix("x", shape=(None, 40), dtype="float32")
    scale, shift = (pt.constant(RNG.normal(size=40).astype("float32")) for _ in range(2))
    outputs = {
        "elu": nn.elu(x, alpha=0.7),
        "leaky": nn.leaky_relu(x, 0.2),
        "gelu": nn.gelu(x),
        "tanh": nn.gelu(x, approximate="tanh"),
        "norm": nn.layer_norm(x, scale, shift),
    }
    path = saved(tmp_path, [x], outputs)
    assert {n.op_type for n in onnx.load(path).graph.node} >= {"LeakyRelu", "LayerNormalization"}
    values = RNG.normal(scale=3, size=(5, 40)).astype("float32")
    [found] = run_in_node(path, tmp_path, {"x": values})
    exact = values.astype("float64")
    centred = exact - exact.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    cubic = np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)
    expected = {
        "elu": np.where(exact < 0, 0.7 * np.expm1(exact), exact),
        "leaky": np.where(exact < 0, 0.2 * exact, exact),
        "gelu": exact * special.ndtr(exact),
        "tanh": exact * 0.5 * (1 + np.tanh(cubic)),
        "norm": normal * scale.data + shift.data,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.usefixtures("node")
def test_a_training_step_with_its_state(tmp_path):
    x, y = pt.matrix("x", shape=(None, 3)), pt.vector("y")
    w = pytensor.shared(RNG.normal(size=3), name="w")
    loss = ((x @ w - y) ** 2).mean()
    updates = {w: w - 0.1 * pt.grad(loss, w)}
    options = {"precision": "float64", "state_path": tmp_path / "state.npz"}
    path = saved(tmp_path, [x, y], {"loss": loss}, updates=updates, **options)
    feeds = {"x": RNG.normal(size=(6, 3)), "y": RNG.normal(size=6), "w": w.get_value()}
    assert_as_native(path, feeds)
    write_tape(path, tmp_path)
    assert b'"state":{"w":' in gzip.decompress((tmp_path / "model.tape").read_bytes())


@pytest.mark.usefixtures("node")
def test_integers_loops_and_sizes_that_inputs_decide(tmp_path):
    i, n, x0 = pt.imatrix("i"), pt.lscalar("n"), pt.scalar("x0")
    steps = pytensor.scan(
        lambda t, x: x / 2 + t, [pt.arange(n, dtype="float64")], [x0], return_updates=False
    )
    outputs = {
        "sums": i.sum(axis=0, dtype="int32"),
        "rest": i % 4,
        "quotient": i // 3,
        "above": (i > 2).any(axis=1),
        "steps": steps,
        "bits": pt.bitwise_xor(pt.cast(i, "uint64"), np.uint64(77)),
    }
    path = saved(tmp_path, [i, n, x0], outputs, precision="float64")
    values = np.arange(-4, 8, dtype="int32").reshape(3, 4)
    assert_as_native(
        path, *({"i": values, "n": np.array(n), "x0": np.array(0.3)} for n in (5, 2, 5))
    )


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_elementary_functions_have_the_bits_of_native_ones(tmp_path, dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    outputs = {
        name: getattr(pt, name)(x) for name in ("exp", "log", "log1p", "expm1", "sin", "cos")
    }
    outputs |= {"tan": pt.tan(x), "sigmoid": pt.sigmoid(x), "softplus": pt.softplus(x)}
    outputs |= {"pow": x**y, "root": x**-1.5, "base": pt.exp(x * 0 + 1) ** y}
    path = saved(tmp_path, [x, y], outputs, precision=dtype)
    values = np.concatenate([RNG.normal(scale=8, size=200), 10.0 ** RNG.uniform(-30, 30, 201)])
    exponents = np.tile([0.5, 2.3, -1.0, -0.7, np.nan, 3.0, 0.0], 58)[: len(values)]
    feeds = {"x": values.astype(dtype), "y": exponents.astype(dtype)}
    [found] = run_in_node(path, tmp_path, feeds)
    session = natively(path)
    for output, expected in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        np.testing.assert_array_equal(found[output.name], expected, err_msg=output.name)


@pytest.mark.slow
@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("metric", ["diagonal", "low_rank"])
def test_chains_go_on_from_a_state_as_natively(metric, tmp_path):
    path = tmp_path / "model.onnx"
    with pm.Model() as model:
        pm.Normal("effect", pm.Normal("mu", shape=3), observed=[1.0, 2.0, 4.0])
    export_sampler(model, path, state=True, metric=metric, verify=False)
    width = 12 if metric == "diagonal" else 24
    seed, warmup, draws = np.array([1, 2]), np.array(30), np.array(9)
    feed = {"seed": seed, "warmup": warmup, "draws": draws, "state": np.zeros((0, width))}
    first = natively(path).run(["next_state"], feed)[0]
    assert_as_native(path, feed, {**feed, "state": first}, {**feed, "draws": np.array(4)})


@pytest.mark.usefixtures("node")
def test_the_draws_of_a_sampler_have_the_bits_of_native_draws(tmp_path):
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        pm.Normal("y", pm.Normal("mean"), scale, observed=np.array([0.5, -1.0, 2.0]))
    path = tmp_path / "model.onnx"
    export_sampler(model, path, verify=False)
    calls = [
        {"seed": np.arange(chains), "warmup": np.array(warmup), "draws": np.array(draws)}
        for chains, warmup, draws in ((2, 60, 40), (1, 30, 9), (2, 60, 40))
    ]
    session = natively(path)
    assert session.get_providers()[0] == "CPUExecutionProvider"
    for found, feeds in zip(run_in_node(path, tmp_path, *calls), calls, strict=True):
        for x, expected in zip(session.get_outputs(), session.run(None, feeds), strict=True):
            np.testing.assert_array_equal(found[x.name], expected, err_msg=x.name)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("nested", [False, True])
def test_a_long_run_is_watched_and_stopped(tmp_path, nested):
    n, x = pt.lscalar("n"), pt.vector("x", shape=(3,))

    def step(y):
        if not nested:
            return pt.cos(y) + x
        [last] = iterate(lambda z: [pt.cos(z)], [y], n_steps=pt.constant(20))
        return last + x

    y = pytensor.scan(step, outputs_info=[x], n_steps=n, return_updates=False)
    outputs = {"y": y, "reversed": y[::-1] * 2, "i": pt.arange(n)}
    write_tape(saved(tmp_path, [n, x], outputs, precision="float64"), tmp_path)
    found = in_node(
        tmp_path,
        """
    const x = { data: Float64Array.of(1, 2, 3), dims: [3] };
    const feeds = (n) => ({ n: { data: BigInt64Array.of(n), dims: [] }, x });
    const whole = (await model.run(feeds(40n))).y.data;
    const parts = [];
    // A clock on which each part takes long.
    let time = 0;
    performance.now = () => (time += 200);
    const watch = ({ done, total, outputs }) => {
      const { y, reversed } = outputs();
      const isRight = (i) => (i < 3 * done ? y.data[i] === whole[i] : Number.isNaN(y.data[i]));
      const places = [0, 3 * done - 1, 3 * done, y.data.length - 1];
      parts.push([done < total, places.every(isRight), reversed.data.at(-1) === 2 * whole[2]]);
      return parts.length < 3;
    };
    const runs = [model.run(feeds(40n), watch), model.run(feeds(9n))];
    const [stopped, after] = await Promise.all(runs);
    const again = await model.run(feeds(40n), () => true);
    console.log(JSON.stringify([
      parts, Number.isNaN(stopped.y.data.at(-1)), after.y.data.every((x, i) => x === whole[i]),
      again.y.data.every((x, i) => x === whole[i]), Number(again.i.data.at(-1)),
    ]));
    """,
    )
    assert found == [[[True, True, True]] * 3, True, True, True, 39]


@pytest.mark.usefixtures("node")
def test_a_run_goes_on_where_its_results_so_far_are_no_operands(tmp_path):
    n, x = pt.lscalar("n"), pt.vector("x", shape=(3,))
    counted = pytensor.scan(
        lambda y: y + 1, outputs_info=[pt.zeros(())], n_steps=n, return_updates=False
    )
    # Missing numbers are NaN, which is no index.
    row = x[counted[-1].astype("int64") - 38]
    write_tape(saved(tmp_path, [n, x], {"row": row}, precision="float64"), tmp_path)
    found = in_node(
        tmp_path,
        """
    const x = { data: Float64Array.of(1, 2, 3), dims: [3] };
    const feeds = { n: { data: BigInt64Array.of(40n), dims: [] }, x };
    let time = 0;
    performance.now = () => (time += 200);
    const messages = [];
    const watch = ({ outputs }) => {
      try { outputs(); } catch ({ message }) { messages.push(message); }
    };
    const { row } = await model.run(feeds, watch);
    const stopped = await model.run(feeds, () => false).catch(({ message }) => message);
    const after = await model.run(feeds);
    console.log(JSON.stringify([messages.length > 0, row.data[0], stopped, after.row.data[0]]));
    """,
    )
    assert found == [True, 3, "the model cannot run: it was stopped before it had results", 3]


@pytest.mark.usefixtures("node")
def test_bad_inputs_are_named_and_the_next_run_is_right(tmp_path):
    x, i = pt.matrix("x", shape=(None, 2), dtype="float32"), pt.lscalar("i")
    path = saved(tmp_path, [x, i], {"row": x[i] * 2})
    good = {"x": np.ones((2, 2), "float32"), "i": np.array(1)}
    bad = [
        {"i": good["i"]},
        good | {"z": good["i"]},
        good | {"x": np.ones((2, 2))},
        good | {"x": np.ones((2, 3), "float32")},
        good | {"x": np.ones(2, "float32")},
        good | {"i": np.array(5)},
    ]
    *messages, result = run_in_node(path, tmp_path, *bad, good)
    assert messages == [
        "input x is missing",
        "the model has no input z; it has x, i",
        "input x: data of float32 are a Float32Array, not Float64Array",
        "input x: dims are [2,3], and the model has x_dim0 x 2",
        "input x: dims are [2], and the model has x_dim0 x 2",
        "the model cannot run: indices element out of data bounds",
    ]
    np.testing.assert_array_equal(result["row"], [2, 2])


@pytest.mark.usefixtures("node")
def test_memory_is_kept_small_by_many_runs_and_freed_after_a_large_one(tmp_path):
    x = pt.vector("x")
    write_tape(saved(tmp_path, [x], {"y": pt.exp(x)[::-1]}, precision="float64"), tmp_path)
    code = f"""
    const {{ load }} = await import("{(tmp_path / "tape.js").as_uri()}");
    const model = await load("{tmp_path / "model.tape"}");
    const run = (n) => model.run({{ x: {{ data: new Float64Array(n), dims: [n] }} }});
    const bytes = () => model.exports?.memory.buffer.byteLength ?? 0;
    for (let i = 0; i < 50; i++) await run(1000 + i);
    const first = bytes();
    for (let i = 0; i < 500; i++) await run(1000 + (i % 50));
    const second = bytes();
    await run(1e7);
    const after = bytes();
    await run(3);
    console.log(JSON.stringify([second - first, after, bytes() < 8e6]));
    """
    command = ["node", "--input-type=module", "-e", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == [0, 0, True]


@pytest.mark.usefixtures("node")
def test_a_tape_of_another_version_is_refused(tmp_path):
    x = pt.vector("x")
    # Larger than the constants within a tape.
    path = saved(tmp_path, [x], {"y": x + 1, "z": x.sum() + np.arange(70.0)}, precision="float64")
    write_tape(path, tmp_path)
    tape = tmp_path / "model.tape"
    code = f"""
    const {{ load }} = await import("{(tmp_path / "tape.js").as_uri()}");
    await load("{tape}").catch((error) => console.log(error.message));
    """
    content = gzip.decompress(tape.read_bytes())
    for old, new, message in (
        (b'"Neg"', b'"Old"', "model.tape and tape.wasm.gz are of different versions"),
        (b'"format":3', b'"format":2', "model.tape is of another version"),
        (b"PTTAPE", b"other.", "this is no file model.tape"),
        (b'"format"', b"'format'", "model.tape is damaged"),
        (b'"results":[', b'"results":["y",', "model.tape is damaged"),
        (b'"dims":[70]', b'"dims":[90]', "model.tape is damaged"),
        (b'["x_dim0"]', b"[1,1,1,1,1,1,1,1,1]", "model.tape is damaged"),
    ):
        assert old in content
        tape.write_bytes(_changed(content, old, new))
        command = ["node", "--input-type=module", "-e", code]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert result.stdout.startswith(message)


def _changed(content, old, new):
    """Return a tape with another text, and the size of the header and the digest for it."""
    mark, size, rest = content[:8], int.from_bytes(content[8:12], "little"), content[16:]
    header, data = rest[:size].replace(old, new), rest[size:]
    header += b" " * (-len(header) % 8)
    head = struct.pack("<II", len(header), zlib.crc32(header + data))
    return mark.replace(old, new) + head + header + data


@pytest.mark.slow
@pytest.mark.usefixtures("node")
def test_damaged_bytes_are_noticed(tmp_path):
    """A bit of a constant that has changed would be another number."""
    x = pt.vector("x", shape=(3,))
    weights = RNG.normal(size=(5, 3))
    path = saved(tmp_path, [x], {"y": pt.tanh(weights @ x)}, precision="float64")
    write_tape(path, tmp_path)
    found = in_node(
        tmp_path,
        f"""
    const {{ gunzipSync }} = await import("node:zlib");
    const {{ readFileSync }} = await import("node:fs");
    const whole = gunzipSync(readFileSync("{tmp_path / "model.tape"}"));
    let refused = 0;
    for (let at = 0; at < whole.length; at++) {{
      const bytes = new Uint8Array(whole);
      bytes[at] ^= 1 << at % 8;
      await load(bytes).catch(() => refused++);
    }}
    console.log(JSON.stringify([refused, whole.length]));
    """,
    )
    assert found[0] == found[1]


@pytest.mark.usefixtures("node")
def test_a_cut_tape_is_damaged_at_every_length(tmp_path):
    x = pt.vector("x", shape=(3,))
    path = saved(tmp_path, [x], {"y": x * np.array([0.5, 1, 2])}, precision="float64")
    write_tape(path, tmp_path)
    found = in_node(
        tmp_path,
        f"""
    const {{ gunzipSync }} = await import("node:zlib");
    const {{ readFileSync }} = await import("node:fs");
    const whole = gunzipSync(readFileSync("{tmp_path / "model.tape"}"));
    const messages = new Set();
    for (let size = 0; size < whole.length; size += 7) {{
      await load(new Uint8Array(whole.subarray(0, size))).catch((e) => messages.add(e.message));
    }}
    const absent = await model.run().catch((e) => e.message);
    console.log(JSON.stringify([[...messages], absent]));
    """,
    )
    messages = ["this is no file model.tape", "model.tape is damaged: write it anew"]
    assert found == [messages, "input x is missing"]


@pytest.mark.usefixtures("node")
def test_the_lines_of_the_page_run_in_node(tmp_path):
    [lines] = re.findall(r"```js\n(import .*?)```", PAGE.read_text(), re.DOTALL)
    x = pt.vector("x", shape=(3,), dtype="float64")
    path = saved(tmp_path, [x], {"y": x * 2}, precision="float64")
    write_tape(path, tmp_path / "site")
    (tmp_path / "lines.mjs").write_text(f"{lines}console.log(model.sha256);")
    result = subprocess.run(
        ["node", "lines.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert result.stdout == f"float64 [ 3 ] Float64Array(3) [ 2, 4, 6 ]\n{digest}\n"


def uncovered(tmp_path):
    x = pt.vector("x")
    return saved(tmp_path, [x], {"y": x[x > 0]}, precision="float64")


def test_a_page_takes_the_runtime_where_no_tape_covers_the_model(tmp_path, without_npm):
    path = uncovered(tmp_path)
    # The page has a copy of the file, whose name tells a user nothing.
    message = re.escape(f"{path}: a tape does not cover ") + ".*Compress has no kernel"
    with pytest.raises(UncoveredError, match=message):
        build_site(path, tmp_path / "tape", engine="tape")
    described = json.loads((build_site(path, tmp_path / "site") / "page.json").read_text())
    assert described["runtime"]["engine"] == "onnxruntime"
    assert "Compress has no kernel" in described["runtime"]["reason"]
    assert not (tmp_path / "site" / "model.tape").exists()
    with pytest.raises(PyTensorONNXError, match="does not use WebGPU"):
        build_site(path, tmp_path / "gpu", engine="tape", webgpu=True)


def test_a_page_with_a_tape_has_no_runtime(tmp_path, without_npm):
    needs_tapes()
    x = pt.vector("x", shape=(2,))
    path = saved(tmp_path, [x], {"y": x + 1})
    folder = build_site(path, tmp_path / "site")
    assert json.loads((folder / "page.json").read_text())["runtime"] == {"engine": "tape"}
    assert (folder / "model.tape").exists()
    assert not (folder / "runtime").exists()


def test_an_installation_without_the_module_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tape_file, "_FOLDER", tmp_path)
    monkeypatch.setattr(tape_file, "_BUILD", tmp_path / "build.py")
    with pytest.raises(MissingEngineError, match="it was built without ziglang"):
        wasm_module()
    (tmp_path / "build.py").write_text("def build_wasm(folder): return None")
    with pytest.raises(MissingEngineError, match="run pip install ziglang"):
        wasm_module()
    fails = "from subprocess import run\ndef build_wasm(x): run(['false'], check=True)"
    (tmp_path / "build.py").write_text(fails)
    with pytest.raises(MissingEngineError, match="cannot be compiled: ziglang fails"):
        wasm_module()


@pytest.mark.slow
@needs_chromium
def test_a_long_run_is_stopped_in_a_page(browser, tmp_path):
    needs_tapes()
    n = pt.lscalar("n")
    [y] = iterate(lambda y: [pt.cos(y)], [pt.constant(np.float64(1.0))], n_steps=n)
    path = saved(tmp_path, [n], {"y": y}, precision="float64")
    page = {
        "inputs": {"n": {"min": 1, "max": 2_000_000_000, "value": 2_000_000_000}},
        "run": "button",
    }
    folder = build_site(path, tmp_path / "site", page=page, engine="tape")
    with opened_page(browser, folder) as (opened, said):
        opened.get_by_text("loaded in").wait_for()
        opened.get_by_role("button", name="Run", exact=True).click()
        opened.get_by_text("of 2000000000 steps").wait_for()
        opened.get_by_role("button", name="Stop", exact=True).click()
        opened.get_by_text("Stopped after").wait_for()
        opened.get_by_label("n", exact=True).last.fill("5")
        opened.get_by_role("button", name="Run", exact=True).click()
        opened.get_by_text("Done.").wait_for()
        np.testing.assert_allclose(results(opened)["y"], [0.70136877], rtol=1e-7)
        assert not said


@pytest.mark.slow
@needs_chromium
def test_a_training_step_in_a_page(browser, tmp_path):
    needs_tapes()
    rate, w = pt.scalar("rate"), pytensor.shared(np.array([3.0, -1.0]), name="w")
    loss = (w**2).sum()
    options = {"precision": "float64", "state_path": tmp_path / "state.npz"}
    updates = {w: w - rate * pt.grad(loss, w)}
    path = saved(tmp_path, [rate], {"loss": loss}, updates=updates, **options)
    page = {"inputs": {"rate": {"min": 0, "max": 1, "value": 0.25}}}
    page["outputs"] = {"loss": {"kind": "trace"}}
    options = {"page": page, "state": tmp_path / "state.npz", "engine": "tape"}
    folder = build_site(path, tmp_path / "site", **options)
    with opened_page(browser, folder) as (opened, said):
        opened.get_by_text("loaded in").wait_for()
        button = opened.get_by_role("button", name="Run", exact=True)
        for _ in range(2):
            button.click()
            await_results(opened)
        np.testing.assert_array_equal(results(opened)["loss"], [10, 2.5])
        found = np.load(downloaded(opened, "Download state"))["w"]
        np.testing.assert_array_equal(found, [0.75, -0.25])
        opened.get_by_role("button", name="Reset", exact=True).click()
        button.click()
        await_results(opened)
        np.testing.assert_array_equal(results(opened)["loss"], [10])
        opened.get_by_role("button", name="Undo reset").click()
        button.click()
        await_results(opened)
        np.testing.assert_array_equal(results(opened)["loss"], [10, 2.5, 0.625])
        loaded = opened.locator("#timing").inner_text()
        keep_screenshot(opened, "tape")
        assert "WebAssembly, 1 thread" in loaded
        assert not said
