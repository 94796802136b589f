"""Score Parquet files with Spark, which needs Java: python with_spark.py work."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from pytensor_onnx_scoring import Scorer


def score(folder: Path) -> Path:
    """Write ``scores/spark`` from ``rows`` and ``model.onnx``; return its path."""
    scorer = Scorer(folder.resolve() / "model.onnx")

    def scored(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield scorer(batch).append_column("id", batch["id"])

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", 10_000)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    rows = spark.read.parquet(str(folder / "rows"))
    scores = rows.mapInArrow(scored, "y double, id long")
    scores.write.parquet(str(folder / "scores" / "spark"))
    spark.stop()
    return folder / "scores" / "spark"


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(score, __doc__, "make_rows.py")
