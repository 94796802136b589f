"""Tables of all kinds are scored alike, and what does not fit is named."""

import pickle
import subprocess
import sys
from types import ModuleType

import numpy as np
import pandas
import pyarrow
import pytensor.tensor as pt
import pytest

import pytensor_onnx.scoring
from pytensor_onnx import export_onnx, native
from pytensor_onnx_scoring import Scorer, ScoringError, opened_file

WIDTH, HEIGHT = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0])
TABLE = {"height": HEIGHT, "width": WIDTH}


@pytest.fixture(scope="module")
def area(tmp_path_factory):
    width, height = pt.vector("width", dtype="float32"), pt.vector("height")
    results = {"area": width * height, "sides": pt.stack([width, height], axis=1)}
    path = tmp_path_factory.mktemp("models") / "area.onnx"
    axes = {"width": {0: "row"}, "height": {0: "row"}}
    export_onnx([width, height], results, path, dynamic_axes=axes)
    return path


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """A file of a matrix whose columns have names, as a second output's have."""
    x, shift = pt.matrix("x", shape=(None, 2), dtype="float32"), pt.scalar("shift")
    results = {"sum": x.sum(axis=1) + shift, "both": pt.stack([x[:, 0], x[:, 1] + 1], axis=1)}
    path = tmp_path_factory.mktemp("models") / "linear.onnx"
    features = {"x": ["a", "b"], "both": ["first", "second"]}
    axes = {"x": {0: "row"}}
    export_onnx([x, shift], results, path, dynamic_axes=axes, feature_names=features)
    return path


def test_columns_go_to_inputs_by_name(area):
    result = Scorer(area)({"unused": ["a", "b", "c"], **TABLE})
    np.testing.assert_array_equal(result["area"], WIDTH * HEIGHT)
    np.testing.assert_array_equal(result["sides"], np.stack([WIDTH, HEIGHT], axis=1))


def test_pandas(area):
    frame = pandas.DataFrame(TABLE, index=[7, 8, 9])
    result = Scorer(area)(frame)
    assert list(result.index) == [7, 8, 9]
    np.testing.assert_array_equal(result["area"], WIDTH * HEIGHT)
    np.testing.assert_array_equal(result["sides"][8], [2.0, 4.0])


def test_a_library_that_another_thread_imports_has_no_tables_yet(area, monkeypatch):
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, ModuleType(library))
    table = pyarrow.table({"width": [1.0], "height": [2.0]})
    assert Scorer(area)(table)["area"].to_pylist() == [2.0]


@pytest.mark.parametrize("kind", [pyarrow.Table, pyarrow.RecordBatch])
def test_arrow(area, kind):
    scorer = Scorer(area)
    result = scorer(kind.from_pydict(TABLE))
    assert isinstance(result, kind)
    assert result.schema == scorer.schema
    assert result.to_pydict() == {
        "area": [3.0, 8.0, 15.0],
        "sides": [[1.0, 3.0], [2.0, 4.0], [3.0, 5.0]],
    }


def test_polars(area):
    polars = pytest.importorskip("polars")
    result = Scorer(area)(polars.DataFrame(TABLE))
    assert isinstance(result, polars.DataFrame)
    assert result["area"].to_list() == [3.0, 8.0, 15.0]
    assert result["sides"].to_list() == [[1.0, 3.0], [2.0, 4.0], [3.0, 5.0]]


def test_arrays_of_records(area):
    records = np.array(list(zip(WIDTH, HEIGHT, strict=True)), [("width", "f4"), ("height", "f8")])
    result = Scorer(area)(records)
    np.testing.assert_array_equal(result["area"], WIDTH * HEIGHT)
    assert result["sides"].shape == (3, 2)


def test_a_matrix_is_the_one_input(linear):
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(
        Scorer(linear, outputs="sum", constants={"shift": 1})(matrix), [4, 8]
    )
    result = Scorer(linear, constants={"shift": 0})(matrix)
    np.testing.assert_array_equal(result["second"], [3, 5])


def test_a_matrix_gathers_the_columns_that_the_file_names(linear):
    scorer = Scorer(linear, constants={"shift": [1.0]})
    result = scorer({"b": [2.0, 4.0], "a": np.array([1, 3], "int8")})
    assert list(result) == ["sum", "first", "second"]
    np.testing.assert_array_equal(result["sum"], [4, 8])
    np.testing.assert_array_equal(result["second"], [3, 5])
    assert scorer.input_columns == {"a": np.dtype("float32"), "b": np.dtype("float32")}


