"""Score Parquet files on a cluster of Dask, here of two processes: python with_dask.py work."""

from pathlib import Path

import dask.dataframe as dd
import pandas as pd
from dask.distributed import Client, LocalCluster

from pytensor_onnx_scoring import Scorer


def scored(rows: pd.DataFrame, scorer: Scorer) -> pd.DataFrame:
    """Return the scores of a partition with their ids."""
    return scorer(rows).assign(id=rows["id"])


def score(folder: Path, scorer: Scorer | None = None) -> Path:
    """Write ``scores/dask`` from ``rows`` and ``model.onnx``; return its path."""
    scorer = scorer or Scorer(folder / "model.onnx")
    rows = dd.read_parquet(folder / "rows", split_row_groups=True)
    meta = {"y": "float64", "id": "int64"}
    with (
        # A scorer has one thread, and a process scores one partition at a time.
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        frame = rows.map_partitions(scored, scorer, meta=meta)
        frame.to_parquet(folder / "scores" / "dask", write_index=False)
    return folder / "scores" / "dask"


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(score, __doc__, "make_rows.py")
