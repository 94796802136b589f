"""Score Parquet files as a lazy frame of Polars: python with_polars.py work."""

from pathlib import Path

import polars as pl

from pytensor_onnx_scoring import Scorer


def score(folder: Path) -> Path:
    """Write ``scores/polars`` from ``rows`` and ``model.onnx``; return its path."""
    scorer = Scorer(folder / "model.onnx")

    def scored(rows: pl.DataFrame) -> pl.DataFrame:
        return scorer(rows).with_columns(rows["id"])

    result = folder / "scores" / "polars"
    result.mkdir(parents=True, exist_ok=True)
    frame = pl.scan_parquet(folder / "rows" / "*.parquet").map_batches(
        scored, schema={"y": pl.Float64, "id": pl.Int64}, streamable=True
    )
    frame.sink_parquet(result / "scores.parquet")
    return result


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(score, __doc__, "make_rows.py")