@pytest.mark.parametrize("wanted", [["second", "sum"], ["both"]])
def test_outputs_are_chosen(linear, wanted):
    scorer = Scorer(linear, outputs=wanted, constants={"shift": 0.0})
    columns = ["first", "second"] if wanted == ["both"] else wanted
    assert list(scorer({"a": [1.0], "b": [2.0]})) == columns == list(scorer.output_columns)


@pytest.mark.parametrize("batch_size", [1, 2, "auto"])
def test_long_tables_are_cut(area, batch_size):
    result = Scorer(area, batch_size=batch_size)(TABLE)
    np.testing.assert_array_equal(result["area"], WIDTH * HEIGHT)
    np.testing.assert_array_equal(result["sides"], np.stack([WIDTH, HEIGHT], axis=1))


def test_no_rows_are_no_rows(area):
    scorer = Scorer(area)
    result = scorer({"width": [], "height": []})
    assert {name: x.shape for name, x in result.items()} == {"area": (0,), "sides": (0, 2)}
    batch = pyarrow.RecordBatch.from_pydict(TABLE).slice(0, 0)
    assert scorer(batch).schema == scorer.schema


def test_a_scorer_pickles_without_its_session(area):
    scorer = Scorer(area, outputs=["area"])
    text = pickle.dumps(scorer)
    assert len(text) < 1000
    assert pickle.loads(text)(TABLE)["area"].tolist() == [3.0, 8.0, 15.0]
    of_bytes = Scorer(area.read_bytes())
    assert pickle.loads(pickle.dumps(of_bytes))(TABLE)["area"].tolist() == [3.0, 8.0, 15.0]


def test_scorers_of_a_file_share_a_session(area):
    one, other = (pickle.loads(pickle.dumps(Scorer(area))) for _ in range(2))
    assert one._open().session is other._open().session


