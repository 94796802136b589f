"""Serve a page on this machine, with the headers that threads of WebAssembly need."""

from __future__ import annotations

import os
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADDRESS = "127.0.0.1"


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".js": "text/javascript",
        ".wasm": "application/wasm",
        ".onnx": "application/octet-stream",
    }

    def end_headers(self) -> None:
        """Isolate the page, so that its threads may share memory."""
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """Refuse to list folders."""
        self.send_error(404, "There is no page here")

    def send_head(self) -> Any:
        """Refuse files outside of the folder, also behind links."""
        path = os.path.realpath(self.translate_path(self.path))
        root = os.path.realpath(self.directory)
        if os.path.commonpath([path, root]) != root:
            self.send_error(404, "There is no page here")
            return None
        return super().send_head()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of pages that are closed while a file is sent."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def make_server(folder: str | os.PathLike, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of a folder, reachable from this machine only.

    Parameters
    ----------
    folder
        The folder; nothing outside of it is served.
    port
        Port; a free one unless given.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, make_server(folder) as server:
    ...     server.server_address[0]
    '127.0.0.1'
    """
    return _Server((ADDRESS, port), partial(_Handler, directory=os.fspath(folder)))
