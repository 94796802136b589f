"""Write a model and a set of Parquet files: python make_rows.py work --rows 1000000."""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytensor.tensor as pt

from pytensor_onnx import export_onnx

COLUMNS = [f"x{i}" for i in range(32)]
ROWS_OF_GROUP = 50_000


def write_model(path: Path) -> None:
    """Export a network of 32 features, 64 hidden units and one output ``y``."""
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(32, 64)) / 6, rng.normal(size=64) / 8
    x = pt.matrix("x", shape=(None, 32))
    y = pt.tanh(x @ first) @ second
    axes = {"x": {0: "row"}}
    export_onnx([x], {"y": y}, path, dynamic_axes=axes, feature_names={"x": COLUMNS})


def write_rows(folder: Path, rows: int, files: int) -> None:
    """Write rows with an ``id`` and the features, in groups, so that memory is that of a group."""
    folder.mkdir(parents=True)
    fields = [pa.field("id", pa.int64()), *(pa.field(name, pa.float64()) for name in COLUMNS)]
    schema = pa.schema(fields)
    for file, ids in enumerate(np.array_split(np.arange(rows), files)):
        with pq.ParquetWriter(folder / f"{file:03}.parquet", schema, compression="NONE") as writer:
            for start in range(0, len(ids), ROWS_OF_GROUP):
                writer.write_batch(_group(ids[start : start + ROWS_OF_GROUP], schema))


def _group(ids: np.ndarray, schema: pa.Schema) -> pa.RecordBatch:
    features = np.random.default_rng(ids[0]).normal(size=(len(COLUMNS), len(ids)))
    return pa.RecordBatch.from_arrays([pa.array(x) for x in (ids, *features)], schema=schema)


def make(folder: Path, rows: int, files: int = 8) -> None:
    """Write ``model.onnx`` and ``rows/`` into a folder."""
    write_rows(folder / "rows", rows, files)
    write_model(folder / "model.onnx")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=8)
    given = parser.parse_args()
    print(f"writing {given.rows:,} rows of {len(COLUMNS)} columns ...", flush=True)
    make(**vars(given))
    print(f"{given.rows:,} rows in {given.folder / 'rows'}, the model is {given.folder}/model.onnx")
