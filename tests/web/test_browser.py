"""Pages in headless Chromium, compared with the native runtime."""

import numpy as np
import onnxruntime
import pytest

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.packages import RUNTIME, package_files
from pytensor_onnx.web.site import build_site
from tests.web.pages import await_results, keep_screenshot, needs_chromium, opened_page, results

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def page(browser, model, tmp_path_factory):
    """Return the open page of a model, and what its console said."""
    try:
        package_files(RUNTIME)
    except PyTensorONNXError as error:
        pytest.skip(str(error))
    described = {
        "title": "<img src=x onerror=alert(1)>",
        "inputs": {
            "height": {"min": 0, "max": 4, "value": 1.5},
            "data": {"kind": "table", "value": [[1, 2]]},
        },
        "outputs": {"columns": {"kind": "table"}, "rounded": {"kind": "table"}},
    }
    folder = build_site(model, tmp_path_factory.mktemp("page") / "sub" / "site", page=described)
    with opened_page(browser, folder.parents[1], "sub/site/index.html") as (opened, said):
        opened.get_by_text("Done.").wait_for()
        yield opened, said


def test_results_are_those_of_the_native_runtime(page, model):
    opened, said = page
    opened.get_by_label("height, value").fill("2.5")
    opened.get_by_label("weights[1], value").fill("-1")
    opened.get_by_label("data", exact=True).fill("1,2\n3,4.25")
    opened.get_by_label("flag").check()
    await_results(opened)
    feeds = {
        "height": np.array(2.5, "float32"),
        "weights": np.float32([0, -1, 0]),
        "data": np.array([[1, 2], [3, 4.25]]),
        "flag": np.array(True),
    }
    session = onnxruntime.InferenceSession(model)
    expected = dict(
        zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True)
    )
    found = results(opened)
    np.testing.assert_allclose(found["curve"], expected["curve"], rtol=1e-6)
    np.testing.assert_allclose(found["shares"], expected["shares"], rtol=1e-6)
    np.testing.assert_allclose(found["total"], expected["total"], rtol=1e-12)
    np.testing.assert_array_equal(found["columns[1]"], expected["columns"][:, 1])
    np.testing.assert_array_equal(found["rounded"], expected["rounded"])
    assert not said


def test_text_is_no_markup(page):
    opened, _ = page
    assert opened.locator("h1").inner_text() == "<img src=x onerror=alert(1)>"
    assert opened.locator("img").count() == 0


def test_wrong_numbers_are_explained_and_the_page_goes_on(page):
    opened, _ = page
    opened.get_by_label("data", exact=True).fill("1,2,3")
    opened.get_by_text("data has sizes 1 x 3, but any x 2 are needed").wait_for()
    opened.get_by_label("data", exact=True).fill("1,2")
    opened.get_by_text("Done.").wait_for()


def test_blank_fields_and_results_without_elements_are_explained(page):
    opened, _ = page
    opened.get_by_text("no elements").wait_for()
    field = opened.get_by_label("height, value")
    field.fill("")
    opened.get_by_role("button", name="Run", exact=True).click()
    opened.get_by_text("height: give a number").wait_for()
    field.fill("1.5")
    opened.get_by_text("Done.").wait_for()


def test_whole_numbers_that_the_page_rounds_are_named(page):
    opened, _ = page
    opened.get_by_label("weights[0], value").fill("1e17")
    opened.get_by_text("Whole numbers beyond 2^53 are rounded in rounded.").wait_for()
    opened.get_by_label("weights[0], value").fill("0")
    opened.get_by_text("Done.", exact=True).wait_for()


def test_the_page_is_usable_by_keyboard_and_on_a_phone(page):
    opened, _ = page
    slider = opened.get_by_label("height", exact=True)
    slider.focus()
    before = opened.get_by_label("height, value").input_value()
    slider.press("ArrowRight")
    assert opened.get_by_label("height, value").input_value() != before
    opened.set_viewport_size({"width": 360, "height": 740})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_digit_that_is_drawn_is_recognised(browser, tmp_path):
    build = pytest.importorskip("web.digits.build", reason="scikit-learn is not installed")
    with opened_page(browser, build.build(tmp_path / "site")) as (opened, _):
        opened.get_by_text("Draw something on the black field").wait_for()
        box = opened.locator("canvas").bounding_box()
        places = [(0.3, 0.25), (0.7, 0.25), (0.6, 0.5), (0.5, 0.8)]
        points = [(box["x"] + u * box["width"], box["y"] + v * box["height"]) for u, v in places]
        opened.mouse.move(*points[0])
        opened.mouse.down()
        for point in points[1:]:
            opened.mouse.move(*point, steps=5)
        opened.mouse.up()
        await_results(opened)
        assert results(opened)["probabilities[7]"] > 0.5
        keep_screenshot(opened, "digits")
        opened.get_by_role("button", name="Clear").click()
        opened.get_by_text("Draw something on the black field").wait_for()
