"""Score Parquet files with RunInference of Apache Beam: python with_beam.py work."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.parquetio import ReadFromParquetBatched, WriteToParquetBatched
from apache_beam.ml.inference.base import ModelHandler, RunInference

from pytensor_onnx_scoring import Scorer


class TableHandler(ModelHandler[pa.Table, pa.Table, Scorer]):
    """Scores tables; Beam's own handler of ONNX files takes files of one input."""

    def __init__(self, model: str) -> None:
        super().__init__(max_batch_size=1)
        self.model = model

    def load_model(self) -> Scorer:
        """Open the file, once for each process."""
        return Scorer(self.model)

    def run_inference(
        self,
        batch: Sequence[pa.Table],
        model: Scorer,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterable[pa.Table]:
        """Return the scores of tables with the ids of their rows."""
        return [model(table).append_column("id", table["id"]) for table in batch]


def score(folder: Path) -> Path:
    """Write ``scores/beam`` from ``rows`` and ``model.onnx``; return its path."""
    model = str(folder.resolve() / "model.onnx")
    schema = Scorer(model).schema.append(pa.field("id", pa.int64()))
    with beam.Pipeline() as pipeline:
        (
            pipeline
            | ReadFromParquetBatched(f"{folder}/rows/*.parquet")
            | RunInference(TableHandler(model))
            | WriteToParquetBatched(
                f"{folder}/scores/beam/scores", schema, file_name_suffix=".parquet"
            )
        )
    return folder / "scores" / "beam"


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(score, __doc__, "make_rows.py")
