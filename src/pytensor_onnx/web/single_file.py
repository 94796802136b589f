"""Join the folder of a page into one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import mimetypes
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import PyTensorONNXError

_IMPORT = re.compile(r'^import (\{.*?\}) from "\./(\w+)\.js";\n', re.MULTILINE)
_LATE_IMPORT = re.compile(r'await import\("\./(\w+)\.js"\)')
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/|//.*?$)\n?", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(r"<(?:link rel=.(?:preload|modulepreload|stylesheet)|script |meta http).*\n")
_POLICY = (
    "default-src 'none'; script-src '{script}' 'wasm-unsafe-eval'; style-src '{style}'; "
    "worker-src blob:; connect-src data: blob:; img-src blob: data:; media-src blob:; "
    "base-uri 'none'; form-action 'none'"
)


class Page:
    """A page in one HTML file: notebooks show it, and `save` writes it.

    Attributes
    ----------
    text : str
        The content of the file.
    description : dict
        The description of the page.
    height : int
        Pixels of it in a notebook.
    """

    def __init__(self, text: str, description: dict[str, Any], height: int = 640) -> None:
        self.text = text
        self.description = description
        self.height = height

    def save(self, path: str | os.PathLike) -> Path:
        """Write the page to a file, which opens without a server and without a network."""
        file = Path(path)
        try:
            file.write_text(self.text, encoding="utf-8")
        except OSError as error:
            raise PyTensorONNXError(f"{file} cannot be written: {error.strerror}") from None
        return file

    def _repr_html_(self) -> str:
        return frame(self.text, self.height)

    def __repr__(self) -> str:
        return f"Page({len(self.text.encode()) / 1e6:.2f} MB)"


def joined(folder: Path, height: int) -> Page:
    """Return a page whose model is a tape as one HTML file, which opens without a server.

    Parameters
    ----------
    folder
        The folder that `pytensor_onnx.web.site.build_site` wrote.
    height
        Pixels of the page in a notebook.
    """
    page = json.loads((folder / "page.json").read_text(encoding="utf-8"))
    # The model itself is not in the file.
    page["links"] = [link for link in page["links"] if link[1] != "model.onnx"]
    for entry in page["inputs"]:
        if isinstance(example := entry["control"].get("example"), str):
            entry["control"]["example"] = _address(folder / example)
    names = ["model.tape", "tape.wasm.gz", *(x["file"] for x in page["state"].get("values", []))]
    blocks = {name: (folder / name).read_bytes() for name in names}
    blocks["page.json"] = json.dumps(page, separators=(",", ":")).encode()
    blocks["worker.js"] = joined_script(folder, "worker").encode()
    script, style = joined_script(folder, "main"), (folder / "style.css").read_text("utf-8")
    policy = _POLICY.format(script=_digest(script), style=_digest(style))
    text = _HEAD.sub("", (folder / "index.html").read_text(encoding="utf-8"))
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{html.escape(page['title'])}</title>\n<style>{style}</style>"
    )
    parts = [
        f'<script type="text/plain" id="file {name}">{base64.b64encode(content).decode()}</script>'
        for name, content in blocks.items()
    ]
    text = text.replace("<title>Model</title>", head)
    text = text.replace("</body>", "\n".join([*parts, f"<script>{script}</script>", "</body>"]))
    return Page(text, page, height)


def joined_script(folder: Path, entry: str) -> str:
    """Return a module and all modules that it imports as one script, without comments."""
    order: dict[str, str] = {}
    _collect(folder, entry, order)
    return f'"use strict";\n{"".join(order.values())}'


def _collect(folder: Path, name: str, order: dict[str, str]) -> None:
    """Add a module after those that it imports, each as a function of its own scope."""
    text = _COMMENT.sub("", (folder / f"{name}.js").read_text(encoding="utf-8"))
    for other in _imported(text):
        if other not in order:
            _collect(folder, other, order)
    text = _IMPORT.sub(r"const \1 = module_\2;\n", text)
    text = _LATE_IMPORT.sub(r"module_\1", text).replace("import.meta.url", "location.href")
    exported = ", ".join(found for _, found in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", text)
    order[name] = f"const module_{name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


def _imported(text: str) -> Iterator[str]:
    yield from (name for _, name in _IMPORT.findall(text))
    yield from _LATE_IMPORT.findall(text)


def _digest(text: str) -> str:
    """Return the source of a policy that allows one text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _address(file: Path) -> str:
    """Return the content of a file as an address."""
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def frame(page: str, height: int) -> str:
    """Return an element that shows a page within another one.

    Examples
    --------
    >>> frame("<p>A page</p>", 300)
    '<iframe srcdoc="&lt;p&gt;A page&lt;/p&gt;" style="width: 100%; height: 300px; border: 0" ...
    """
    return (
        f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: {height}px; border: 0" '
        'title="A page that runs the model" allow="clipboard-write; camera; microphone"></iframe>'
    )
