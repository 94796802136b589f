"""Engines over one set of Parquet files: the scores of all are those of a session.

Ray, Spark and Beam need their packages: `uv run --all-extras --with 'ray[data]' pytest tests/scale
-m sweep`, and the same with pyspark and apache-beam.
"""

import importlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from scale.make_rows import COLUMNS, make

from benchmarks.engines import run_measured
from pytensor_onnx_scoring import Scorer

ROWS = 5_000
EXAMPLES = Path(__file__).parents[2] / "examples" / "scale"
IN_ONE_PROCESS = ("pyarrow", "duckdb", "polars")
IN_SEVERAL = (("ray", "ray"), ("spark", "pyspark"), ("beam", "apache_beam"))


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make(folder, ROWS, files=3)
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "work"))


def expected(folder: Path) -> np.ndarray:
    """Return the scores of a session by ids."""
    rows = ds.dataset(folder / "rows").to_table()
    features = np.stack([rows[name].to_numpy() for name in COLUMNS], axis=1)
    [scores] = onnxruntime.InferenceSession(folder / "model.onnx").run(None, {"x": features})
    return scores[np.argsort(rows["id"].to_numpy())]


def check(folder: Path, engine: str) -> None:
    """Compare the scores of an engine: each row is there once, with the number of a session."""
    scores = ds.dataset(folder / "scores" / engine, format="parquet").to_table()
    order = np.argsort(scores["id"].to_numpy())
    wanted = expected(folder)
    np.testing.assert_array_equal(scores["id"].to_numpy()[order], np.arange(len(wanted)))
    np.testing.assert_array_equal(scores["y"].to_numpy()[order], wanted)


@pytest.mark.parametrize("engine", IN_ONE_PROCESS)
def test_engines_in_one_process(folder, engine):
    importlib.import_module(f"scale.with_{engine}").score(folder)
    check(folder, engine)


@pytest.mark.slow
def test_dask(folder):
    importlib.import_module("scale.with_dask").score(folder)
    check(folder, "dask")


@pytest.mark.sweep
@pytest.mark.parametrize(("engine", "package"), IN_SEVERAL)
def test_engines_in_several_processes(folder, engine, package):
    pytest.importorskip(package)
    if engine == "spark" and not shutil.which("java"):
        pytest.skip("Spark needs Java, and there is none")
    run(engine, folder)
    check(folder, engine)


def run(engine: str, folder: Path) -> None:
    """Run the script of an engine as a user does."""
    script = str(EXAMPLES / f"with_{engine}.py")
    # Ray would start its workers by `uv run`, where that has started the tests.
    environment = os.environ | {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    subprocess.run([sys.executable, script, str(folder)], check=True, env=environment)


class KilledOnce(Scorer):
    """A scorer that ends its process at the second call of all."""

    def __init__(self, model: Path, calls: Path) -> None:
        super().__init__(model)
        self.calls = calls

    def __call__(self, table):
        with self.calls.open("a") as calls:
            calls.write(".")
        if self.calls.read_text() == "..":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(table)


@pytest.mark.sweep
def test_a_killed_worker_of_dask_loses_and_doubles_no_row(folder, tmp_path):
    scorer = KilledOnce(folder / "model.onnx", tmp_path / "calls")
    importlib.import_module("scale.with_dask").score(folder, scorer)
    assert len((tmp_path / "calls").read_text()) > 3
    check(folder, "dask")


@pytest.mark.sweep
def test_a_killed_worker_of_ray_loses_and_doubles_no_row(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    folder = tmp_path / "work"
    make(folder, rows=60_000, files=6)
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    calls = tmp_path / "calls"

    class Killed:
        def __init__(self, model: str) -> None:
            self.scorer = Scorer(model)

        def __call__(self, batch: pa.Table) -> pa.Table:
            with calls.open("a") as file:
                file.write(".")
            if calls.read_text() == "..":
                os.kill(os.getpid(), signal.SIGKILL)
            return self.scorer(batch).append_column("id", batch["id"])

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        importlib.import_module("scale.with_ray").score(folder, Killed)
    finally:
        ray.shutdown()
    assert len(calls.read_text()) > 2
    check(folder, "ray")


LARGE_ROWS = 6_000_000
LARGEST_MEMORY = 1_000_000_000
"""Bytes that the processes of an engine may use for 1.5 GB of rows."""


@pytest.mark.sweep
@pytest.mark.parametrize("engine", [*IN_ONE_PROCESS, "dask"])
def test_memory_is_that_of_batches(tmp_path_factory, engine):
    folder = tmp_path_factory.getbasetemp() / "large"
    if not folder.exists():
        make(folder, LARGE_ROWS, files=12)
    script = str(EXAMPLES / f"with_{engine}.py")
    _, peak = run_measured([sys.executable, script, str(folder)])
    scores = ds.dataset(folder / "scores" / engine, format="parquet").to_table()
    seen = np.zeros(LARGE_ROWS, "int8")
    np.add.at(seen, scores["id"].to_numpy(), 1)
    assert seen.min() == seen.max() == 1
    assert peak < LARGEST_MEMORY


def test_a_script_tells_its_arguments_and_ends_with_rows_and_result(folder):
    script = [sys.executable, str(EXAMPLES / "with_polars.py")]
    refused = subprocess.run(
        [*script, str(folder.parent)], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert f"python make_rows.py {folder.parent}" in refused.stderr
    lines = subprocess.check_output([*script, str(folder)], text=True).splitlines()
    assert lines[-1].startswith(f"{ROWS:,} rows in ")
    assert lines[-1].endswith(str(folder / "scores" / "polars"))
