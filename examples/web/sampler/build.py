"""Export a sampler and make a page that draws with it: ``python build.py -o site``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pymc as pm

from pytensor_onnx import ONNXProgram
from pytensor_onnx.pymc import export_sampler
from pytensor_onnx.web.controls import read_description
from pytensor_onnx.web.site import build_site

EFFECTS = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
ERRORS = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]


def export(path: str | Path) -> ONNXProgram:
    """Export the sampler of eight schools, with the measured effects as an input."""
    with pm.Model() as model:
        effects = pm.Data("effects", np.array(EFFECTS), shape=(8,))
        mu, tau = pm.Normal("mu", 0, 10), pm.HalfCauchy("tau", 5)
        theta = mu + tau * pm.Normal("z", shape=8)
        pm.Deterministic("school_a", theta[0])
        pm.Normal("measured", theta, ERRORS, observed=effects)
    return export_sampler(model, path, variables=["mu", "tau", "school_a"], target="web")


def build(folder: str | Path, *, runtime: str = "npm") -> Path:
    """Write the page to an empty folder, and return it."""
    page = read_description(Path(__file__).with_name("page.yaml"))
    page["inputs"]["effects"]["value"] = EFFECTS
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "sampler.onnx"
        export(file)
        return build_site(file, folder, page=page, runtime=runtime)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", "-o", default="site", help="folder to write (site)")
    given = parser.parse_args()
    print(f"wrote {build(given.output)}: any web server shows it")


if __name__ == "__main__":
    main()
