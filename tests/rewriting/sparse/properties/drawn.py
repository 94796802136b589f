"""Sparse matrices drawn by Hypothesis, and the comparison of mode ONNX with SciPy on them."""

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from pytensor.graph.basic import Variable

from tests.conftest import assert_same, dense

Shape = tuple[int, int]
Operations = dict[str, tuple[Variable, Callable[..., Any]]]
"""Result and its reference, a function of SciPy's matrices and NumPy's arrays, by name."""

FEW, MANY = 5, 400
KINDS, FLOATS, INTEGERS = ("csr", "csc"), ("float32", "float64"), ("int8", "uint16", "int64")
COMPLEX = "complex128"


def runs(dtypes: Sequence[str]) -> pytest.MarkDecorator:
    """Run a test for a few examples of each dtype, and by hand for many of each kind and dtype."""
    few = [(kind, dtype, FEW) for kind, dtype in zip(3 * KINDS, dtypes, strict=False)]
    many = [
        pytest.param(kind, dtype, MANY, marks=pytest.mark.sweep)
        for kind in KINDS
        for dtype in dtypes
    ]
    return pytest.mark.parametrize(("kind", "dtype", "examples"), [*few, *many])


def numbers(dtype: str) -> st.SearchStrategy:
    """Draw numbers whose sums and products are exact, infinities and NaN."""
    if dtype.startswith("float"):
        halves = [0.0, -0.0, 0.5, 1.0, -1.0, -2.5, 3.0, 4.0]
        return st.sampled_from([*halves, np.inf, -np.inf, np.nan])
    if dtype.startswith("complex"):
        parts = numbers("float64")
        return st.builds(complex, parts, parts)
    signs = (1,) if dtype.startswith("u") else (1, -1)
    return st.sampled_from([sign * n for n in (0, 1, 2, 7, 100) for sign in signs])


def sizes(largest: int = 4) -> st.SearchStrategy:
    """Draw a size of an axis."""
    return st.integers(0, largest)


@st.composite
def arrays(draw: Callable, dtype: str, shape: Sequence[int], values: Any = None) -> np.ndarray:
    """Draw a dense array."""
    count = int(np.prod(shape))
    values = numbers(dtype) if values is None else values
    drawn = draw(st.lists(values, min_size=count, max_size=count))
    return np.array(drawn, dtype).reshape(shape)


@st.composite
def matrices(draw: Callable, kind: str, dtype: str, shape: Shape, values: Any = None) -> Any:
    """Draw a matrix, often with unsorted and duplicate indices, zeros and empty rows."""
    major, minor = shape if kind == "csr" else shape[::-1]
    most = 5 if major and minor else 0
    count = draw(st.integers(0, most))
    rows, indices = (
        draw(st.lists(st.integers(0, max(size - 1, 0)), min_size=count, max_size=count))
        for size in (major, minor)
    )
    pointers = np.searchsorted(sorted(rows), np.arange(major + 1))
    vectors = (draw(arrays(dtype, (count,), values)), np.array(indices, "int32"), pointers)
    return _CLASSES[kind](vectors, shape=shape, dtype=dtype)


_CLASSES = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def with_entries(x: Any, data: np.ndarray) -> Any:
    """Return the matrix with other values of its entries."""
    return type(x)((data, x.indices, x.indptr), shape=x.shape)


def places(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the column of each entry, in the order of the entries."""
    entries = x.tocoo(copy=True)
    return entries.row, entries.col


def comparable(found: Any, expected: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of matrices of one structure, as duplicates may cancel, else arrays."""
    same = sp.issparse(found) and found.format == expected.format
    if same and all(
        np.array_equal(getattr(found, name), getattr(expected, name))
        for name in ("indices", "indptr")
    ):
        return found.data, expected.data
    return np.asarray(dense(found)), dense(expected)


def assert_scipy_agrees(
    inputs: Sequence[Variable],
    operations: Operations,
    strategy: st.SearchStrategy,
    examples: int,
) -> None:
    """Assert that mode ONNX returns what SciPy and NumPy do, for drawn values of the inputs."""
    results = [result for result, _ in operations.values()]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is made dense")
        f = pytensor.function(inputs, results, mode="ONNX", on_unused_input="ignore")

    @settings(max_examples=examples)
    @given(strategy)
    def check(values: Sequence[Any]) -> None:
        found = f(*copy.deepcopy(values))
        for result, (name, (variable, reference)) in zip(found, operations.items(), strict=True):
            # SciPy merges entries in place.
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = reference(*copy.deepcopy(values))
            try:
                assert sp.issparse(result) == sp.issparse(expected)
                if sp.issparse(result):
                    assert result.format == variable.type.format
                    result.check_format(full_check=True)
                assert_same(*comparable(result, expected))
            except AssertionError as error:
                error.add_note(name)
                raise

    check()
