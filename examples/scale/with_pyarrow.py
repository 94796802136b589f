"""Score Parquet files in one process with pyarrow: python with_pyarrow.py work."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pytensor_onnx_scoring import Scorer


def score(folder: Path) -> Path:
    """Write ``scores/pyarrow`` from ``rows`` and ``model.onnx``; return its path."""
    scorer = Scorer(folder / "model.onnx", threads=2)
    rows = ds.dataset(folder / "rows").scanner(
        batch_size=10_000,
        # By default, Arrow reads 16 batches of four files ahead, and keeps the bytes of files.
        batch_readahead=2,
        fragment_readahead=1,
        fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False),
    )
    result = folder / "scores" / "pyarrow"
    result.mkdir(parents=True, exist_ok=True)
    schema = scorer.schema.append(pa.field("id", pa.int64()))
    with pq.ParquetWriter(result / "scores.parquet", schema) as writer:
        for batch in rows.to_batches():
            writer.write_batch(scorer(batch).append_column("id", batch["id"]))
    return result


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(score, __doc__, "make_rows.py")
