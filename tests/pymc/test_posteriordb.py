"""The comparisons of the benchmark of posteriordb, on draws whose moments are known."""

import json
import time
import zipfile

import numpy as np
import pytensor.scalar.basic as ps
import pytensor.tensor as pt
import pytest

pytest.importorskip("pymc")

from benchmarks import posteriordb
from benchmarks.posterior_page import agrees, apart, is_settled, moments, named, summary
from benchmarks.posterior_parts import compared, difference, wide_numbers
from benchmarks.posteriordb import results_of
from benchmarks.posteriors import measured


@pytest.fixture
def checkout(tmp_path):
    """A collection of one model with two data sets; the second has reference draws."""
    database = tmp_path / "posterior_database"
    for folder in ("models/pymc", "posteriors", "data/data"):
        (database / folder).mkdir(parents=True)
    (database / "models" / "pymc" / "level.py").write_text(
        "def make_model(data) -> pm.Model:\n"
        "    with pm.Model() as model:\n"
        "        pm.Normal('y', pm.Normal('mu', 0, 5), 1, observed=data['y'])\n"
        "    return model\n"
    )
    for name in ("first", "second"):
        reference = f"{name}-level" if name == "second" else None
        info = {"name": f"{name}-level", "model_name": "level", "data_name": name}
        info["reference_posterior_name"] = reference
        (database / "posteriors" / f"{name}-level.json").write_text(json.dumps(info))
        with zipfile.ZipFile(database / "data" / "data" / f"{name}.json.zip", "w") as archive:
            archive.writestr(f"{name}.json", json.dumps({"y": [1.0, 2.0]}))
    return tmp_path


def draws(mean, sd, seed, chains=4, number=1000):
    rng = np.random.default_rng(seed)
    return rng.normal(mean, sd, size=(chains, number))


def test_moments_agree_within_the_errors_of_both_sides():
    ours = {"b": np.stack([draws(0, 1, 1), draws(5, 2, 2)], axis=-1)}
    reference = {"b[1]": draws(0, 1, 3), "b[2]": draws(5, 2, 4), "lost[1]": draws(0, 1, 5)}
    found = compared(ours, reference)
    assert found["compared"] == 2
    assert found["unknown"] == ["lost"]
    assert agrees(found)


@pytest.mark.parametrize(("mean", "sd", "moment"), [(0.2, 1, "mean"), (0, 1.2, "sd")])
def test_other_moments_differ_by_their_number_of_errors(mean, sd, moment):
    found = compared({"a": draws(mean, sd, 1)}, {"a": draws(0, 1, 2)})
    assert not agrees(found)
    assert found[moment]["of"] == "a"
    # Of 4,000 draws each: sqrt(2 / 4000) for a mean, half of the variance of that for an sd.
    error = np.hypot(1, sd) / np.sqrt(4000) / (1 if moment == "mean" else np.sqrt(2))
    assert found[moment]["errors"] == pytest.approx(0.2 / error, rel=0.25)


def test_chains_apart_have_not_settled():
    assert is_settled({"rhat": 1.01, "effective": 400.0})
    assert not is_settled({"rhat": 1.3, "effective": 400.0})
    assert not is_settled({"rhat": 1.01, "effective": 20.0})
    assert not is_settled({"error": "sampling: stopped"})


def test_a_wrong_gradient_beside_a_right_density_is_seen():
    right = [(1.0, np.array([3.0, 4.0]))]
    assert difference([(1.0, np.array([3.0, 4.4]))], right) == pytest.approx([0.0, 0.1])
    assert difference([(1.0, np.array([np.nan, 4.0]))], right) == [0.0, np.inf]


def test_numbers_are_wide_within_the_block_only(monkeypatch):
    # As outside of these tests.
    monkeypatch.setattr(ps.autocast_float, "dtypes", ("float32", "float64"))
    monkeypatch.setattr(ps.autocast_int, "dtypes", ("int8", "int16", "int32", "int64"))
    with wide_numbers():
        assert [pt.constant(number).dtype for number in (1.5, 2)] == ["float64", "int64"]
    assert [pt.constant(number).dtype for number in (1.5, 2)] == ["float32", "int8"]


def test_a_model_is_measured_with_the_data_that_have_a_reference(checkout):
    assert list(measured(checkout)) == ["second-level"]


def test_the_density_of_a_model_is_compared_in_a_process(checkout):
    found = results_of("density", "second-level", checkout, (), 200)
    assert "error" not in found
    assert found["numbers"] == 1
    assert apart(found) < 1e-12


def test_a_process_that_dies_or_hangs_tells_its_step(checkout):
    # Processes of the fork server run what is imported there: the model's file fails, or waits.
    model = checkout / "posterior_database" / "models" / "pymc" / "level.py"
    model.write_text("def make_model(data):\n    raise ValueError('no such data')\n")
    found = results_of("density", "second-level", checkout, (), 200)
    assert found["error"] == "building the model: ValueError: no such data"
    model.write_text("import time\ndef make_model(data):\n    time.sleep(100)\n")
    start = time.time()
    found = results_of("density", "second-level", checkout, (), 1)
    assert "stopped after 1 s" in found["error"]
    assert time.time() - start < 60


def test_the_page_takes_results_that_are_not_there():
    sampled = {"rhat": 1.0, "effective": 900.0, "sample_s": 2.0, "steps": 7.0, "compared": 1}
    sampled |= {x: {"errors": 1.0, "of": "a", "ours": 1.0, "theirs": 1.0} for x in ("mean", "sd")}
    far = sampled | {"mean": {"errors": 9.0, "of": "a", "ours": 1.0, "theirs": 2.0}}
    results = {
        "empty": {},
        "failed": {"density": {"error": "export: none"}},
        "whole": {
            "density": {"numbers": 1, "export_s": 1.0, "python": [1.0, 0.0], "wide": [0.0, 0.0]}
        },
        "drawn": {"file": sampled, "nutpie_numba": sampled | {"sample_s": 1.0, "steps": 3.5}},
        "far": {"file": far},
    }
    rows = dict(summary(results).rows)
    assert rows["posteriors whose density is exported"] == "1 of 5"
    assert rows["effective draws a second, file, of 1 posteriors"] == "0.50"
    assert rows["leapfrog steps a draw, file, of 1 posteriors"] == "2.00"
    assert rows["moments of the reference draws, file"] == "1 of 2"
    assert [row[0] for row in moments(results).rows] == ["drawn", "far"]
    remarks = named(results)
    assert "- failed: density: export: none" in remarks
    assert "- far: file: a is 1 and 2 in the reference, 9.0 errors apart" in remarks
    assert "drawn" not in remarks


def test_results_are_kept_in_one_file_and_taken_from_it(tmp_path, monkeypatch):
    monkeypatch.setattr(posteriordb, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(posteriordb, "PACKED", tmp_path / "packed.json")
    path = tmp_path / "results" / "calls" / "one.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"calls": {"s": [1.23456e-5], "traceback": "long", "tape": True}}))
    posteriordb.pack_results()
    path.unlink()
    posteriordb.unpack_results()
    assert json.loads(path.read_text()) == {"calls": {"s": [1.235e-5], "tape": True}}
    path.write_text("{}")
    posteriordb.unpack_results()
    assert path.read_text() == "{}"
