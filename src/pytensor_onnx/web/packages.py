"""Packages of runtimes for pages, and a server for them."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import PyTensorONNXError

SECONDS = 300


@dataclass(frozen=True)
class Package:
    """A package of npm in one version, and the files of it that a page needs.

    Attributes
    ----------
    name, version
        The package.
    files
        Paths inside the package.
    """

    name: str
    version: str
    files: Sequence[str]

    @property
    def cdn(self) -> str:
        """Address of the package's files on a public host."""
        return f"https://cdn.jsdelivr.net/npm/{self.name}@{self.version}/dist/"


RUNTIME = Package(
    "onnxruntime-web",
    "1.30.0",
    (
        "dist/ort.wasm.min.mjs",
        "dist/ort-wasm-simd-threaded.mjs",
        "dist/ort-wasm-simd-threaded.wasm",
    ),
)
WEBGPU_RUNTIME = Package(
    RUNTIME.name,
    RUNTIME.version,
    (
        "dist/ort.webgpu.min.mjs",
        "dist/ort-wasm-simd-threaded.asyncify.mjs",
        "dist/ort-wasm-simd-threaded.asyncify.wasm",
    ),
)


def cache_folder() -> Path:
    """Return the folder of downloaded packages, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pytensor-onnx" / "npm"


def package_files(package: Package) -> list[Path]:
    """Return the files of a package, downloaded by npm unless they are in the cache.

    Raises
    ------
    PyTensorONNXError
        If the files are not in the cache, and npm is missing or fails.
    """
    folder = cache_folder() / f"{package.name}-{package.version}"
    files = [folder / name for name in package.files]
    if not all(file.exists() for file in files):
        _download(package, folder)
    return files


def compressed(file: Path) -> Path:
    """Return a compressed copy of a file, which stands beside it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "runtime.wasm"
    ...     _ = file.write_bytes(bytes(1000))
    ...     compressed(file).name, compressed(file).stat().st_size < 100
    ('runtime.wasm.gz', True)
    """
    target = file.with_name(f"{file.name}.gz")
    if not target.exists():
        with _appearing(target) as part:
            part.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    return target


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """Write a file under another name, as another process may write the same file."""
    part = target.with_name(f"{target.name}.{os.getpid()}")
    yield part
    os.replace(part, target)


def _download(package: Package, folder: Path) -> None:
    npm = shutil.which("npm")
    wanted = f"{package.name}@{package.version}"
    if npm is None:
        raise PyTensorONNXError(
            f"{wanted} is not in {folder}, and there is no npm to download it: install Node.js"
        )
    with tempfile.TemporaryDirectory() as temporary:
        result = subprocess.run(
            [npm, "pack", wanted, "--silent"],
            cwd=temporary,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        archives = list(Path(temporary).glob("*.tgz"))
        if result.returncode or not archives:
            lines = result.stderr.strip().splitlines() or ["no reason given"]
            raise PyTensorONNXError(f"npm cannot download {wanted}: {lines[-1]}")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(temporary, filter="data")
        for name in package.files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with _appearing(target) as part:
                shutil.copyfile(Path(temporary, "package", name), part)


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
