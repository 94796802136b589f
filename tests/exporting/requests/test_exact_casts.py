"""Arguments of another dtype are taken where no number changes."""

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pytensor import sparse

from pytensor_onnx import InputError, compile_onnx
from pytensor_onnx.exporting.requests.exact_casts import exactly


def identity(dtype):
    x = pt.vector("x", dtype=dtype)
    return compile_onnx([x], pt.identity(x) if dtype != "bool" else ~~x, verify=False)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [np.array, list, "DataFrame"])
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", [0.5, -0.0, np.nan, np.inf, -np.inf, 2.0**-149, 2.0**127]),
        ("float32", [2**24, -3]),
        ("int32", [2.0, -(2.0**31)]),
        ("int8", [127, -128]),
        ("uint8", [0, 255]),
        ("int64", [2.0**62, -(2.0**63)]),
    ],
)
def test_numbers_that_a_dtype_has_are_taken(kind, dtype, values):
    if kind == "DataFrame":
        kind = pytest.importorskip("pandas").Series
    result = identity(dtype)(kind(values))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, values)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [np.array, list])
@pytest.mark.parametrize(
    ("dtype", "values", "number"),
    [
        ("float32", [0.5, 0.1], "0.1"),
        ("float32", [1e300], "1e+300"),
        ("float32", [2.0**-150], "7.006492321624085e-46"),
        ("float32", [2**24 + 1], "16777217"),
        ("float32", [2**53 + 1], "9007199254740993"),
        ("float32", [2**63 - 1], "9223372036854775807"),
        ("int32", [1, 2**31], "2147483648"),
        ("int32", [1.5], "1.5"),
        ("int64", [2.0**63], "9.223372036854776e+18"),
        ("int64", [np.nan], "nan"),
        ("uint8", [-1], "-1"),
    ],
)
def test_the_first_other_number_is_named(kind, dtype, values, number):
    with pytest.raises(InputError) as caught:
        identity(dtype)(kind(values))
    assert f"{number} is no number of {dtype}. Convert it by .astype(" in str(caught.value)


def test_complex_numbers_and_sparse_matrices_are_taken_too():
    z, m = pt.cvector("z"), sparse.csr_matrix("m", dtype="float32")
    program = compile_onnx([z, m], [2 * z, m.sum()], verify=False)
    numbers, matrix = np.array([1 + 0.5j]), scipy.sparse.csr_matrix([[0.5, 0], [0, 2]])
    doubled, total = program(numbers, matrix)
    np.testing.assert_array_equal(doubled, 2 * numbers)
    assert total == 2.5
    with pytest.raises(InputError, match="input z"):
        program(0.1 * numbers, matrix)
    with pytest.raises(InputError, match="input m"):
        program(numbers, 0.1 * matrix)


def test_values_that_are_no_numbers_are_left():
    assert exactly(["a"], "float32").tolist() == ["a"]
