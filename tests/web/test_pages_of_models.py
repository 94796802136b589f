"""Twelve pages that nobody described, opened from the disk as a person does."""

import warnings

import numpy as np
import onnxruntime
import pytest

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.packages import package_files
from scripts.page_models import MODELS
from scripts.picture_pages import write_page
from scripts.real_files import MAGIKA, SILERO, PackageMissingError
from tests.web.pages import AXE, needs_chromium, wav
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


FIRST_RESULT = """() => new Promise((done) => {
    const look = () => {
        const [mark] = performance.getEntriesByName("first result");
        mark ? done(mark.startTime) : setTimeout(look, 10);
    };
    look();
})"""
"""Milliseconds until the first result; outputs are not busy before the first run, either."""


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
    first = page.evaluate(FIRST_RESULT)
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


def results_of(page):
    """Return the numbers of the results that a page saves, by their columns."""
    page.locator("#outputs[aria-busy=false]").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download results").click()
    return np.genfromtxt(saved.value.path(), delimiter=",", skip_header=1)


def test_the_kind_of_a_text_is_that_of_the_runtime(browser, page_of):
    page, said = open_page(browser, page_of("file_types"), "desktop")
    page.get_by_text("Done.").wait_for()
    text = "\n  #include <stdio.h>\n" + "".join(
        f"int f{i}(int x) {{ return x + {i}; }}\n" for i in range(90)
    )
    page.get_by_label("Text or file", exact=True).fill(text)
    page.get_by_text("The text that is typed.").wait_for()
    numbers = list(text.strip().encode())
    given = np.array([numbers[:1024] + numbers[-1024:]], "int32")
    (expected,) = onnxruntime.InferenceSession(MAGIKA.path()).run(None, {"bytes": given})
    # The network takes a variance as a difference of large numbers in float32.
    np.testing.assert_allclose(results_of(page), expected[0], atol=2e-4)
    assert page.locator(".bar.largest").inner_text().split()[0] in {"c", "cpp"}
    assert said == []
    page.close()


def test_a_voice_is_heard_as_by_the_runtime(browser, page_of, tmp_path):
    page, said = open_page(browser, page_of("speech"), "desktop")
    page.get_by_text("Done.").wait_for()
    time = np.arange(20_000) / 16_000
    wave = sum(np.sin(2 * np.pi * 130 * k * time + k) / k for k in range(1, 25))
    wave *= np.sin(2 * np.pi * 2 * time).clip(0) / 6
    # Browsers divide positive samples by another number than negative ones.
    samples = np.abs(wave * 32767).round().astype("<i2")
    (tmp_path / "hum.wav").write_bytes(wav(samples, 16_000))
    page.get_by_label("Sound, file").set_input_files(tmp_path / "hum.wav")
    page.get_by_text("hum.wav, 1.25 seconds").wait_for()
    padded = np.concatenate([np.zeros(64), samples / 32767, np.zeros(480)]).astype("float32")
    state, expected = np.zeros((2, 1, 128), "float32"), []
    session = onnxruntime.InferenceSession(SILERO.path())
    for start in range(0, 20_000, 512):
        window = padded[None, start : start + 576]
        feed = {"input": window, "state": state, "sr": np.array(16_000)}
        share, state = session.run(None, feed)
        expected.append(share[0, 0])
    np.testing.assert_allclose(results_of(page), expected, atol=1e-4)
    assert said == []
    page.close()
