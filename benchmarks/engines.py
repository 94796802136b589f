"""Measure engines that score Parquet files beside a loop around a session of ONNX Runtime.

python -m benchmarks.engines FOLDER --rows 2000000 --engines pyarrow polars duckdb
"""

import argparse
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pytensor_onnx_scoring import Scorer

SCALE = Path(__file__).parents[1] / "examples" / "scale"
BATCH = 10_000


def run_measured(command: list[str]) -> tuple[float, int]:
    """Run a command; return its seconds, and the bytes that its processes had at most."""
    started = time.perf_counter()
    process, peak = subprocess.Popen(command), 0
    while process.poll() is None:
        peak = max(peak, sum(map(_own_memory, _family(process.pid))))
        time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - started, peak


def _family(pid: int) -> list[int]:
    """Return a process and its descendants, which any of its threads may have started."""
    found = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [
                each for child in children.read_text().split() for each in _family(int(child))
            ]
        except OSError:
            continue
    return found


def _own_memory(pid: int) -> int:
    """Return the bytes that a process shares with no other."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(x.split()[1]) for x in lines if x.startswith("Private_"))


def score_by_session(folder: Path) -> None:
    """Score files in a loop around a session of two threads, without a `Scorer`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    result = folder / "scores" / "session"
    result.mkdir(parents=True)
    schema = pa.schema([("y", pa.float64()), ("id", pa.int64())])
    batches = ds.dataset(folder / "rows").scanner(
        batch_size=BATCH,
        batch_readahead=2,
        fragment_readahead=1,
        fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False),
    )
    with pq.ParquetWriter(result / "scores.parquet", schema) as writer:
        for batch in batches.to_batches():
            [y] = session.run(None, {"x": _matrix(batch)})
            columns = [pa.array(y), batch["id"]]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _matrix(batch: pa.RecordBatch) -> np.ndarray:
    return np.stack([batch[f"x{i}"].to_numpy() for i in range(32)], axis=1)


def measure_batches(folder: Path, turns: int = 100) -> dict[str, float]:
    """Return rows a second of one thread for a batch of 10,000 rows, by the way to score it."""
    batch = next(iter(ds.dataset(folder / "rows").scanner(batch_size=BATCH).to_batches()))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    scorer, matrix = Scorer(folder / "model.onnx"), _matrix(batch)
    calls = {
        "session on a matrix": lambda: session.run(None, {"x": matrix}),
        "session on columns": lambda: session.run(None, {"x": _matrix(batch)}),
        "scorer on a matrix": lambda: scorer(matrix),
        "scorer on columns": lambda: scorer(batch),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started)
    return {name: len(batch) / float(np.median(found)) for name, found in times.items()}


def measure_processes(folder: Path) -> dict[str, float]:
    """Return rows a second of processes side by side, by their number and their threads."""
    found = {}
    for processes, threads in ((1, 1), (1, 2), (2, 1), (2, 2), (2, 4)):
        with get_context("spawn").Pool(processes) as pool:
            arguments = [(folder / "model.onnx", threads)] * processes
            rates = pool.starmap(_rate, arguments, chunksize=1)
        found[f"{processes} processes of {threads} threads"] = sum(rates)
    return found


def _rate(model: Path, threads: int, seconds: float = 3.0) -> float:
    scorer = Scorer(model, threads=threads)
    matrix = np.random.default_rng(0).normal(size=(BATCH, 32))
    scorer(matrix)
    started, rows = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        scorer(matrix)
        rows += BATCH
    return rows / (time.perf_counter() - started)


def main() -> None:
    """Print a table of engines, and one of calls with a batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--engines", nargs="+", default=["pyarrow", "duckdb", "polars", "dask"])
    arguments = parser.parse_args()
    folder = arguments.folder
    if not folder.exists():
        make = [str(SCALE / "make_rows.py"), str(folder), "--rows", str(arguments.rows)]
        subprocess.run([sys.executable, *make], check=True)
    for name, rate in (measure_batches(folder) | measure_processes(folder)).items():
        print(f"{name:25} {rate:12,.0f} rows a second", flush=True)
    start = f"from pytensor_onnx_scoring import Scorer; Scorer({str(folder / 'model.onnx')!r})"
    with_scorer = min(run_measured([sys.executable, "-c", start])[0] for _ in range(5))
    python = min(run_measured([sys.executable, "-c", ""])[0] for _ in range(5))
    print(f"a worker starts in {with_scorer - python:.2f} s", flush=True)
    loop = "from benchmarks.engines import *; score_by_session(Path(sys.argv[1]))"
    commands = {"session": ["-c", loop]}
    commands |= {name: [str(SCALE / f"with_{name}.py")] for name in arguments.engines}
    for name, command in commands.items():
        seconds, peak = run_measured([sys.executable, *command, str(folder)])
        rate = arguments.rows / seconds
        print(f"{name:25} {rate:12,.0f} rows a second {peak / 1e6:7,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