NULLABLE = pandas.array([1, None, 3], dtype="Int64")
PROBLEMS = {
    "missing": ({"width": WIDTH}, "column height is missing"),
    "rows": ({"width": [1.0], "height": HEIGHT}, "column width has 1 rows, others have 3"),
    "scalar": ({"width": 1.0, "height": HEIGHT}, "column width is a single value"),
    "rank": ({"width": np.ones((3, 1)), "height": HEIGHT}, r"column width has the shape \[3, 1\]"),
    "dtype": (
        {"width": ["a", "b", "c"], "height": HEIGHT},
        "column width is of <U1, the file takes",
    ),
    "nulls": ({"width": [1, None, 2], "height": HEIGHT}, "column width has nulls"),
    "masked": (
        {"width": np.ma.masked_invalid([1, np.nan, 2]), "height": HEIGHT},
        "column width has nulls",
    ),
    "pandas": (pandas.DataFrame({"width": NULLABLE, "height": HEIGHT}), "column width has nulls"),
    "arrow": (
        pyarrow.table({"width": [1.0, None, 3.0], "height": HEIGHT}),
        "column width has nulls",
    ),
    "digits": ({"width": [2**24 + 1, 1, 1], "height": HEIGHT}, "more digits than float32"),
    "range": ({"width": [1e300, 1, 1], "height": HEIGHT}, "beyond the range of float32"),
    "dates": (
        {"width": np.zeros(3, "datetime64[s]"), "height": HEIGHT},
        r"column width is of datetime64\[s\]",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_columns_that_do_not_fit_are_named(area, name):
    table, message = PROBLEMS[name]
    with pytest.raises(ScoringError, match=message):
        Scorer(area)(table)


def test_all_problems_are_told_at_once(area):
    with pytest.raises(ScoringError) as caught:
        Scorer(area)({"width": np.ma.masked_invalid([np.nan])})
    missing, nulls = (
        "- column height is missing",
        "- column width has nulls: fill or drop these rows",
    )
    assert str(caught.value).splitlines()[1:] == [missing, nulls]
    with pytest.raises(ScoringError) as caught:
        Scorer(area)({"width": [1.0, None]})
    assert str(caught.value).splitlines()[1:] == [missing, nulls]


def test_integers_with_few_digits_convert(area):
    result = Scorer(area)({"width": np.array([2**25, 0, -(2**24)]), "height": [1, 1, 1]})
    assert result["area"].tolist() == [2.0**25, 0.0, -(2.0**24)]


def test_constants_and_options_are_checked(linear, area):
    with pytest.raises(ScoringError, match=r"shift, float64.*constants={'shift': \.\.\.}"):
        Scorer(linear)
    with pytest.raises(ScoringError, match="there is no input shfit"):
        Scorer(linear, constants={"shift": 1, "shfit": 1})
    with pytest.raises(ScoringError, match="there is no output second_: choose of second"):
        Scorer(linear, constants={"shift": 1}, outputs=["second_"])
    with pytest.raises(ScoringError, match="batch_size=0"):
        Scorer(area, batch_size=0)


def test_a_fixed_axis_of_rows_is_named(tmp_path):
    x = pt.vector("x", shape=(8,))
    export_onnx([x], x * 2, tmp_path / "fixed.onnx")
    with pytest.raises(
        ScoringError, match=r"\(x: float64\[8\]\): export the model with dynamic_axes"
    ):
        Scorer(tmp_path / "fixed.onnx")


def test_the_package_hands_it_on():
    assert pytensor_onnx.scoring.Scorer is Scorer


def test_a_worker_imports_no_pytensor(area):
    """Neither on import nor in a run, and the libraries of tables only with their tables."""
    code = f"""
import sys
from pytensor_onnx_scoring import Scorer
assert "onnxruntime" not in sys.modules
Scorer({str(area)!r})({{"width": [1.0], "height": [2.0]}})
late = {{"pytensor", "pytensor_onnx", "onnx", "pandas", "pyarrow", "polars"}}
print(*late & set(sys.modules))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_rows_that_depend_on_each_other_are_refused(tmp_path):
    x = pt.vector("x")
    export_onnx([x], {"centred": x - x.mean()}, tmp_path / "centred.onnx")
    scorer = Scorer(tmp_path / "centred.onnx")
    with pytest.raises(ScoringError, match="output centred of a row depends on the other rows"):
        scorer({"x": [1.0, 2.0]})


@pytest.mark.slow
def test_batches_are_as_long_as_memory_allows(tmp_path, area):
    x, draws = pt.vector("x"), np.linspace(0, 1, 200)
    export_onnx([x], {"mean": pt.cos(x[:, None] * draws).mean(axis=1)}, tmp_path / "mean.onnx")
    assert Scorer(tmp_path / "mean.onnx")._open().step == 2_000_000 // 1600
    assert Scorer(area)._open().step == 10_000
    table = {"x": np.arange(25_000.0)}
    expected = np.cos(np.outer(table["x"], draws)).mean(axis=1)
    found = Scorer(tmp_path / "mean.onnx")(table)["mean"]
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["float32", "float64", "mixed"])
def test_pandas_columns_are_read_at_once_or_alone(linear, kind):
    frame = pandas.DataFrame({"b": [2.0, 4.0], "a": [1, 3]})
    frame = frame if kind == "mixed" else frame.astype(kind)
    scorer = Scorer(linear, constants={"shift": 1.0})
    assert scorer(frame)["sum"].tolist() == [4.0, 8.0]
    with pytest.raises(ScoringError, match="column a is missing"):
        scorer(frame[["b"]])
    if kind == "float64":
        with pytest.raises(ScoringError, match="column b has numbers beyond the range of float32"):
            scorer(frame * [1e300, 1])


def test_sessions_have_the_kernels_of_the_package_unless_they_are_switched_off(monkeypatch):
    found = native.library()
    assert opened_file._kernels() == (str(found) if found else None)
    monkeypatch.setenv(native.SWITCH, "0")
    assert opened_file._kernels() is None


def test_functions_with_kernels_score_as_without(tmp_path, monkeypatch):
    n, a = pt.vector("n"), pt.tensor3("a", shape=(None, 4, 4))
    results = {"g": pt.gammaln(n), "l": pt.linalg.slogdet(a)[1]}
    axes = {"n": {0: "row"}, "a": {0: "row"}}
    model = export_onnx([n, a], results, dynamic_axes=axes, verify=False).proto
    table = {"n": np.linspace(0.1, 90, 7), "a": np.random.default_rng(1).normal(size=(7, 4, 4))}
    kernels = Scorer(model.SerializeToString())(table)
    monkeypatch.setenv(native.SWITCH, "0")
    plain = Scorer(model.SerializeToString(), threads=2)(table)
    for name, values in plain.items():
        np.testing.assert_allclose(kernels[name], values, rtol=1e-12, atol=1e-12)
