"""Twelve pages that nobody described, opened from the disk as a person does."""

import warnings

import pytest

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.packages import package_files
from scripts.page_models import MODELS
from scripts.picture_pages import write_page
from scripts.real_files import PackageMissingError
from tests.web.pages import AXE, needs_chromium
from tests.web.tapes import needs_tapes

pytestmark = [pytest.mark.slow, needs_chromium]
SECOND = 1000
MOST_TABS = 120
SCREENS = {"desktop": {"width": 1200, "height": 800}, "phone": {"width": 390, "height": 760}}
RESULT = "#outputs svg, #outputs .bar, #outputs .number, #outputs canvas"


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """Return a function that makes the page of a model, once."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def page(name):
        needs_tapes()
        if name not in made:
            with warnings.catch_warnings():
                # The fits are short: warnings of their convergence are expected.
                warnings.simplefilter("ignore")
                try:
                    made[name] = write_page(name, folder)
                except PackageMissingError as error:
                    pytest.skip(str(error))
        return made[name]

    return page


@pytest.fixture(params=SCREENS)
def screen(request):
    return request.param


def open_page(browser, file, screen, **options):
    """Open a page, and return it with what its console says."""
    said = []
    page = browser.new_page(viewport=SCREENS[screen], **options)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda r: said.append(r.url) if r.url.startswith("http") else None)
    page.goto(file.as_uri())
    return page, said


def draw_by_keyboard(page):
    """Draw a stroke where the page waits for a drawing."""
    pad = page.locator("canvas.pad")
    if pad.count():
        pad.focus()
        for key in ["ArrowUp"] * 5 + ["ArrowDown"] * 10:
            page.keyboard.press(key)


@pytest.mark.parametrize("name", MODELS)
def test_a_page_shows_a_result_within_a_second_and_says_nothing(browser, page_of, name, screen):
    page, said = open_page(browser, page_of(name), screen)
    waits = page.locator("canvas.pad").count() > 0
    if waits:
        page.get_by_text("Draw something on the black field.").wait_for(timeout=SECOND)
        draw_by_keyboard(page)
    page.locator(RESULT).first.wait_for()
    page.locator("#outputs[aria-busy=false]").wait_for()
    first = page.evaluate('performance.getEntriesByName("first result")[0].startTime')
    assert waits or first < SECOND
    title = page.locator("h1").inner_text()
    assert "_" not in title
    assert "main" not in title.split()
    assert page.locator("#status.bad").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen]["width"]
    assert said == []
    page.close()


@pytest.mark.parametrize("name", MODELS)
def test_a_page_is_used_by_the_keyboard_alone(browser, page_of, name):
    page, said = open_page(browser, page_of(name), "desktop")
    page.get_by_text("loaded in").wait_for()
    draw_by_keyboard(page)
    page.locator("#outputs[aria-busy=false]").wait_for()
    if page.locator("canvas.pad").count() == 0:
        page.locator("body").focus()
    reached = set()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        active = page.evaluate(
            "document.activeElement.id || document.activeElement.ariaLabel "
            "|| document.activeElement.tagName"
        )
        reached.add(active)
        if active == "run":
            break
    assert "run" in reached
    assert len(reached) > 2
    page.keyboard.press("Enter")
    page.locator("#outputs[aria-busy=false]").wait_for()
    assert page.locator("#status").inner_text().startswith("Done.")
    assert said == []
    page.close()


@pytest.mark.parametrize("name", MODELS)
def test_axe_finds_nothing(browser, page_of, name, screen):
    try:
        (axe,) = package_files(AXE)
    except PyTensorONNXError as error:
        pytest.skip(str(error))
    for scheme in ("light", "dark"):
        page, _ = open_page(browser, page_of(name), screen, color_scheme=scheme)
        page.get_by_text("loaded in").wait_for()
        draw_by_keyboard(page)
        page.locator("#outputs[aria-busy=false]").wait_for()
        for details in page.locator("details").all():
            details.evaluate("element => element.open = true")
        page.evaluate(axe.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(x["id"], [n["html"] for n in x["nodes"]]) for x in found] == []
        page.close()
