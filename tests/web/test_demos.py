"""The demos of examples/web in headless Chromium, compared with the native runtime."""

import importlib
import json
import re
import struct
import subprocess
import sys
import zlib
from collections import namedtuple
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.packages import RUNTIME, package_files
from tests.web.pages import (
    await_results,
    downloaded,
    keep_screenshot,
    needs_chromium,
    opened_page,
    results,
)

pytestmark = [pytest.mark.slow, needs_chromium]
EXAMPLES = Path(__file__).parents[2] / "examples" / "web"
Demo = namedtuple("Demo", "page folder native")


@pytest.fixture
def demo(browser, tmp_path, request):
    """Return the open page of a demo, its folder, and its model as a function."""
    name, options, needs = request.param
    for package in needs:
        pytest.importorskip(package, reason=f"{package} is not installed")
    try:
        package_files(RUNTIME)
    except PyTensorONNXError as error:
        pytest.skip(str(error))
    folder = importlib.import_module(f"web.{name}.build").build(tmp_path / "site", **options)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    names = [output.name for output in session.get_outputs()]

    def native(**feeds):
        arrays = {key: np.asarray(value) for key, value in feeds.items()}
        return dict(zip(names, session.run(None, arrays), strict=True))

    with opened_page(browser, folder) as (page, said):
        page.get_by_text("loaded in").wait_for()
        await_results(page)
        yield Demo(page, folder, native)
        keep_screenshot(page, name)
        assert not said


def run(page):
    """Run the model once."""
    page.get_by_role("button", name="Run", exact=True).click()
    await_results(page)


@pytest.mark.parametrize("demo", [("regression", {"draws": 50}, ["pymc"])], indirect=True)
def test_intervals_of_a_regression_follow_the_sliders(demo):
    def expected(rain, last):
        nitrogen = np.linspace(0, last, 50).astype("float32")
        return demo.native(nitrogen=nitrogen, rain=np.float32(rain), seed=1)

    found = []
    for rain, last in ((400, 200), (750, 100)):
        demo.page.get_by_label("Rain in mm, value").fill(str(rain))
        demo.page.get_by_role("spinbutton", name="to", exact=True).fill(str(last))
        await_results(demo.page)
        native, saved = expected(rain, last), results(demo.page)
        for name in ("mean_mean", "yield_mean"):
            np.testing.assert_allclose(saved[name], native[name], rtol=1e-5)
        for name in ("mean_hdi", "yield_hdi"):
            columns = np.stack([saved[f"{name}[{j}]"] for j in (0, 1)], axis=1)
            np.testing.assert_allclose(columns, native[name], rtol=1e-5)
        found.append(saved["mean_mean"][-1])
    assert found[1] > found[0] + 0.5


def first_state(folder):
    """Return the state that a page begins with, and the outputs of the next one."""
    described = json.loads((folder / "page.json").read_text())["state"]
    arrays = {
        value["name"]: np.fromfile(folder / value["file"], value["dtype"]).reshape(value["dims"])
        for value in described["values"]
    }
    return arrays, described["pairs"]


@pytest.mark.parametrize("demo", [("training", {}, ["pytensor_ml"])], indirect=True)
def test_a_network_is_trained_in_the_page(demo):
    page = demo.page
    run(page)
    run(page)
    losses = results(page)["loss"]
    found = dict(np.load(downloaded(page, "Download state")))
    data = json.loads((demo.folder / "page.json").read_text())["inputs"]
    feeds = {
        "data": np.float32(next(x["control"]["value"] for x in data if x["name"] == "data")),
        "learning_rate": np.float32(0.005),
    }
    state, pairs = first_state(demo.folder)
    expected = []
    for _ in range(20):
        outputs = demo.native(**feeds, **state)
        expected.append(outputs["loss"])
        state = {name: outputs[following] for name, following in pairs.items()}
    np.testing.assert_allclose(losses, expected[9::10], rtol=1e-4)
    assert losses[1] < losses[0]
    assert found.keys() == state.keys()
    for name, value in state.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
        np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=2e-4)
    page.get_by_role("button", name="Reset", exact=True).click()
    run(page)
    np.testing.assert_array_equal(results(page)["loss"], losses[:1])


