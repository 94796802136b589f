"""The page as its users meet it: loading, running, resetting, links, keyboards and phones."""

import re

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.packages import RUNTIME, package_files
from pytensor_onnx.web.site import build_site
from tests.web.pages import (
    AXE,
    assert_looks_like,
    await_results,
    needs_chromium,
    opened_page,
    results,
)

pytestmark = [pytest.mark.slow, needs_chromium]

FIRST_PAINT = """() => new Promise((resolve) => {
  const first = (list) => list.getEntriesByName("first-contentful-paint");
  const seen = (list) => first(list).map((paint) => resolve(paint.startTime));
  new PerformanceObserver(seen).observe({ type: "paint", buffered: true });
})"""
DESKTOP, PHONE = {"width": 1200, "height": 800}, {"width": 390, "height": 760}
PAGE = {
    "title": "A walk",
    "text": "Each run goes one step on.",
    "inputs": {
        "steps": {"min": 1, "max": 100, "value": 1, "label": "Rounds"},
        "weights": {"label": "Weights", "min": -2, "max": 2, "value": 0.5},
        "points": {"kind": "table", "value": [[0, 1], [2, 3]], "columns": ["x", "y"]},
    },
    "outputs": {
        "place": {"kind": "trace", "label": "Place"},
        "shares": {"kind": "bars", "label": "Shares"},
        "wave": {"kind": "lines", "x": "times", "label": "Wave"},
        "times": {"kind": "hidden", "label": "Time in seconds"},
    },
    "links": {"Code": "https://example.org/code"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the page of a model with a state and 14 controls."""
    try:
        for package in (RUNTIME, AXE):
            package_files(package)
    except PyTensorONNXError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("walk")
    place = pytensor.shared(np.float32(0), name="walked")
    steps, weights = pt.lscalar("steps"), pt.vector("weights", shape=(12,), dtype="float32")
    points = pt.matrix("points", shape=(None, 2), dtype="float32")
    options = {"outputs_info": weights, "n_steps": steps, "return_updates": False}
    rounds = pytensor.scan(pt.cos, **options)[-1]
    times = pt.constant(np.linspace(0, 1, 40, dtype="float32"))
    outputs = {
        "place": place + weights.sum(),
        "shares": pt.special.softmax(rounds),
        "wave": pt.sin(6 * times) + points.sum(),
        "times": times.copy(),
    }
    state = folder / "state.npz"
    options = {"target": "web", "state_path": state, "example_inputs": [3, np.ones(12), [[0, 1]]]}
    export_onnx(
        [steps, weights, points],
        outputs,
        folder / "walk.onnx",
        updates={place: place + weights.sum()},
        dynamic_axes={"points": [0]},
        **options,
    )
    file, target = folder / "walk.onnx", folder / "site"
    return build_site(file, target, page=PAGE, state=state, engine="onnxruntime")


@pytest.fixture
def opened(browser, folder):
    """Return the loaded page."""
    with opened_page(browser, folder, viewport=DESKTOP) as (page, said):
        page.get_by_text("loaded in").wait_for()
        yield page
        assert not said


def click(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def run(page):
    click(page, "Run")
    await_results(page)


def status(page):
    return page.locator("#status").inner_text()


def test_the_page_is_there_and_counts_bytes_while_the_runtime_loads(browser, folder):
    held = []

    def hold(page):
        page.route("**/*.wasm.gz", lambda route: held.append(route))  # noqa: PLW0108 (Playwright marks the function)

    with opened_page(browser, folder, before=hold) as (page, _):
        page.get_by_text("Loading ONNX Runtime and the model").wait_for()
        page.get_by_role("progressbar", name="Loading").wait_for()
        assert page.get_by_role("heading", name="A walk").is_visible()
        assert page.get_by_text("The result appears here.").count() == 3
        assert page.evaluate(FIRST_PAINT) > 0
        assert page.get_by_role("button", name="Run", exact=True).is_disabled()
        held.pop().continue_()
        page.get_by_text("loaded in").wait_for()
        assert page.get_by_role("progressbar").count() == 0
    (binary,) = folder.glob("runtime/*.wasm.gz")
    assert binary.stat().st_size < 5e6


def test_a_page_that_is_opened_as_a_file_explains_itself(browser, folder):
    page = browser.new_page()
    page.goto((folder / "index.html").as_uri())
    assert "opened as a file" in status(page)
    page.close()


def test_a_second_click_on_run_repeatedly_changes_nothing(opened):
    button = opened.get_by_role("button", name="Run repeatedly")
    box = button.bounding_box()
    for _ in range(2):
        opened.mouse.click(box["x"] + box["width"] - 5, box["y"] + box["height"] / 2)
    opened.get_by_text(re.compile(r"^run \d{2,}")).wait_for()
    assert status(opened) == "Running repeatedly…"
    click(opened, "Stop")
    opened.get_by_text("Stopped.").wait_for()


def test_a_reset_can_be_undone(opened):
    run(opened)
    run(opened)
    before = results(opened)
    click(opened, "Reset")
    opened.get_by_text("All is as at the beginning.").wait_for()
    assert opened.get_by_text("The result appears here.").count() == 3
    run(opened)
    np.testing.assert_allclose(results(opened)["place"], [6])
    click(opened, "Undo reset")
    opened.get_by_text("The state before the reset is back.").wait_for()
    np.testing.assert_array_equal(results(opened)["place"], before["place"])
    run(opened)
    np.testing.assert_allclose(results(opened)["place"], [6, 12, 18])


def test_the_status_says_that_the_model_runs(opened):
    opened.get_by_label("Rounds, value").fill("1000000")
    click(opened, "Run")
    opened.get_by_text("Running…").wait_for()
    await_results(opened)
    assert status(opened) == "Done."


def test_shares_are_percentages_and_axes_have_names(opened):
    run(opened)
    assert opened.get_by_text("8.3%").count() == 12
    wave = opened.get_by_role(
        "img", name=re.compile("^Plot of Wave, .* over Time in seconds, 0 to 1")
    )
    assert wave.is_visible()
    assert "--" not in opened.locator("#outputs").inner_text()


def test_a_link_keeps_the_inputs(browser, folder, opened):
    opened.get_by_label("Rounds, value").fill("7")
    opened.get_by_label("Weights[3], value").fill("-1.25")
    opened.get_by_label("points", exact=True).fill("1,2\n3,4")
    click(opened, "Copy link to these inputs")
    opened.get_by_text("link").first.wait_for()
    with opened_page(browser, folder, f"index.html#{opened.url.partition('#')[2]}") as (copy, _):
        copy.get_by_text("loaded in").wait_for()
        assert copy.get_by_label("Rounds, value").input_value() == "7"
        assert copy.get_by_label("Weights[3], value").input_value() == "-1.25"
        assert copy.get_by_label("points", exact=True).input_value() == "1,2\n3,4"


def test_the_page_links_its_model_and_its_code(opened):
    addresses = opened.locator("#links a").evaluate_all("all => all.map((a) => a.href)")
    assert addresses[0].endswith("/model.onnx")
    assert addresses[1] == "https://example.org/code"


def test_results_stand_beside_the_run_button_on_a_phone(browser, folder):
    with opened_page(browser, folder, viewport=PHONE, reduced_motion="reduce") as (page, _):
        page.get_by_text("loaded in").wait_for()
        assert page.locator("#outputs").bounding_box()["y"] > PHONE["height"]
        run(page)
        page.evaluate("() => new Promise(requestAnimationFrame)")
        button = page.get_by_role("button", name="Run", exact=True).bounding_box()
        assert button["y"] + button["height"] <= PHONE["height"]
        assert page.get_by_role("img", name=re.compile("^Plot of Place")).bounding_box()["y"] < 300
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_page_runs_by_the_keyboard(opened):
    opened.get_by_role("button", name="Run", exact=True).focus()
    opened.keyboard.press("Enter")
    await_results(opened)
    opened.get_by_label("points", exact=True).focus()
    for _ in range(60):
        opened.keyboard.press("Tab")
        focused = opened.evaluate("document.activeElement.textContent")
        if focused == "Copy link to these inputs":
            return
    pytest.fail("the keyboard does not reach all buttons")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_looks_as_kept_and_is_accessible(browser, folder, scheme, size):
    (axe,) = package_files(AXE)
    options = {"viewport": size, "color_scheme": scheme, "reduced_motion": "reduce"}
    with opened_page(browser, folder, **options) as (page, said):
        page.get_by_text("loaded in").wait_for()
        page.evaluate(axe.read_text(encoding="utf-8"))
        found = [page.evaluate("axe.run()")["violations"]]
        run(page)
        found.append(page.evaluate("axe.run()")["violations"])
        assert found == [[], []]
        assert not said
        page.locator("h1" if size is DESKTOP else "#outputs").evaluate("e => e.scrollIntoView()")
        assert_looks_like(page, f"{scheme}-{'desktop' if size is DESKTOP else 'phone'}")
