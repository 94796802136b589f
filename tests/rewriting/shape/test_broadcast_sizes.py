import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.extra_ops import broadcast_shape

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py, op_types


def sizes(*lengths):
    return broadcast_shape(
        *((length,) for length in lengths), arrays_are_shapes=True, allow_runtime_broadcast=True
    )[0]


def test_sizes_that_broadcast():
    variables = pt.lscalars("a", "b", "c")
    first, *others = (
        lengths
        for lengths in [(1, 1, 1), (3, 1, 1), (1, 3, 1), (1, 1, 3), (3, 3, 1), (3, 1, 3), (0, 1, 0)]
    )
    program = compare_onnx_and_py(variables, sizes(*variables), first, also=others)
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
