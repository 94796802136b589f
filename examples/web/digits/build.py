"""Train a network on handwritten digits and make a page to draw them on: ``python build.py``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from pytensor_onnx.cli.demo import run_digits
from pytensor_onnx.web.controls import read_description
from pytensor_onnx.web.site import build_site


def build(folder: str | Path, *, epochs: int = 40, runtime: str = "npm") -> Path:
    """Write the page to an empty folder, and return it."""
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(temporary) / "digits.onnx"
        run_digits(model, epochs=epochs, on_epoch=lambda epoch, loss: None)
        page = read_description(Path(__file__).with_name("page.yaml"))
        return build_site(model, folder, page=page, runtime=runtime)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", "-o", default="site", help="folder to write (site)")
    given = parser.parse_args()
    print(f"wrote {build(given.output)}: any web server shows it")


if __name__ == "__main__":
    main()
