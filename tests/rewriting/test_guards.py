"""PyTensor's rewrites change no result: divisions by one, reshapes, diagonals, repeated numbers."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_onnx import PyTensorONNXError, compile_onnx
from tests.conftest import compare_onnx_and_py, op_types


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_floor_division_by_one_rounds_floats(dtype):
    x, one = pt.vector("x", dtype=dtype), pt.constant(np.array([1], "uint8"))
    quotients = pytensor.function([x], [x // one, x // 1, x // pt.ones_like(x)], mode="ONNX")
    values = np.array([-0.5, 1.5, 2, np.inf, np.nan], dtype)
    with np.errstate(invalid="ignore"):
        expected = np.floor_divide(values, np.ones(1, dtype))
    for found in quotients(values):
        # PyTensor's own rewrites drop the division, so that it is no reference.
        np.testing.assert_array_equal(found, expected, strict=True)


def test_other_divisions_by_one_leave_no_node():
    x, n = pt.vector("x"), pt.lvector("n")
    program = compare_onnx_and_py([x, n], [-x / 1, abs(n) // 1], [np.ones(2), np.array([-3, 4])])
    assert sorted(op_types(program)) == ["Abs", "Neg"]


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_known_quotient_is_the_one_of_its_operands(dtype):
    k = pt.constant(np.array([0, 2], dtype))
    x = pt.constant(np.array([0, 0], dtype))
    f = pytensor.function([], [x / x, x / k, k / k, k / x], mode="ONNX")
    # PyTensor's own rewrites return zeros and ones, so that they are no reference.
    nan = np.nan
    np.testing.assert_array_equal(f(), [[nan, nan], [nan, 0], [nan, 1], [nan, np.inf]])


@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8"])
def test_zero_over_zero_is_nan_unless_it_is_an_integer(dtype):
    x = pt.vector("x", dtype=dtype)
    zero = pt.constant(np.zeros(1, dtype))
    compare_onnx_and_py([x], [zero / x, zero // x], [np.array([0, 1, 2], dtype)])


def test_the_known_minimum_of_integers_is_the_smallest_one():
    x = pt.constant(np.array([3, -128], "int8"))
    (found,) = pytensor.function([], [pt.min(x)], mode="ONNX")()
    assert found == -128


def test_without_elements_a_size_may_change():
    x, y = pt.tensor("x", shape=(None, 0)), pt.tensor("y", shape=(1, None))
    results = [pt.reshape(x, (1, 0)), pt.repeat(x.T, 0, axis=1), pt.repeat(y, 0, axis=1)]
    # PyTensor's own rewrites return x for the first, so that they are no reference.
    found = pytensor.function([x, y], results, mode="ONNX")(np.zeros((5, 0)), np.ones((1, 5)))
    assert [a.shape for a in found] == [(1, 0), (0, 0), (1, 0)]


def test_a_size_beside_a_zero_is_not_computed():
    x, n = pt.vector("x", shape=(0,)), pt.lvector("n")
    y = pt.split_dims(x, axis=0, shape=(n.shape[0], 3, 0))
    compare_onnx_and_py([x, n], [y[-1:2], y.shape[0]], [np.zeros(0), np.arange(3)])


def test_a_size_beside_one_that_may_be_zero_may_change():
    x, n = pt.matrix("x"), pt.lscalar("n")
    for shape, length in (((4, 0), 3), ((2, 3), 2)):
        results = [pt.reshape(x, (n, x.shape[1])), pt.reshape(x.T, (x.shape[1], n))]
        compare_onnx_and_py([x, n], results, [np.ones(shape), length])


def test_a_reshape_to_the_own_shape_leaves_no_node():
    x = pt.matrix("x")
    for shape in (x.shape, (x.shape[0], x.shape[1]), (x.shape[0], -1)):
        program = compare_onnx_and_py([x], pt.reshape(abs(x), shape), [np.ones((2, 3))])
        assert op_types(program) == ["Abs"]


@pytest.mark.parametrize("offset", [0, 1, -1, 4])
def test_the_new_axis_of_a_diagonal_is_the_last(offset):
    x = pt.tensor3("x")
    filled = pt.alloc(2.0, *x.shape)
    diagonals = [
        pt.diagonal(a, offset, *axes)
        for a in (filled, pt.exp(x))
        for axes in ((0, 1), (0, 2), (1, 2))
    ]
    compare_onnx_and_py([x], diagonals, [np.arange(15.0).reshape(5, 3, 1)])


@pytest.mark.parametrize("offset", [0, 1, -1, 5, -5])
def test_a_diagonal_beyond_the_corner_is_empty(offset):
    n, v = pt.lscalar("n"), pt.vector("v")
    matrices = [pt.alloc(2.0, n, n), pt.eye(n), pt.eye(n, n, 1), pt.diag(v, 1), pt.outer(v, v)]
    compare_onnx_and_py([n, v], [pt.diagonal(m, offset) for m in matrices], [2, np.arange(2.0)])


def test_of_a_product_only_the_diagonal_is_computed():
    x, y = pt.matrix("x", shape=(3, 4)), pt.matrix("y", shape=(4, 3))
    program = compare_onnx_and_py(
        [x, y], pt.diagonal(x @ y), [np.arange(12.0).reshape(3, 4), np.ones((4, 3))]
    )
    assert "MatMul" not in op_types(program)


def test_of_values_set_at_one_position_the_last_is_read():
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    written = x[i].set(y)
    f = pytensor.function([x, y, i], [written[i], x[1:].set(y)[1:]], mode="ONNX")
    # PyTensor's own rewrites read 5 and 6, so that they are no reference.
    last, sliced = f([1.0, 2.0, 3.0], [5.0, 6.0], [0, -3])
    np.testing.assert_array_equal(last, [6.0, 6.0])
    np.testing.assert_array_equal(sliced, [5.0, 6.0])


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.any, pt.all], ids=lambda f: f.__name__)
def test_a_number_that_is_repeated_no_times_is_not_in_a_reduction(reduce, count):
    x, v, n = pt.scalar("x"), pt.vector("v", dtype="int64"), pt.lscalar("n")
    repeated = [pt.alloc(x, n), pt.alloc(x, count), pt.alloc(v, n, 2)]
    results = [reduce(a, axis=0) for a in repeated]
    reference = pytensor.function([x, v, n], results, mode=Mode("py", None))
    # PyTensor's own rewrites are wrong here, so that they are no reference.
    function = pytensor.function([x, v, n], results, mode="ONNX")
    for number in (2.0, 0.0, np.inf):
        values = [number, np.array([1, 0]), count]
        found = function(*values)
        for a, b in zip(found, reference(*values), strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("reduce", [pt.max, pt.min], ids=lambda f: f.__name__)
def test_no_repeated_numbers_have_no_extremes(reduce):
    x, v, n = pt.scalar("x"), pt.vector("v", dtype="int64"), pt.lscalar("n")
    for result in (reduce(pt.alloc(x, n)), reduce(pt.alloc(v, n, 2), axis=0)):
        f = pytensor.function([x, v, n], result, mode="ONNX", on_unused_input="ignore")
        np.testing.assert_array_equal(f(2.0, [1, 1], 3), 1 if result.ndim else 2)
        with pytest.raises(ValueError, match="zero-size array"):
            f(2.0, [1, 1], 0)


def test_what_is_repeated_no_times_has_no_unique_values():
    x, n = pt.vector("x"), pt.lscalar("n")
    repeated = [pt.alloc(x, n, 2), pt.repeat(x, n), pt.second(pt.alloc(1.0, n, 2), x)]
    f = pytensor.function([x, n], [pt.unique(a) for a in repeated], mode="ONNX")
    # PyTensor's own rewrites take the values of x, so that they are no reference.
    for count, expected in ((0, []), (2, [1.0, 3.0])):
        for found in f([3.0, 1.0], count):
            np.testing.assert_array_equal(found, expected)


def test_the_unique_values_are_those_of_what_is_repeated():
    x = pt.vector("x", shape=(2,))
    repeated = pt.unique(pt.alloc(x, 3, 2))
    assert "Expand" not in op_types(compare_onnx_and_py([x], repeated, [np.ones(2)]))


def test_a_number_that_is_repeated_is_reduced_once():
    x, n = pt.scalar("x"), pt.lscalar("n")
    repeated = [pt.alloc(x, 3, 2), pt.ones(n)]
    program = compare_onnx_and_py(
        [x, n], [pt.sum(a) for a in repeated] + [pt.max(repeated[0])], [2.0, 3]
    )
    assert not {"Expand", "ReduceSum", "ReduceMax"} & set(op_types(program))


def test_repeated_numbers_are_cut_to_integers_after_the_reduction():
    x = pt.vector("x")
    stacked = pt.stack([x, x, x])
    outputs = [pt.prod(stacked, dtype="int64"), pt.sum(stacked, dtype="int8")]
    run = compile_onnx([x], outputs)
    assert [int(y) for y in run(np.array([1.5, 1.5]))] == [11, 9]


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod])
def test_integers_wrap_around_before_they_are_reduced(reduce):
    a, x = pt.scalar("a", dtype="int8"), pt.vector("x", dtype="int8")
    values = np.array([100, 101, 7, -128], "int8")
    compare_onnx_and_py([a, x], [reduce(a * x), reduce(-x)], [np.int8(3), values])


def test_magnitudes_and_signs_are_those_of_integers_that_wrapped_around():
    x, n = pt.vector("x", dtype="int8"), pt.vector("n", dtype="int64")
    results = [abs(2 * x), abs(x * x), pt.sign(x * x), pt.sign(pt.prod(n))]
    values = [np.array([100, -100, 12, -128], "int8"), np.array([2**40, 2**40, -3])]
    compare_onnx_and_py([x, n], results, values)


@pytest.mark.parametrize("factor", [2.0, np.inf, np.nan, 0.0])
@pytest.mark.parametrize("is_known", [True, False])
def test_the_sum_of_no_multiples_is_zero(factor, is_known):
    x = pt.matrix("x", shape=(None, 2))
    a = pt.constant(factor) if is_known else pt.scalar("a")
    inputs, values = ([x], []) if is_known else ([x, a], [factor])
    for length in (0, 3):
        results = [pt.sum(a * x, axis=0), pt.sum(x / a)]
        compare_onnx_and_py(inputs, results, [np.ones((length, 2)), *values])


@pytest.mark.parametrize(("shape", "factor"), [((3,), None), ((None,), 2.0)])
def test_a_sum_of_multiples_is_a_multiple_of_the_sum(shape, factor):
    x, a = pt.vector("x", shape=shape), pt.scalar("a") if factor is None else pt.constant(factor)
    inputs, values = ([x, a], [np.float64(2)]) if factor is None else ([x], [])
    program = compare_onnx_and_py(inputs, pt.sum(a * x), [np.arange(3.0), *values])
    assert op_types(program) == ["ReduceSum", "Mul"]


def test_products_of_multiples_do_not_overflow():
    x, a = pt.vector("x"), pt.scalar("a")
    compare_onnx_and_py([x, a], pt.prod(a * x), [np.full(100, 1e-10), np.float64(1e10)])


def test_the_log_of_a_sum_with_nearly_one_is_not_the_one_with_one():
    x = pt.vector("x", dtype="float32")
    near = pt.constant(np.nextafter(np.float32(1), np.float32(2)))
    one = pt.constant(np.float32(1))
    values = np.array([0, 1e-9, -1e-9], "float32")
    program = compare_onnx_and_py([x], pt.log(near + x), [values])
    assert op_types(program) == ["Add", "Log"]
    compare_onnx_and_py([x], [pt.log(one + x), pt.log(one - x)], [values[:1]])


@pytest.mark.parametrize("index", [3, -2])
def test_a_wrong_index_into_a_row_of_one_fails(index):
    x = pt.matrix("x", shape=(None, 1))
    for y in ((2 * x)[:, index], pt.exp(x)[0][index]):
        f = pytensor.function([x], y, mode="ONNX")
        with pytest.raises(PyTensorONNXError, match="bounds"):
            f(np.ones((4, 1)))


def test_the_only_cell_of_a_row_is_read_before_it_is_computed():
    x = pt.matrix("x", shape=(None, 1))
    program = compare_onnx_and_py([x], [pt.exp(x)[2, 0], pt.exp(-x)[2, -1]], [np.ones((4, 1))])
    assert not {"Exp"} - {*op_types(program)}


def test_numbers_without_a_sign_are_negated_in_silence(capfd):
    x, y = pt.vector("x", dtype="uint8"), pt.vector("y", dtype="float16")
    values = [np.array([1, 255], "uint8"), np.array([2, 4], "float16")]
    compare_onnx_and_py([x, y], [-x, 1 / y], values)
    pytensor.function([x, y], [-x, pt.reciprocal(y)], mode="ONNX")
    assert "Rewrite failure" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "piece",
    [np.s_[::-2], np.s_[:-9:-2], np.s_[-9:1], np.s_[9:0:-1], np.s_[1:], np.s_[:1], np.s_[0:2:2]],
)
def test_a_slice_of_one_row_is_the_row_it_begins_with(piece):
    x = pt.matrix("x", shape=(2, 3))
    results = [x[piece].flatten(), x[piece].squeeze(0), pt.argmax(x[piece])]
    compare_onnx_and_py([x], results, [np.array([[4.0, 3, 0], [0, 2, 1]])])


def test_the_sign_of_a_quotient_by_zero_is_that_of_infinity():
    x = pt.vector("x")
    values = np.array([0.0, -0.0, 2, -3, np.inf, np.nan])
    compare_onnx_and_py([x], [pt.sign(1 / x), pt.sign(pt.exp(x) / x)], [values])
