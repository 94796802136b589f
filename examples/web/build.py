"""Make demos, all or the named ones, and a page that shows them: ``python build.py -o site``."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from types import ModuleType

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.site import write_runtime

HERE = Path(__file__).parent
PICTURES = HERE.parents[1] / "docs" / "pictures"
DEMOS = ("digits", "regression", "training", "sampler", "yolo11n")

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; \
img-src 'self' data:; base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<title>Models in the browser</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}">
</head>
<body>
<nav class="home" aria-label="Site"><a href="../index.html">pytensor-onnx</a></nav>
<header>
<h1>Models in the browser</h1>
<p id="text">Written in PyTensor and PyMC, exported as ONNX files, and run by your browser.</p>
</header>
<main class="gallery">
{entries}
</main>
</body>
</html>
"""
LOOK = """
/* As the site. */
:root { --accent: #0a7d91; --text: #222832; --back: #ffffff; --panel: #ffffff; --line: #d1d5da; }
@media (prefers-color-scheme: dark) {
  :root { --accent: #3fb1c5; --text: #ced6dd; --back: #14181e; --panel: #1a1f26; --line: #48566b; }
}
"""
ENTRY = """<section class="panel">
<h2><a href="{name}/index.html">{title}</a></h2>
<a href="{name}/index.html"><img src="pictures/{picture}" alt="The page {title}" width="400"></a>
<p class="hint">{text}</p>
</section>"""


def build(folder: str | Path, demos: Sequence[str] = DEMOS) -> Path:
    """Write the pages of demos and the one that shows them to an empty folder, and return it."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise PyTensorONNXError(f"{target} is not an empty folder: name another with -o")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
        site = Path(temporary) / "site"
        (site / "pictures").mkdir(parents=True)
        entries = []
        for name in demos:
            print(f"making {name}", flush=True)
            load(name).build(site / name, runtime="../runtime/")
            (picture,) = PICTURES.glob(f"{name}.*")
            shutil.copyfile(picture, site / "pictures" / picture.name)
            page = json.loads((site / name / "page.json").read_text())
            page["home"] = [["pytensor-onnx", "../../index.html"], ["All demos", "../index.html"]]
            (site / name / "page.json").write_text(json.dumps(page, indent=1))
            with (site / name / "style.css").open("a", encoding="utf-8") as style_file:
                style_file.write(LOOK)
            if page["runtime"]["engine"] == "onnxruntime" and not (site / "runtime").exists():
                write_runtime(site / "runtime")
            title, text = escape(page["title"]), escape(page["text"])
            entry = ENTRY.format(name=name, title=title, text=text, picture=picture.name)
            entries.append(entry)
        style = f"{demos[0]}/style.css"
        (site / "index.html").write_text(
            PAGE.format(style=style, entries="\n".join(entries)), encoding="utf-8"
        )
        if target.exists():
            target.rmdir()
        os.replace(site, target)
    target.chmod(0o755)
    return target


def load(name: str) -> ModuleType:
    """Return the module that builds a demo."""
    spec = importlib.util.spec_from_file_location(f"build_{name}", HERE / name / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("demos", nargs="*", help=f"demos to make (all: {', '.join(DEMOS)})")
    parser.add_argument("--output", "-o", default="site", help="folder to write (site)")
    given = parser.parse_args()
    if unknown := sorted(set(given.demos) - set(DEMOS)):
        parser.error(f"no demo {', '.join(unknown)}; there are {', '.join(DEMOS)}")
    folder = build(given.output, given.demos or DEMOS)
    print(f"wrote {folder}: any web server shows it, such as python -m http.server -d {folder}")


if __name__ == "__main__":
    main()
