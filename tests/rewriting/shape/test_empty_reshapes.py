"""Of an empty array that is reshaped, no size follows from the others."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import compare_onnx_and_py


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


@pytest.mark.slow
def test_copies_that_are_joined_have_the_sizes_of_what_is_copied():
    x = pt.tensor("x", dtype="uint64", shape=(0, 4))
    rolled = pt.roll(x, 1, axis=1)
    copies = pt.stack([rolled, rolled, rolled], axis=2)
    compare_onnx_and_py([x], pt.stack([copies, copies * 2]), [np.zeros((0, 4), "uint64")])


def test_joined_axes_beside_a_zero_keep_their_product():
    x = pt.tensor("x", shape=(0, 2, 3))
    assert export_onnx([x], pt.join_dims(x, 1, 2))(np.zeros((0, 2, 3))).shape == (0, 6)
