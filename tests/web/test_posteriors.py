"""Samplers of public models as tapes, compared with reference draws of posteriordb.

`posteriordb.json` has data and reference posteriors of github.com/stan-dev/posteriordb
(BSD-3-Clause, commit 28f8d3d).
"""

import json
from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats

from benchmarks.posteriors import POSTERIORS
from pytensor_onnx.pymc import export_sampler
from tests.web.tapes import needs_tapes, run_in_node

KNOWN = json.loads(Path(__file__).with_name("posteriordb.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_the_draws_in_node_have_the_moments_of_the_reference(tmp_path, name):
    needs_tapes()
    given = KNOWN[name]["data"].items()
    model = POSTERIORS[name][0]({k: np.array(v) if type(v) is list else v for k, v in given})
    path = tmp_path / "model.onnx"
    export_sampler(model, path, verify=False)
    feeds = {"seed": np.arange(4), "warmup": np.array(500), "draws": np.array(1000)}
    [found] = run_in_node(path, tmp_path, feeds)
    assert found["finite_start"].all()
    for variable, reference in KNOWN[name]["reference"].items():
        mean, sd, mcse = (np.array(reference[k]) for k in ("mean", "sd", "mcse"))
        draws = found[variable].reshape(4, 1000, -1)
        effective = np.array([array_stats.ess(draws[:, :, i]) for i in range(draws.shape[2])])
        assert (effective > 400).all()
        error = np.hypot(sd / np.sqrt(effective), mcse)
        assert (abs(draws.mean(axis=(0, 1)) - mean) < 4 * error).all()
        np.testing.assert_allclose(draws.std(axis=(0, 1)), sd, rtol=0.15)
