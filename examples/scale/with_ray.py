"""Score Parquet files with actors of Ray Data: python with_ray.py work."""

from pathlib import Path

import pyarrow as pa
import ray

from pytensor_onnx_scoring import Scorer


class Scored:
    """An actor with a scorer, which opens the file once."""

    def __init__(self, model: str) -> None:
        self.scorer = Scorer(model)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Return the scores of a batch with their ids."""
        return self.scorer(batch).append_column("id", batch["id"])


def score(folder: Path, actor: type = Scored) -> Path:
    """Write ``scores/ray`` from ``rows`` and ``model.onnx``; return its path."""
    folder = folder.resolve()
    rows = ray.data.read_parquet(str(folder / "rows"))
    scores = rows.map_batches(
        actor,
        fn_constructor_args=[str(folder / "model.onnx")],
        batch_format="pyarrow",
        batch_size=10_000,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=2),
    )
    scores.write_parquet(str(folder / "scores" / "ray"))
    return folder / "scores" / "ray"


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(score, __doc__, "make_rows.py")
