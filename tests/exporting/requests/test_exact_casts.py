"""Arguments of another dtype are taken where no number changes."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pytensor import sparse

from pytensor_onnx import InputError, compile_onnx
from pytensor_onnx_scoring.exact_casts import exactly


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
        ("float64", [2**53, -(2**60), 2**63]),
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
        ("float64", [1, 2**53 + 1], "9007199254740993"),
        ("float64", np.array([0.5, np.int64(2**53 + 1)], object), "9007199254740993"),
        ("float64", [2**64 - 1], "18446744073709551615"),
        ("float16", [-(2**63)], "-9223372036854775808"),
        ("int64", [2**64 - 1], "18446744073709551615"),
    ],
)
def test_the_first_other_number_is_named(kind, dtype, values, number):
    with pytest.raises(InputError) as caught:
        identity(dtype)(kind(values))
    assert f"{number} is no number of {dtype}. Convert it by .astype(" in str(caught.value)


@pytest.mark.parametrize("kind", [int, np.int64, np.array, lambda x: np.array(x, object)])
def test_a_single_integer_keeps_its_digits(kind):
    x = pt.scalar("x")
    program = compile_onnx([x], x * 2, verify=False)
    assert program(kind(2**53)) == 2.0**54
    with pytest.raises(InputError, match=r"x: .* 9007199254740993 is no number of float64"):
        program(kind(2**53 + 1))


def test_the_place_of_a_number_is_named():
    x = pt.matrix("x")
    program = compile_onnx([x], x * 2, verify=False)
    with pytest.raises(InputError, match=r"at \[1, 2\], 9007199254740993 is no number"):
        program(np.arange(6).reshape(2, 3) // 5 * (2**53 + 1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float64", "complex128"])
def test_iterables_that_are_no_sequences_are_named(dtype):
    program = identity(dtype)
    for given in ((x for x in [1.0]), map(int, [1]), zip([1], strict=True), {1}, {1: 2}.values()):
        kind = type(given).__name__
        with pytest.raises(InputError) as caught:
            program(given)
        assert str(caught.value).endswith(f" was given a {kind}: give a sequence or an array")
    with pytest.raises(InputError, match=r"at \[1\], a set: give a sequence or an array"):
        identity("float64")([1.0, {2.0}])


@pytest.mark.each_value
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("layout", ["unaligned", "swapped", "objects", "mapped", "masked"])
def test_arrays_of_any_layout_are_taken(layout, named, tmp_path):
    x, z = pt.matrix("x"), pt.vector("z", dtype="complex128")
    program = compile_onnx([x, z], [x * 2, z * 2], verify=False)
    values, numbers = np.arange(6.0).reshape(2, 3), np.array([1 + 2j])
    np.save(tmp_path / "x.npy", values)
    given, also = {
        "unaligned": (unaligned(values)[::-1], unaligned(numbers)),
        "swapped": (values.astype(">f8")[::-1], numbers.astype(">c16")),
        "objects": (values.astype(object)[::-1], numbers),
        "mapped": (np.load(tmp_path / "x.npy", mmap_mode="r")[::-1], numbers),
        "masked": (np.ma.masked_greater(values, 9)[::-1], numbers),
    }[layout]
    for _ in range(2):
        found, doubled = program(z=also, x=given) if named else program(given, also)
        np.testing.assert_array_equal(found, 2 * values[::-1])
        np.testing.assert_array_equal(doubled, 2 * numbers)


def unaligned(values):
    array = np.zeros(values.nbytes + 1, "uint8")[1:].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


def test_masked_values_are_refused():
    with pytest.raises(InputError, match="with masked values: fill or drop them"):
        identity("float64")(np.ma.masked_greater([1.0, 2.0], 1))


@pytest.mark.parametrize("values", [np.array([1.0, 2.0], ">f8"), [1, 2], unaligned(np.ones(2))])
def test_states_that_are_set_keep_their_numbers(values):
    w = pytensor.shared(np.zeros(2), name="w")
    program = compile_onnx([], w, updates={w: w + 1}, verify=False)
    program.state["w"] = values
    np.testing.assert_array_equal(program(), values)
    np.testing.assert_array_equal(program.state["w"], np.asarray(values) + 1)
    program.state["w"] = np.array([2**53 + 1, 0])
    with pytest.raises(InputError, match="state w is float64"):
        program()


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
    with pytest.raises(InputError, match="16777217 is no number of float32"):
        program([2**24 + 1], matrix)


def test_values_that_are_no_numbers_are_left():
    assert exactly(["a"], "float32").tolist() == ["a"]
