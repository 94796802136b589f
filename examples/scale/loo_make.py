"""Write a regression, draws of its posterior and rows: python loo_make.py loo --rows 1000000."""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pymc as pm

from pytensor_onnx.pymc import export_logp

FEATURES = [f"x{i}" for i in range(4)]
ROWS_OF_FILE = 100_000


def write_density(path: Path) -> None:
    """Export the log-density of each row, for any number of points of the parameters."""
    with pm.Model(coords={"feature": FEATURES}) as model:
        x = pm.Data("x", np.zeros((2, len(FEATURES))), dims=("row", "feature"))
        target = pm.Data("target", np.zeros(2), dims="row")
        slopes = pm.Normal("slopes", 0, 1, dims="feature")
        pm.Normal("y", x @ slopes, 1, observed=target, dims="row")
    export_logp(model, path, outputs=["pointwise"], batch=True)


def make(folder: Path, rows: int, draws: int = 1000) -> None:
    """Write ``density.onnx``, ``draws.npy`` and ``rows/`` into a folder."""
    (folder / "rows").mkdir(parents=True)
    rng = np.random.default_rng(1)
    slopes = rng.normal(size=len(FEATURES))
    precision, weighted = np.eye(len(FEATURES)), np.zeros(len(FEATURES))
    for file, start in enumerate(range(0, rows, ROWS_OF_FILE)):
        x = rng.normal(size=(min(ROWS_OF_FILE, rows - start), len(FEATURES)))
        target = x @ slopes + rng.normal(size=len(x))
        columns = [*x.T, target]
        table = pa.table([pa.array(c) for c in columns], [*FEATURES, "target"])
        pq.write_table(table, folder / "rows" / f"{file:03}.parquet", row_group_size=10_000)
        precision, weighted = precision + x.T @ x, weighted + x.T @ target
    # The posterior of this model is normal, so that its draws are exact.
    covariance = np.linalg.inv(precision)
    np.save(folder / "draws.npy", rng.multivariate_normal(covariance @ weighted, covariance, draws))
    write_density(folder / "density.onnx")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    print(f"writing {given.rows:,} rows and {given.draws:,} draws ...", flush=True)
    make(**vars(given))
    print(f"{given.rows:,} rows, density and draws are in {given.folder}")
