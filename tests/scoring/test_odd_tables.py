"""Numbers of every table arrive unchanged, and values that no input takes are named."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from onnx import TensorProto
from scipy.sparse import csr_matrix

from pytensor_onnx_scoring import Scorer, ScoringError
from pytensor_onnx_scoring.columns import Problem, constant, converted, scaled
from pytensor_onnx_scoring.interface import Tensor
from tests.scoring.test_odd_files import file_of

LARGE = 2**53 + 1
KINDS = {"float64": TensorProto.DOUBLE, "int64": TensorProto.INT64, "string": TensorProto.STRING}


@pytest.fixture(scope="module")
def scorers():
    return {name: Scorer(file_of("Identity", kind, ["n"], ["n"])) for name, kind in KINDS.items()}


@pytest.fixture(scope="module")
def pairs():
    return Scorer(file_of("Identity", TensorProto.DOUBLE, ["n", 2], ["n", 2]))


def encoded(values, *indices):
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(indices), pyarrow.array(values))


def run_ends(values):
    ends = pyarrow.array(range(1, len(values) + 1), pyarrow.int32())
    return pyarrow.RunEndEncodedArray.from_arrays(ends, pyarrow.array(values))


def arrow(values, kind=None):
    return pyarrow.array(values, kind)


def as_tables(column):
    """Return a column in a dict, and in a table of its own library."""
    library = type(column).__module__.partition(".")[0]
    makers = {
        "pandas": lambda: pandas.DataFrame({"x": column}),
        "polars": lambda: polars.DataFrame({"x": column}),
        "pyarrow": lambda: pyarrow.table({"x": column}),
    }
    return [{"x": column}, *([makers[library]()] if library in makers else [])]


INTEGERS = {
    "int64": np.array([1, LARGE]),
    "uint64": np.array([1, LARGE], "uint64"),
    "objects": np.array([1, LARGE], object),
    "beside floats": [0.5, LARGE],
    "NumPy's beside floats": [0.5, np.int64(LARGE)],
    "objects beside floats": pandas.Series([0.5, np.int64(LARGE)], dtype=object),
    "nested": [[0.5, 1.0], [1.0, LARGE]],
    "nullable": pandas.Series([1, LARGE], dtype="Int64"),
    "arrow": arrow([1, LARGE]),
    "lists": polars.Series([[1, 2], [LARGE, 2]]),
    "whole decimals": arrow([Decimal(1), Decimal(LARGE)]),
    "wide decimals": polars.Series([Decimal(1), Decimal(LARGE)]),
    "wide": polars.Series([1, LARGE], dtype=polars.Int128),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_that_float64_rounds_are_refused_with_their_row(scorers, name):
    for table in as_tables(INTEGERS[name]):
        with pytest.raises(ScoringError, match=f"x has .*: {LARGE} in row 1"):
            scorers["float64"](table)


def test_the_row_of_a_number_is_that_of_the_table():
    scorer = Scorer(file_of("Identity", TensorProto.DOUBLE, ["n"], ["n"]), batch_size=2)
    column = np.arange(30_000)
    column[25_001] = LARGE
    with pytest.raises(ScoringError, match=f"{LARGE} in row 25001"):
        scorer({"x": column})


@pytest.mark.parametrize(
    ("given", "dtype", "message"),
    [
        ([2**64 - 1], "int64", "integers beyond the range of int64: 18446744073709551615 in row 0"),
        ([1.0, 1.5], "int64", "numbers that int64 does not have: 1.5 in row 1"),
        ([np.nan], "int64", "numbers that int64 does not have: nan in row 0"),
        ([0.0, 1e300], "float32", r"beyond the range of float32: 1e\+300 in row 1"),
        ([0, 2], "bool", "beyond the range of bool: 2 in row 1"),
        ([-(2**63)], "float16", "more digits than float16 has: -9223372036854775808 in row 0"),
    ],
)
def test_numbers_that_a_dtype_lacks_are_named(given, dtype, message):
    with pytest.raises(ValueError, match=message):
        converted(np.asarray(given), np.dtype(dtype))


NULLS = {
    "dictionary": encoded([1.5, None], 0, 1),
    "index": encoded([1.5, 2.5], 0, None),
    "chunks": pyarrow.chunked_array([encoded(["a"], 0), encoded([None, "b"], 0)]),
    "runs": run_ends([1.5, None]),
    "runs in a slice": run_ends([1.5, None]).slice(1),
    "lists": arrow([[1.0, None], [2.0, 3.0]]),
    "encoded lists": pyarrow.ListArray.from_arrays([0, 2], encoded([1.5, None], 0, 1)),
    "fixed lists": arrow([[1.0, None]], pyarrow.list_(pyarrow.float64(), 2)),
    "views": arrow(["a", None], pyarrow.string_view()),
    "no type": pyarrow.nulls(1),
    "decimals": arrow([Decimal("1.5"), None]),
    "polars": polars.Series([1.5, None]),
    "polars lists": polars.Series([[1.0, None]]),
    "polars arrays": polars.Series([[1.0, None]], dtype=polars.Array(polars.Float64, 2)),
    "polars categories": polars.Series(["a", None], dtype=polars.Categorical),
    "polars enum": polars.Series(["a", None], dtype=polars.Enum(["a"])),
    "pandas": pandas.Series([1, None], dtype="Int64"),
    "pandas array": pandas.array([1, None], dtype="Int64"),
    "pandas categories": pandas.Series(["a", None], dtype="category"),
    "pandas with Arrow": pandas.Series(encoded([1.5, None], 0, 1).to_pylist(), dtype=object),
    "pandas of Arrow": pandas.Series(
        pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([encoded([1.5, None], 0, 1)]))
    ),
    "masked": np.ma.masked_greater([1.0, 2.0], 1),
}


@pytest.mark.parametrize("name", NULLS)
def test_nulls_are_seen_in_every_encoding(scorers, name):
    for table in as_tables(NULLS[name]):
        for scorer in scorers.values():
            with pytest.raises(ScoringError, match="column x has nulls"):
                scorer(table)


def test_masked_matrices_have_nulls(pairs):
    with pytest.raises(ScoringError, match="column x has nulls"):
        pairs(np.ma.masked_greater([[1.0, 2.0]], 1))


NUMBERS = {
    "decimals": (arrow([Decimal("1.5"), Decimal("-0.1")]), [1.5, -0.1]),
    "slice": (arrow([Decimal("9.5"), Decimal("-0.1"), Decimal(7)]).slice(1), [-0.1, 7]),
    "chunks": (pyarrow.chunked_array([[Decimal("0.1")], [Decimal("0.2")]]), [0.1, 0.2]),
    "short": (arrow([Decimal("0.7")], pyarrow.decimal32(5, 2)), [0.7]),
    "long": (arrow([Decimal("0.7")], pyarrow.decimal256(50, 30)), [0.7]),
    "many digits": (arrow([Decimal(10) ** 25], pyarrow.decimal128(38, 0)), [1e25]),
    "polars": (polars.Series([Decimal("1.50"), Decimal("-0.10")]), [1.5, -0.1]),
    "wide": (polars.Series([2**100, -1], dtype=polars.Int128), [2.0**100, -1]),
    "objects": ([Decimal("1.5"), Decimal("NaN"), 2], [1.5, np.nan, 2]),
    "runs": (run_ends([1.5, 2.5]), [1.5, 2.5]),
    "dictionary": (encoded([1.5, 2.5], 1, 0, 1), [2.5, 1.5, 2.5]),
    "bytes": (np.array([1.0, 2.0], ">f8")[::-1], [2, 1]),
    "records": (np.array([(0, 1.5)], [("a", "u1"), ("b", "f8")])["b"], [1.5]),
    "sparse": (pandas.Series([0.0, 2.0], dtype="Sparse[float64]"), [0, 2]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_every_type_arrive(scorers, name):
    column, expected = NUMBERS[name]
    for table in as_tables(column):
        result = np.asarray(scorers["float64"](table)["y"])
        np.testing.assert_array_equal(result, np.array(expected, float))


def test_decimals_are_the_floats_next_to_them():
    rng = np.random.default_rng(1)
    for scale in (1, 9, 22):
        integers = rng.integers(-(10**15), 10**15, 200)
        expected = [float(Decimal(int(x)).scaleb(-scale)) for x in integers]
        np.testing.assert_array_equal(scaled(integers, scale), expected)
    assert scaled(np.array([10**15 + 1]), 1) is None
    assert scaled(np.array([-(2**63)]), 1) is None


@pytest.mark.parametrize(
    "column",
    [
        [Decimal("0.12345678901234567890")],
        arrow([Decimal("0.12345678901234567890")]),
        polars.Series([Decimal("0.12345678901234567890")]),
    ],
)
def test_decimals_with_more_digits_than_float64_are_refused(scorers, column):
    message = "more digits than float64 has: 0.12345678901234567890 in row 0"
    with pytest.raises(ScoringError, match=message):
        scorers["float64"]({"x": column})


def test_whole_decimals_are_integers(scorers):
    for column in ([Decimal(LARGE)], arrow([Decimal(LARGE)]), polars.Series([Decimal(LARGE)])):
        assert scorers["int64"]({"x": column})["y"].tolist() == [LARGE]
    with pytest.raises(ScoringError, match=r"int64 does not have: 1.5 in row 0"):
        scorers["int64"]({"x": [Decimal("1.5")]})


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (arrow([1], pyarrow.time64("us")), r"time64\[us\]"),
        (arrow([1], pyarrow.timestamp("s")), r"timestamp\[s\]"),
        (arrow([{"a": 1}]), "struct<a: int64>"),
        (arrow([b"a"]), "binary"),
        (polars.Series([{"a": 1}]), "Struct"),
        (polars.Series([date(2020, 1, 1)]), "Date"),
        (pandas.Series(pandas.to_datetime(["2020"]).tz_localize("UTC")), "Timestamp"),
        (np.array(["2020"], "datetime64[s]"), r"datetime64\[s\]"),
        ([date(2020, 1, 1)], "date"),
    ],
)
def test_types_that_no_input_takes_are_named(scorers, column, kind):
    for table in as_tables(column):
        with pytest.raises(ScoringError, match=f"column x .*{kind}"):
            scorers["float64"](table)


STRINGS = {
    "view": arrow(["a", "b"], pyarrow.string_view()),
    "dictionary": arrow(["a", "b"]).dictionary_encode(),
    "chunks": pyarrow.chunked_array([encoded(["a"], 0), encoded(["b"], 0)]),
    "polars": polars.Series(["a", "b"], dtype=polars.Categorical),
    "pandas": pandas.Series(["a", "b"], dtype="category"),
    "numpy": np.array(["a", "b"]),
}


@pytest.mark.parametrize("name", STRINGS)
def test_strings_of_every_type_arrive(scorers, name):
    for table in as_tables(STRINGS[name]):
        assert list(map(str, scorers["string"](table)["y"])) == ["a", "b"]
        empty = {"x": table["x"][:0]}
        assert len(scorers["string"](empty)["y"]) == 0
    empty = scorers["string"](polars.DataFrame({"x": ["a"]}).head(0))
    assert empty.schema == {"y": polars.String}


LISTS = {
    "lists": arrow([[1.0, 2.0], [3.0, 4.0]]),
    "views": arrow([[1.0, 2.0], [3.0, 4.0]], pyarrow.list_view(pyarrow.float64())),
    "slice": arrow([[0, 0], [1, 2], [3, 4]], pyarrow.list_(pyarrow.int64(), 2)).slice(1),
    "tensors": pyarrow.FixedShapeTensorArray.from_numpy_ndarray(np.array([[1.0, 2], [3, 4]])),
    "polars": polars.Series([[1, 2], [3, 4]]),
    "polars arrays": polars.Series([[1, 2], [3, 4]], dtype=polars.Array(polars.Int8, 2)),
    "decimals": arrow([[Decimal(1), Decimal(2)], [Decimal(3), Decimal(4)]]),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_equal_lengths_are_arrays(pairs, name):
    for table in as_tables(LISTS[name]):
        rows = pairs(table)["y"]
        assert np.array(list(map(list, np.asarray(rows)))).tolist() == [[1.0, 2.0], [3.0, 4.0]]
        with pytest.raises(ScoringError, match="different lengths"):
            pairs({"x": polars.Series([[1.0, 2.0], [3.0]])})


def test_relations_of_duckdb_and_readers_of_arrow_are_tables(scorers):
    duckdb = pytest.importorskip("duckdb")
    query = "SELECT x::DECIMAL(9, 2) AS x FROM range(3) t(x)"
    for read in (lambda x: x, lambda x: x.arrow(), lambda x: x.pl(), lambda x: x.df()):
        result = scorers["float64"](read(duckdb.sql(query)))
        assert list(map(float, np.asarray(result["y"]))) == [0.0, 1.0, 2.0]
    assert isinstance(scorers["float64"](duckdb.sql(query)), pyarrow.Table)


ITERABLES = {
    "generator": lambda: (x for x in [1.0, 2.0]),
    "map": lambda: map(float, [1, 2]),
    "zip": lambda: zip([1.0], [2.0], strict=True),
    "set": lambda: {1.0, 2.0},
    "dict_values": {"a": 1.0}.values,
    "dict": lambda: {"a": 1.0},
    "csr_matrix": lambda: csr_matrix(np.eye(2)),
}


@pytest.mark.parametrize("kind", ITERABLES)
def test_iterables_that_are_no_sequences_are_named_as_columns_and_constants(scorers, kind):
    for scorer in scorers.values():
        with pytest.raises(ScoringError) as caught:
            scorer({"x": ITERABLES[kind]()})
        message = (
            "the table does not fit the file:\n- column x is a {}: give a sequence or an array"
        )
        assert str(caught.value) == message.format(kind)
    with pytest.raises(Problem, match=f"is a {kind}: give a sequence or an array"):
        constant(ITERABLES[kind](), Tensor("x", np.dtype("float64"), (2,), None))


@pytest.mark.parametrize("series", [pandas.Series([1.0], name="x"), polars.Series("x", [1.0])])
def test_a_lone_series_is_no_table(scorers, series):
    with pytest.raises(ScoringError, match="Series is no table: give a dict of columns"):
        scorers["float64"](series)


def test_names_of_features_without_an_input_are_refused():
    file = file_of("Identity", TensorProto.DOUBLE, ["n", 2], ["n", 2])
    with pytest.raises(ScoringError, match=r"give names by inputs and outputs, as in"):
        Scorer(file, feature_names=["a", "b"])
