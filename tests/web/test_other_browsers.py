"""Pages of one file in Firefox and in WebKit, of the system's packages, opened from the disk.

Firefox is driven by its own protocol, WebKit by that of WebDriver, so that no driver is downloaded:
``apt-get install firefox-esr webkit2gtk-driver xvfb``.
"""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from scripts.picture_pages import write_page
from scripts.real_files import PackageMissingError
from tests.web.tapes import needs_tapes

pytestmark = pytest.mark.slow
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
WEBKIT = shutil.which("WebKitWebDriver")
PAGES = ["radon", "schools", "density", "training", "speech"]
SECONDS = 20
STATE = """return [
  document.querySelector("#status")?.textContent,
  document.querySelectorAll("#outputs svg, #outputs .bar, #outputs .number").length,
]"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def until(attempt):
    """Return what an attempt returns once it neither fails nor returns nothing."""
    for _ in range(SECONDS * 5):
        try:
            if (found := attempt()) is not None:
                return found
        except OSError:
            pass
        time.sleep(0.2)
    pytest.fail("the browser does not answer")


class Firefox:
    """A client of Marionette: messages are JSON after their length and a colon."""

    def __init__(self, folder):
        port = free_port()
        (folder / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, **quiet)
        self.socket = until(lambda: socket.create_connection(("127.0.0.1", port)))
        self.count = 0
        self.read()
        self.call("WebDriver:NewSession", capabilities={})

    def read(self):
        size = b""
        while (digit := self.socket.recv(1)) != b":":
            size += digit
        text = b""
        while len(text) < int(size):
            text += self.socket.recv(int(size) - len(text))
        return json.loads(text)

    def call(self, command, **parameters):
        self.count += 1
        message = json.dumps([0, self.count, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        *_, error, result = self.read()
        assert error is None, error
        return result

    def open(self, address):
        self.call("WebDriver:Navigate", url=address)

    def value(self, script):
        return self.call("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(SECONDS)


class WebKit:
    """A client of WebDriver, with a screen that nobody sees."""

    def __init__(self, folder):
        port, display = free_port(), f":{90 + os.getpid() % 100}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.screen = subprocess.Popen(["Xvfb", display, "-screen", "0", "1200x900x24"], **quiet)
        settings = {"DISPLAY": display, "LIBGL_ALWAYS_SOFTWARE": "1"}
        # The sandbox of WebKit needs namespaces, which containers may lack.
        settings["WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS"] = "1"
        command = [WEBKIT, f"--port={port}"]
        self.process = subprocess.Popen(command, env={**os.environ, **settings}, **quiet)
        self.address = f"http://127.0.0.1:{port}/session"
        capabilities = {"capabilities": {"alwaysMatch": {}}}
        self.address += f"/{until(lambda: self.post('', capabilities))['sessionId']}"

    def post(self, path, content):
        request = urllib.request.Request(
            self.address + path, json.dumps(content).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]

    def open(self, address):
        self.post("/url", {"url": address})

    def value(self, script):
        return self.post("/execute/sync", {"script": script, "args": []})

    def close(self):
        for process in (self.process, self.screen):
            process.terminate()
            process.wait(SECONDS)


@pytest.fixture(scope="module", params=[Firefox, WebKit])
def other(request, tmp_path_factory):
    """Return a browser that is not Chromium."""
    if request.param is Firefox and FIREFOX is None:
        pytest.skip("there is no Firefox among the system's packages")
    if request.param is WebKit and (WEBKIT is None or shutil.which("Xvfb") is None):
        pytest.skip("there is no WebKitWebDriver, or no Xvfb")
    opened = request.param(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    needs_tapes()
    folder = tmp_path_factory.mktemp("pages")
    try:
        return {name: write_page(name, folder) for name in PAGES}
    except PackageMissingError as error:
        pytest.skip(str(error))


def result_of(browser):
    """Return the status and the number of results, None while the page is at work."""
    status, shown = browser.value(STATE)
    # It says that it is ready, and runs at once.
    is_at_work = status is None or status.endswith("…") or status == "Ready."
    return None if is_at_work else (status, shown)


def test_pages_show_their_results(other, files):
    for name, file in files.items():
        other.open(file.as_uri())
        status, shown = until(lambda: result_of(other))
        assert (name, status) == (name, "Done.")
        assert shown > 0, name
