"""Models for WebGPU: their placement, and their results on a software adapter."""

import numpy as np
import onnxruntime
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx, nn
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.packages import WEBGPU_RUNTIME, package_files
from pytensor_onnx.web.site import build_site
from tests.web.pages import await_results, needs_chromium, opened_page, results

RNG = np.random.default_rng(0)
ARGUMENTS = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")


def network(x):
    """Return features and probabilities: convolution, pool, attention, normalisation, softmax."""
    filters = RNG.normal(size=(4, 1, 3, 3)) / 3
    maps = nn.max_pool(nn.relu(nn.conv2d(x[None, None], filters)), 2)
    rows = maps.reshape((4, -1))
    mixed = nn.softmax(rows @ rows.T / 5) @ rows
    normal = nn.layer_norm(mixed, np.ones(9), np.zeros(9))
    features = nn.gelu(normal @ RNG.normal(size=(9, 5)))
    return {"features": features, "probabilities": nn.softmax(features.sum(axis=0))}


def test_nodes_without_a_kernel_are_named():
    x = pt.vector("x")
    program = export_onnx([x], {"y": pt.exp(x) * 2, "flags": pt.isinf(x)}, target="webgpu")
    (line,) = [line for line in map(str, program.changes) if "processor" in line]
    assert line.startswith("1 of ")
    assert line.endswith("left to the processor: IsInf of float32")
    program = export_onnx([x], pt.exp(x) * 2, target="webgpu")
    assert "all 2 nodes run on the accelerator" in map(str, program.changes)
    assert program.inputs[0].dtype.name == "FLOAT"


@pytest.fixture
def browser_with_adapter(launch):
    try:
        package_files(WEBGPU_RUNTIME)
    except PyTensorONNXError as error:
        pytest.skip(str(error))
    with launch(*ARGUMENTS) as chromium:
        yield chromium


def indexing(x):
    """Return what int64 computes in PyTensor: pairs of indices, masks, counts, positions."""
    rows = pt.arange(x.shape[0])
    masked = pt.switch(rows[:, None] * 2 >= pt.arange(x.shape[1]), x, 0)
    return {
        "picked": x[rows, pt.minimum(rows * 3 + 1, x.shape[1] - 1)],
        "repeated": x[:, (pt.arange(x.shape[1]) + 3) % 7].sum(axis=0),
        "masked": masked.sum(axis=1),
        "positive": (x > 0.5).sum(axis=0),
        "lower": pt.tril(x).sum(axis=0),
    }


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("results_of", [network, indexing])
def test_results_on_webgpu_are_the_native_ones(browser_with_adapter, tmp_path, results_of):
    x = pt.matrix("x", shape=(8, 8))
    options = {"target": "webgpu", "assume_finite": True}
    # Sizes of indices are read at run time, as those of constants would be folded.
    if results_of is indexing:
        x = pt.matrix("x")
    program = export_onnx([x], results_of(x), tmp_path / "model.onnx", **options)
    assert any(
        "all" in line and "run on the accelerator" in line for line in map(str, program.changes)
    )
    image = RNG.random((8, 8)).astype("float32")
    page = {"inputs": {"x": {"kind": "table", "value": image.tolist()}}}
    folder = build_site(tmp_path / "model.onnx", tmp_path / "site", page=page, webgpu=True)
    with opened_page(browser_with_adapter, folder) as (opened, said):
        opened.get_by_text("loaded in").wait_for()
        await_results(opened)
        if "(WebGPU)" not in opened.locator("#timing").inner_text():
            pytest.skip("this Chromium has no software adapter for WebGPU")
        saved = results(opened)
        assert not said
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for output, expected in zip(
        session.get_outputs(), session.run(None, {"x": image}), strict=True
    ):
        columns = [saved[name] for name in saved if name.split("[")[0] == output.name]
        found = np.stack(columns, axis=-1).reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
