"""Pages in servers of notebooks, which are no dependencies: ``pip install jupyterlab marimo``.

``pytest tests/web/test_notebooks.py -m sweep``
"""

import importlib.util
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from tests.web.pages import needs_chromium
from tests.web.tapes import needs_tapes

pytestmark = [pytest.mark.sweep, needs_chromium]
SECONDS = 120
CELL = """import pytensor.tensor as pt
from pytensor_onnx import export_onnx
x = pt.scalar("x")
program = export_onnx([x], {"halved": x / 2}, verify=False)
program.page(title="Halves", inputs={"x": {"min": 0, "max": 9, "value": 3}})"""


@contextmanager
def served(name, *arguments):
    """Run the server of notebooks of a module, and yield its address."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", name, *(text.format(port=port) for text in arguments)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(SECONDS):
                try:
                    urllib.request.urlopen(address, timeout=5)
                    break
                except (urllib.error.HTTPError, ConnectionResetError):
                    break
                except OSError:
                    time.sleep(1)
            yield address
        finally:
            process.terminate()


def check_frame(page):
    """Move the slider of the page in the output of a cell."""
    page.locator("iframe[srcdoc]").first.wait_for(timeout=SECONDS * 1000)
    inside = page.locator("iframe[srcdoc]").first.content_frame
    inside.get_by_text("1.5", exact=True).wait_for(timeout=SECONDS * 1000)
    yield
    inside.get_by_label("x", exact=True).focus()
    page.keyboard.press("End")
    inside.get_by_text("4.5", exact=True).wait_for()
    yield


def test_a_page_runs_in_jupyterlab_and_needs_no_kernel(browser, tmp_path):
    needs_tapes()
    cell = {"cell_type": "code", "source": CELL, "metadata": {}, "outputs": []}
    cell |= {"execution_count": None, "id": "one"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {"cells": [cell], "metadata": {"kernelspec": kernel}}
    content |= {"nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "page.ipynb").write_text(json.dumps(content))
    arguments = ["--no-browser", "--allow-root", "--port={port}", "--IdentityProvider.token="]
    arguments += [f"--ServerApp.root_dir={tmp_path}", "--ServerApp.disable_check_xsrf=True"]
    with served("jupyterlab", *arguments) as address:
        page = browser.new_page()
        page.goto(f"{address}/lab/tree/page.ipynb")
        page.locator(".jp-Notebook .jp-Cell").first.click(timeout=SECONDS * 1000)
        page.keyboard.press("Shift+Enter")
        steps = check_frame(page)
        next(steps)
        with urllib.request.urlopen(f"{address}/api/kernels") as answer:
            kernels = json.load(answer)
        assert kernels
        for kernel in kernels:
            request = urllib.request.Request(
                f"{address}/api/kernels/{kernel['id']}", method="DELETE"
            )
            urllib.request.urlopen(request)
        next(steps)
        page.close()


def test_a_page_runs_in_marimo(browser, tmp_path):
    needs_tapes()
    lines = "\n".join(f"    {line}" for line in CELL.splitlines())
    (tmp_path / "page.py").write_text(
        "import marimo\n\napp = marimo.App()\n\n\n@app.cell\ndef _():\n"
        f"{lines}\n    return\n\n\nif __name__ == '__main__':\n    app.run()\n"
    )
    arguments = ["run", str(tmp_path / "page.py"), "--headless", "--no-token", "--port", "{port}"]
    with served("marimo", *arguments) as address:
        page = browser.new_page()
        page.goto(address)
        steps = check_frame(page)
        next(steps)
        next(steps)
        page.close()
