"""Score Parquet files in SQL of DuckDB: python with_duckdb.py work."""

import sys
from pathlib import Path

import duckdb
import pyarrow as pa

from pytensor_onnx_scoring import Scorer


def score(folder: Path) -> None:
    """Write ``scores/duckdb`` from ``rows`` and ``model.onnx``."""
    scorer = Scorer(folder / "model.onnx")
    names = list(scorer.input_columns)

    def y(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
        return scorer(pa.table(list(columns), names))["y"]

    result = folder / "scores" / "duckdb"
    result.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as database:
        database.create_function("y", y, None, "DOUBLE", type="arrow")
        scored = f"SELECT id, y({', '.join(names)}) AS y FROM '{folder}/rows/*.parquet'"
        database.execute(f"COPY ({scored}) TO '{result}/scores.parquet'")


if __name__ == "__main__":
    score(Path(sys.argv[1]))
