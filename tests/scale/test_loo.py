"""Cross-validation over rows by engines, against ArviZ on the log-likelihood of SciPy.

Ray needs its package: `uv run --all-extras --with 'ray[data]' pytest tests/scale -m sweep`.
"""

import importlib
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pytest
from scipy.stats import norm

arviz = pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("loo")
    importlib.import_module("scale.loo_make").make(folder, rows=300, draws=200)
    return folder


def check(folder: Path, found: dict[str, float]) -> None:
    rows = ds.dataset(folder / "rows").to_table()
    x = np.stack([rows[f"x{i}"].to_numpy() for i in range(4)], axis=1)
    draws = np.load(folder / "draws.npy")
    terms = norm.logpdf(rows["target"].to_numpy(), draws @ x.T, 1)
    tree = arviz.from_dict(
        {"posterior": {"slopes": draws[None]}, "log_likelihood": {"y": terms[None]}}
    )
    expected = arviz.loo(tree, pointwise=True, reff=1.0)
    assert found["rows"] == 300
    np.testing.assert_allclose(found["elpd"], expected.elpd, rtol=1e-12)
    np.testing.assert_allclose(found["se"], expected.se, rtol=1e-10)
    np.testing.assert_allclose(found["k"], expected.pareto_k.max(), rtol=1e-6)


@pytest.mark.slow
def test_duckdb(folder):
    check(folder, importlib.import_module("scale.loo_with_duckdb").loo(folder))


@pytest.mark.sweep
def test_ray(folder, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    example = importlib.import_module("scale.loo_with_ray")
    # The actors of a test cannot import the example.
    ray.cloudpickle.register_pickle_by_value(example)
    try:
        check(folder, example.loo(folder))
    finally:
        ray.shutdown()
