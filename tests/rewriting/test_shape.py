"""Of an empty array that is reshaped, no size follows from the others."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.extra_ops import broadcast_shape

from pytensor_onnx import export_onnx
from pytensor_onnx.rewriting.shape import SizesAsArrays
from tests.conftest import called, compare_onnx_and_py, op_types


def sizes(*lengths):
    return broadcast_shape(
        *((length,) for length in lengths), arrays_are_shapes=True, allow_runtime_broadcast=True
    )[0]


@pytest.mark.parametrize(
    "lengths", [(1, 1, 1), (3, 1, 1), (1, 3, 1), (1, 1, 3), (3, 3, 1), (3, 1, 3), (0, 1, 0)]
)
def test_sizes_that_broadcast(lengths):
    variables = pt.lscalars("a", "b", "c")
    program = compare_onnx_and_py(variables, sizes(*variables), lengths)
    assert "TopK" not in op_types(program)
    assert "Concat" not in op_types(program)


@pytest.mark.parametrize("lengths", [(2, 3, 1), (2, 1, 3), (1, 2, 3), (0, 2, 1), (2, 2, 0)])
def test_sizes_that_do_not_broadcast_are_refused(lengths):
    variables = pt.lscalars("a", "b", "c")
    program = export_onnx(variables, sizes(*variables), verify=False)
    in_mode = pytensor.function(variables, sizes(*variables), mode="ONNX")
    for call in (program, in_mode):
        with pytest.raises(AssertionError, match="Could not broadcast dimensions"):
            call(*lengths)


def test_a_size_next_to_a_constant():
    length = pt.lscalar("length")
    for n in (1, 4):
        compare_onnx_and_py([length], sizes(length, pt.constant(4)), [n])


@pytest.mark.parametrize("n_labels", [1, 5])
def test_labels_that_broadcast(n_labels):
    x, labels = pt.matrix("x"), pt.lvector("labels")
    picked = pt.special.log_softmax(x, axis=-1)[pt.arange(x.shape[0]), labels]
    values = [np.random.default_rng(0).normal(size=(5, 3)), np.arange(n_labels) % 3]
    compare_onnx_and_py([x, labels], pt.grad(-picked.mean(), x), values, rtol=1e-11)


def test_sizes_known_to_be_equal_leave_no_choice():
    x, labels = pt.matrix("x", shape=(None, 3)), pt.lvector("labels")
    picked = pt.special.log_softmax(x, axis=-1)[pt.arange(x.shape[0]), labels]
    program = export_onnx(
        [x, labels],
        pt.grad(-picked.mean(), x),
        dynamic_axes={"x": {0: "batch"}, "labels": {0: "batch"}},
    )
    assert not {"If", "Where", "Equal", "TopK"} & set(op_types(program))


def test_the_number_of_selected_elements_is_read_from_them():
    x, labels = pt.matrix("x"), pt.lvector("labels")
    picked = x[pt.arange(x.shape[0]), labels]
    mean, taken = picked.mean(), pt.take_along_axis(x, labels[:, None], axis=1).mean()
    values = [np.random.default_rng(0).normal(size=(3, 4)), np.array([1, 0, -1])]
    values[0][1, 2] = np.nan
    for outputs in (mean, [mean, pt.grad(mean, x)], [taken, pt.grad(taken, x)]):
        program = compare_onnx_and_py([x, labels], outputs, values)
        assert not {"If", "Where", "Or", "Equal"} & set(op_types(program))
        compare_onnx_and_py([x, labels], outputs, [values[0][:1], values[1][:1]])
        compare_onnx_and_py([x, labels], outputs, [values[0][:0], values[1][:0]])
        with pytest.raises((IndexError, ValueError), match="could not be broadcast"):
            program(values[0], np.array([1, 0]))
    compare_onnx_and_py([x, labels], mean, [values[0], np.array([2])])
    compare_onnx_and_py([x, labels], mean, [values[0][:1], values[1]])


def test_sizes_of_selected_elements_that_are_not_read_are_those_of_the_indices():
    x, rows, columns = pt.matrix("x"), pt.lvector("rows"), pt.lvector("columns")
    values = [np.ones((3, 4)), np.array([1, 0, -1]), np.array([2])]
    program = compare_onnx_and_py([x, rows, columns], x[rows, columns].shape[0], values)
    assert "GatherND" not in op_types(program)


def test_masks_select_another_number_than_their_size():
    x, mask, columns = pt.matrix("x"), pt.vector("mask", dtype="bool"), pt.lvector("columns")
    y = pt.vector("y", shape=(None,))
    values = [np.ones((3, 4)), np.array([True, False, True]), np.array([1, 2, 0]), np.ones(3)]
    size = sizes(mask.shape[0], columns.shape[0])
    outputs = [x[mask, columns[:2]], x[mask, columns[:1]], y * size]
    compare_onnx_and_py([x, mask, columns, y], outputs, values)


def test_an_array_of_the_size_is_no_measure_of_it():
    x, rows, columns = pt.matrix("x"), pt.lvector("rows"), pt.lvector("columns")
    size = x[rows, columns].shape[0]
    square = pt.arange(size * size).reshape((size, size))[rows, columns]
    values = [np.ones((3, 4)), np.array([1, 0, -1]), np.array([2])]
    compare_onnx_and_py([x, rows, columns], [square, square / size], values)


def results_beside_zero(y, number):
    """Return results computed from an array without columns, and their shapes for two rows."""
    first_is_set = y[:1].set(number)
    results = [y, first_is_set, y[:1] + 0, pt.ones(y.shape[0]), y.sum(axis=1), y[None].shape]
    return results, [(2, 0), (2, 0), (1, 0), (2,), (2,), (3,)]


@pytest.mark.parametrize("shape", [(0,), (1, 0), (3, 0)], ids=str)
@pytest.mark.parametrize("runs", ["model", "function"])
def test_rows_without_elements_are_as_many_as_asked_for(shape, runs):
    x, n, number = pt.tensor("x", shape=shape), pt.lscalar("n"), pt.dscalar("number")
    results, shapes = results_beside_zero(pt.reshape(x, (n, 0)), number)
    if runs == "model":
        program = export_onnx([x, n, number], results)
    else:
        program = pytensor.function([x, n, number], results, mode="ONNX")
    found = program(np.zeros(shape), 2, 7.0)
    assert [np.shape(a) for a in found] == shapes
    np.testing.assert_array_equal(found[-1], [1, 2, 0])


@pytest.mark.parametrize("mask", [np.zeros((1, 0), bool), np.zeros((1, 3), bool)], ids=str)
def test_rows_left_by_a_frozen_mask_have_the_requested_number(mask):
    x, n, number = pt.tensor("x", shape=(1, None)), pt.lscalar("n"), pt.dscalar("number")
    frozen = pytensor.shared(mask, shape=(1, None))
    results, shapes = results_beside_zero(pt.reshape(x[frozen], (n, 0)), number)
    found = export_onnx([x, n, number], results)(np.ones(mask.shape), 2, 7.0)
    assert [np.shape(a) for a in found] == shapes


@pytest.mark.parametrize("build", [pt.exp, pt.atleast_3d, lambda x: x[None, :, None]])
@pytest.mark.few(1)
def test_what_stands_before_or_behind_an_empty_reshape_changes_no_size(build):
    x, n = pt.tensor("x", shape=(1, 0)), pt.lscalar("n")
    inside = pt.reshape(build(x), (n, 1, 0))
    chain = pt.reshape(pt.reshape(x, (n + 1, 0)), (n, 0))
    outside = build(pt.reshape(x, (n, 0)))
    program = export_onnx([x, n], [inside.shape, chain.shape, outside.shape])
    expected = [(2, 1, 0), (2, 0), build(pt.zeros((2, 0))).eval().shape]
    for found, shape in zip(program(np.zeros((1, 0)), 2), expected, strict=True):
        np.testing.assert_array_equal(found, shape)


def test_copies_that_are_joined_have_the_sizes_of_what_is_copied():
    x = pt.tensor("x", dtype="uint64", shape=(0, 4))
    rolled = pt.roll(x, 1, axis=1)
    copies = pt.stack([rolled, rolled, rolled], axis=2)
    compare_onnx_and_py([x], pt.stack([copies, copies * 2]), [np.zeros((0, 4), "uint64")])


def test_joined_axes_beside_a_zero_keep_their_product():
    x = pt.tensor("x", shape=(0, 2, 3))
    assert export_onnx([x], pt.join_dims(x, 1, 2))(np.zeros((0, 2, 3))).shape == (0, 6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mean_reads_the_size_it_divides_by(dtype):
    x = pt.matrix("x", dtype=dtype)
    value = np.arange(6, dtype=dtype).reshape(2, 3)
    for axis in (0, 1):
        program = compare_onnx_and_py([x], x.mean(axis=axis), [value])
        accumulated = ["Cast"] * 2 if dtype == "float32" else []
        assert sorted(op_types(program)) == sorted(
            ["Cast", "Div", "ReduceSum", "Shape", "Squeeze", *accumulated]
        )


def test_mean_divides_by_a_number_where_the_sizes_are_known():
    x = pt.tensor("x", shape=(None, 3, 2))
    program = compare_onnx_and_py([x], x.mean(axis=(1, 2)), [np.arange(12.0).reshape(2, 3, 2)])
    assert op_types(program) == ["ReduceSum", "Mul"]


@pytest.mark.parametrize("position", [0, 1, -1])
def test_an_element_of_a_cast_vector_is_the_cast_element(position):
    n, m = pt.lscalars("n", "m")
    result = pt.stack([n, m]).astype("float32")[position] * 2
    program = compare_onnx_and_py([n, m], result, [2**25 + 1, -3])
    assert op_types(program) == ["Cast", "Mul"]


def test_an_element_at_a_position_from_an_input_is_gathered():
    n, i = pt.lscalars("n", "i")
    compare_onnx_and_py([n, i], pt.stack([n, n * 2]).astype("float32")[i], [3, 1])


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (2, 3, 0)])
def test_the_size_of_all_is_a_product_of_sizes(shape):
    x = pt.tensor("x", shape=(None, 3, None))
    program = compare_onnx_and_py([x], x.size, [np.ones(shape)])
    assert not {"Loop", "ReduceProd", "Concat", "Slice"} & set(op_types(program))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float64"])
def test_the_product_of_a_vector_made_of_numbers(dtype):
    n, m = pt.scalar("n", dtype=dtype), pt.scalar("m", dtype=dtype)
    values = [np.array(number, dtype) for number in (100, 99)]
    compare_onnx_and_py([n, m], [pt.stack([n, m]).prod(), pt.stack([n]).prod()], values)


def test_shape_of_a_part_of_a_split_is_read_from_the_whole():
    x = pt.tensor3("x")
    first, second = pt.split(x, [2, 4], axis=2)
    results = [part.reshape((*part.shape[:2], -1, 2)).sum(axis=1) for part in (first, second)]
    program = compare_onnx_and_py([x], results, [np.arange(18.0).reshape(3, 1, 6)])
    assert "ScatterND" not in op_types(program)
    assert op_types(program).count("Reshape") == 2


@pytest.mark.parametrize("position", [0, 1, 2, -1])
def test_element_of_a_vector_in_which_elements_were_replaced(position):
    x, v = pt.matrix("x"), pt.lscalar("v")
    vector = pt.stack([v, v + 1, v + 2])[::1]
    replaced = pt.set_subtensor(pt.set_subtensor(vector[1], 7)[2], v)
    added = pt.inc_subtensor(vector[1], 7)
    outputs = [replaced[position] * x.shape[0], added[position]]
    compare_onnx_and_py([x, v], outputs, [np.ones((3, 1)), 5])


def test_sizes_of_functions_are_computed_with_arrays():
    x, y = pt.tensor("x", shape=(1,)), pt.tensor("y", shape=(4,))
    chosen = pt.choose(pytensor.shared(np.array([0])), pt.stack([x, x * 2]))
    joined = called(lambda a, b: pt.join(0, a, b), y, called(pt.exp, chosen))
    compare_onnx_and_py([x, y], pt.mean(joined, axis=0), [np.ones(1), np.arange(4.0)])


def with_unknown_sizes(x):
    """Return the result of the same operation with a static shape that knows no size."""
    unknown = x.type.clone(shape=(None,) * x.type.ndim)
    return Apply(x.owner.op, x.owner.inputs, [unknown()]).outputs[0]


def test_a_size_that_one_operand_knows_as_a_number_is_that_number():
    x, y = pt.matrix("x", shape=(4, None)), pt.matrix("y")
    total = with_unknown_sizes(x + y)
    graph = FunctionGraph([x, y], [total], clone=False)
    graph.attach_feature(SizesAsArrays())
    rows, columns = graph.shape_feature.shape_tuple(total)
    assert isinstance(rows, Constant)
    assert rows.data == 4
    assert not isinstance(columns, Constant)


def test_a_size_that_a_cast_changes_is_not_the_number_before():
    x = pt.vector("x")
    size = pt.cast(pt.constant(2.7), "int64")
    repeated = with_unknown_sizes(pt.full((size,), x[0]))
    graph = FunctionGraph([x], [repeated], clone=False)
    graph.attach_feature(SizesAsArrays())
    assert graph.shape_feature.get_shape(repeated, 0).eval() == 2


def test_operands_of_other_sizes_than_the_inferred_number_are_refused():
    x, y = pt.matrix("x", shape=(4, None)), pt.matrix("y")
    mean = with_unknown_sizes(x + y).mean(axis=0)
    f = pytensor.function([x, y], mean, mode="ONNX")
    values = np.linspace(-1, 1, 24).reshape(4, 6), np.arange(24.0).reshape(4, 6) ** 2
    np.testing.assert_allclose(f(*values), (values[0] + values[1]).mean(axis=0))
    with pytest.raises(ValueError, match="axis 0 of input y has the size 3, but 4 is expected"):
        f(values[0], values[1][:3])


def test_batch_of_flattened_images_is_the_batch():
    x = pt.tensor("x", shape=(None, 2, 3))
    program = export_onnx([x], x.reshape((-1, 6)).shape[0])
    assert op_types(program) == ["Shape", "Squeeze"]


def test_size_that_is_given_to_a_reshape_is_the_size_of_the_result():
    x, n = pt.tensor("x", shape=(None, 2, 3)), pt.scalar("n", dtype="int64")
    program = export_onnx([x], x.reshape((x.shape[0], 6)).shape[0])
    assert op_types(program) == ["Shape", "Squeeze"]
    sizes = x.reshape((n, 6)).shape[0]
    for number in (2, -1):
        compare_onnx_and_py([x, n], sizes, [np.zeros((2, 2, 3)), np.int64(number)])


@pytest.mark.parametrize(("factor", "divisor"), [(6, 3), (6, 4), (0, 3), (6, -3)])
def test_quotients_of_sizes(factor, divisor):
    x = pt.matrix("x")
    compare_onnx_and_py([x], (x.shape[1] * factor) // divisor, [np.zeros((2, 5))])


@pytest.mark.each_value
@pytest.mark.parametrize("number", [-7, -4, -1, 3])
@pytest.mark.parametrize("divisor", [1, 2, 3, -2])
def test_sums_of_sizes_are_divided(number, divisor):
    x = pt.matrix("x")
    compare_onnx_and_py([x], (x.shape[1] + number) // divisor, [np.zeros((2, 5))])


def test_number_of_windows_after_windows_takes_a_division_each():
    x = pt.matrix("x")
    once = (x.shape[1] - 3) // 2 + 1
    twice = (once - 5) // 3 + 1
    program = compare_onnx_and_py([x], twice, [np.zeros((2, 12))])
    assert op_types(program).count("Div") == 2
    assert set(op_types(program)) <= {"Shape", "Squeeze", "Add", "Sub", "Div"}


def test_products_that_overflow_are_divided():
    n = pt.scalar("n", dtype="int64")
    compare_onnx_and_py([n], (n * 4) // 4, [np.int64(2**62)])


def test_sizes_that_agree_need_no_check():
    x, labels = pt.tensor("x", shape=(None, 2, 3)), pt.ivector("labels")
    flat = x.reshape((-1, 6))
    one_hot = pt.zeros_like(flat)[pt.arange(flat.shape[0]), labels].set(1.0)
    with pytensor.config.change_flags(floatX="float64"):
        program = export_onnx([x, labels], one_hot)
    assert "If" not in op_types(program)
    assert "Div" not in op_types(program)
