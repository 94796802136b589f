"""Fit a regression and make a page of its predictions: ``python build.py -o site``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm

import pytensor_onnx  # noqa: F401  (mode ONNX)
from pytensor_onnx.pymc import export_predictor
from pytensor_onnx.web.controls import read_description
from pytensor_onnx.web.site import build_site

FIELDS, LARGEST = 60, 200


def measured(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nitrogen in kg/ha, rain in mm and yield in t/ha of simulated fields."""
    rng = np.random.default_rng(seed)
    nitrogen, rain = rng.uniform(0, LARGEST, FIELDS), rng.uniform(200, 800, FIELDS)
    expected = (3 + rain / 160) * (1 - np.exp(-(nitrogen + 25) / 70))
    return nitrogen, rain, expected + rng.normal(0, 0.5, FIELDS)


def make_model(nitrogen: Any, rain: Any, observed: Any = None) -> pm.Model:
    """Return a model of a yield that saturates, at a level that the rain decides."""
    with pm.Model() as model:
        nitrogen, rain = pm.Data("nitrogen", nitrogen), pm.Data("rain", rain)
        level, gain = pm.Normal("level", 6, 2), pm.HalfNormal("gain", 1)
        start, scale = pm.Beta("start", 2, 4), pm.Gamma("scale", mu=80, sigma=40)
        share = 1 - (1 - start) * pm.math.exp(-nitrogen / scale)
        mean = (level + gain * (rain - 500) / 100) * share
        mean = pm.Deterministic("mean", mean)
        pm.Normal("yield", mean, pm.HalfNormal("noise", 1), shape=mean.shape, observed=observed)
    return model


def build(folder: str | Path, *, draws: int = 1000, runtime: str = "npm") -> Path:
    """Write the page to an empty folder, and return it."""
    nitrogen, rain, observed = measured()
    with make_model(nitrogen, rain, observed):
        idata = pm.sample(
            draws,
            tune=draws,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compile_kwargs={"mode": "ONNX"},
        )
    # Every field has its own rain in the fit, and all places on the page have one.
    page_model = make_model(np.linspace(0, LARGEST, 50), 400.0)
    page = read_description(Path(__file__).with_name("page.yaml"))
    points = np.round([nitrogen, observed], 2).T.tolist()
    page["outputs"]["yield_mean"]["points"] = points
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "yield.onnx"
        export_predictor(
            page_model,
            idata,
            file,
            draws=min(draws, 500),
            outputs={"mean": ["mean", "hdi"], "yield": ["mean", "hdi"]},
            sample_vars=["yield"],
            target="web",
        )
        return build_site(file, folder, page=page, runtime=runtime)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", "-o", default="site", help="folder to write (site)")
    given = parser.parse_args()
    print(f"wrote {build(given.output)}: any web server shows it")


if __name__ == "__main__":
    main()