@pytest.mark.parametrize("demo", [("sampler", {}, ["pymc"])], indirect=True)
def test_a_posterior_is_drawn_in_the_page(demo):
    from web.sampler.build import EFFECTS

    page = demo.page

    def native(seed, warmup, draws):
        return demo.native(effects=np.array(EFFECTS), seed=[seed], warmup=warmup, draws=draws)

    # Trajectories of two runtimes move apart later on.
    page.get_by_label("Warm-up steps of a chain, value").fill("0")
    page.get_by_label("Draws of a chain, value").fill("3")
    run(page)
    first = results(page)
    np.testing.assert_allclose(first["mu"], native(1, 0, 3)["mu"][0], rtol=1e-6)
    run(page)
    assert len(results(page)["mu"]) == 6
    np.testing.assert_allclose(results(page)["mu"][3:], native(2, 0, 3)["mu"][0], rtol=1e-6)
    page.get_by_role("button", name="Reset", exact=True).click()
    run(page)
    np.testing.assert_array_equal(results(page)["mu"], first["mu"])

    # Draws for other inputs are not kept.
    page.get_by_label("Warm-up steps of a chain, value").fill("200")
    page.get_by_label("Draws of a chain, value").fill("200")
    page.get_by_role("button", name="Run repeatedly").click()
    page.get_by_text(re.compile(r"\b\d{4,} numbers")).first.wait_for()
    page.get_by_role("button", name="Stop").click()
    await_results(page)
    drawn = results(page)["mu"]
    expected = np.concatenate([native(seed, 200, 200)["mu"][0] for seed in range(100, 105)])
    assert abs(drawn.mean() - expected.mean()) < 1.2
    assert 0.7 < drawn.std() / expected.std() < 1.4


@pytest.fixture(scope="module")
def index(browser, tmp_path_factory):
    """Return the open page that shows demos, made by its command, with the quick ones only."""
    pytest.importorskip("pytensor_ml", reason="pytensor_ml is not installed")
    folder = importlib.import_module("web.build").build(
        tmp_path_factory.mktemp("index") / "site", ["training"]
    )
    with opened_page(browser, folder) as (page, said):
        yield page
        assert not said


def test_the_index_links_demos(index):
    assert index.locator("img").evaluate("image => image.naturalWidth") > 0
    keep_screenshot(index, "index")
    index.get_by_role("link", name="Training in the browser", exact=True).click()
    index.get_by_text("loaded in").wait_for()
    run(index)
    assert len(results(index)["loss"]) == 1


def test_yolo11n_finds_the_same_boxes_as_the_native_runtime(browser, tmp_path):
    # Without training all scores are next to 1 %.
    options = ["-o", str(tmp_path / "site"), "--steps", "0", "--threshold", "0.0103"]
    command = [sys.executable, str(EXAMPLES / "yolo11n" / "build.py"), *options]
    subprocess.run(command, check=True, capture_output=True)
    with opened_page(browser, tmp_path / "site") as (page, said):
        page.get_by_text("nothing found").wait_for()
        await_results(page)
        saved = results(page)
        keep_screenshot(page, "yolo11n")
        assert not said
    found = np.stack([saved[f"boxes[{i}]"] for i in range(6)], axis=1)
    pixels = read_png(tmp_path / "site" / "examples" / "shapes.png")
    images = np.float32(pixels.transpose(2, 0, 1)[None] / 255)
    (expected,) = onnxruntime.InferenceSession(tmp_path / "site" / "model.onnx").run(
        None, {"images": images}
    )
    assert len(expected) > 5
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def read_png(path):
    """Return the pixels of an image without filters, as the demo writes it."""
    data = path.read_bytes()
    start = data.index(b"IDAT")
    (size,) = struct.unpack(">I", data[start - 4 : start])
    rows = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + size]), "uint8")
    height, width = struct.unpack(">2I", data[16:24])
    return rows.reshape(height, 3 * width + 1)[:, 1:].reshape(height, width, 3)
