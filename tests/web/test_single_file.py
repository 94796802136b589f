"""Pages in one HTML file."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from base64 import b64decode

import numpy as np
import onnx
import pytensor
import pytensor.tensor as pt
import pytest
from click.testing import CliRunner
from onnx import helper

from pytensor_onnx import export_onnx
from pytensor_onnx.cli.app import app
from pytensor_onnx.errors import NoTapeError
from pytensor_onnx.web.single_file import frame
from pytensor_onnx.web.site import make_page
from tests.web.pages import needs_chromium
from tests.web.tapes import needs_tapes


@pytest.fixture(scope="module")
def program():
    """Return a program of two numbers."""
    needs_tapes()
    x, y = pt.scalar("x"), pt.scalar("y")
    return export_onnx([x, y], {"total": x + y, "grown": pt.exp(x)})


def run(*arguments):
    return CliRunner().invoke(app, ["web", *map(str, arguments)])


@needs_chromium
def test_a_file_runs_from_the_disk_and_in_frames(browser, program, tmp_path):
    made = program.page(title="</script><b>", inputs={"x": {"value": 2}, "y": {"value": 0.5}})
    inner = frame(made.text, 500).replace("<iframe", '<iframe sandbox="allow-scripts"')
    (tmp_path / "frames.html").write_text(f"{made._repr_html_()}{inner}", encoding="utf-8")
    for file in (made.save(tmp_path / "page.html"), tmp_path / "frames.html"):
        opened, said = browser.new_page(), []
        opened.on("console", lambda message, said=said: said.append(message.text))
        opened.on("pageerror", lambda error, said=said: said.append(str(error)))
        opened.on("request", lambda r, said=said: said.append(r.url) if "http" in r.url else None)
        opened.goto(file.as_uri())
        frames = opened.frames[1:] or opened.frames
        assert len(frames) == (2 if file.stem == "frames" else 1)
        for inside in frames:
            inside.get_by_text("2.5", exact=True).wait_for()
            inside.get_by_label("x, value").fill("1")
            inside.get_by_text("1.5", exact=True).wait_for()
            assert inside.locator("h1").inner_text() == "</script><b>"
            assert inside.locator("#link").is_visible() == (file.stem == "page")
        assert not said
        opened.close()


def test_a_file_is_small_and_links_nothing(program):
    text = program.page(title="</script><b>").text
    assert len(text) < 0.35e6
    assert "<b>" not in text
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert "import" not in text.replace("important", "").partition('"use strict"')[2]


def test_states_and_examples_are_inside(tmp_path):
    needs_tapes()
    total = pytensor.shared(np.array([1.5, 2.5]), name="total")
    image = pt.tensor("image", shape=(1, 3, 8, 8), dtype="float32")
    program = export_onnx([image], image.mean(), updates={total: total + image.sum()})
    (tmp_path / "cat.png").write_bytes(b"png")
    page = program.page(inputs={"image": {"example": str(tmp_path / "cat.png")}})
    assert page.description["inputs"][0]["control"]["example"] == "data:image/png;base64,cG5n"
    assert 'id="file state/0.bin"' in page.text


def test_the_command_writes_a_file_of_an_object(tmp_path, monkeypatch):
    needs_tapes()
    (tmp_path / "paged.py").write_text(
        "import pytensor.tensor as pt\nx = pt.scalar('x')\n\ndef make():\n    return [x], x * 2\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert "open it in a browser" in run("paged:make", "-o", "page.html").output
    assert "replace it by --force" in str(run("paged:make", "-o", "page.html").exception)
    result = run("paged:make", "--single-file", "--json")
    assert json.loads(result.stdout)["file"] == "make.html"
    assert run("paged:make", "-o", "page.html", "--force").exit_code == 0
    assert "name a folder" in str(run("paged:make", "-o", "page.html", "--serve").exception)


def test_models_that_no_tape_runs_need_a_folder(tmp_path):
    x = pt.vector("x")
    file = tmp_path / "model.onnx"
    export_onnx([x], x[x > 0], file)
    with pytest.raises(NoTapeError, match="name a folder, -o site"):
        make_page(file)


def described(file):
    """Return the description in a page of one file."""
    found = re.search(r'id="file page.json">([^<]*)<', file.read_text(encoding="utf-8"))
    return json.loads(b64decode(found[1]))


@pytest.mark.slow
def test_a_page_is_written_again_when_its_module_changes(tmp_path):
    needs_tapes()
    module, page = tmp_path / "watched.py", tmp_path / "page.html"
    text = "import pytensor.tensor as pt\nx = pt.scalar('x')\n"
    text += "def make():\n    return [x], {{'{}': x * 2}}\n"
    module.write_text(text.format("first"))
    command = [sys.executable, "-m", "pytensor_onnx", "web", "watched:make", "-o", "page.html"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        [*command, "--watch"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def until_named(name):
        for _ in range(300):
            if page.exists() and described(page)["outputs"][0]["name"] == name:
                return
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.2)
        pytest.fail(f"the page has no output {name}")

    try:
        until_named("first")
        while "watching" not in process.stdout.readline():
            pass
        module.write_text("an error")
        time.sleep(3)
        module.write_text(text.format("second"))
        until_named("second")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()


def test_a_file_of_another_exporter_is_written_anew_for_its_page(tmp_path):
    needs_tapes()
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [5])
        for name in ("signal", "sparse")
    )
    node = helper.make_node("Shrink", ["signal"], ["sparse"], lambd=0.5)
    graph = helper.make_graph([node], "main", [x], [y])
    opset = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), tmp_path / "net.onnx")
    with pytest.raises(NoTapeError, match="1 Shrink"):
        make_page(tmp_path / "net.onnx")
    assert run(tmp_path / "net.onnx", "-o", tmp_path / "page.html").exit_code == 0
    assert described(tmp_path / "page.html")["title"] == "Net"
