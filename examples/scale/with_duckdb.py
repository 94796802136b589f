"""Score Parquet files in SQL of DuckDB: python with_duckdb.py work."""

from pathlib import Path

import duckdb
import pyarrow as pa

from pytensor_onnx_scoring import Scorer


def score(folder: Path) -> Path:
    """Write ``scores/duckdb`` from ``rows`` and ``model.onnx``; return its path."""
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
    return result


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(score, __doc__, "make_rows.py")
