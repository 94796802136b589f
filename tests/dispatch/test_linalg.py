"""Structure of diagonals and triangles; the values of each dtype are in the records."""

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.tensor.basic import AllocDiag, ExtractDiag, alloc_diag
from pytensor.tensor.extra_ops import fill_diagonal

from pytensor_onnx import compile_onnx
from pytensor_onnx.ops.linalg.matrix_parts import Triangle
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import DTYPES, elements, shapes
from tests.properties import holds_for


def test_identities_and_diagonals_of_static_sizes():
    x = pt.tensor("x", dtype="float32", shape=(None, 4))
    vector, matrix = pt.vector("v", shape=(3,)), pt.tensor("m", shape=(2, 5))
    value = pt.scalar("value")
    outputs = [pt.identity_like(x), pt.diag(vector, 1), pt.tril(matrix, 1), pt.triu(matrix, -2)]
    outputs += [pt.diagonal(matrix, k) for k in (-7, -1, 0, 1, 7)]
    outputs += [fill_diagonal(matrix, value), pt.diagonal(alloc_diag(matrix, 1, 0, 2), 1, 0, 2)]
    values = [np.ones((3, 4), "float32"), np.arange(3.0), np.arange(10.0).reshape(2, 5), 7.0]
    compare_onnx_and_py([x, vector, matrix, value], outputs, values)


def test_the_diagonal_of_a_static_matrix_is_a_slice():
    x = pt.tensor("x", shape=(3, 4))
    program = compare_onnx_and_py([x], pt.diagonal(x), [np.arange(12.0).reshape(3, 4)])
    assert op_types(program) == ["Reshape", "Slice"]


def test_a_block_that_is_not_cubic_raises():
    x = pt.tensor3("x")
    program = compile_onnx([x], fill_diagonal(x, 1), verify=False)
    with pytest.raises(ValueError, match="equal length"):
        program(np.zeros((2, 3, 2)))


@holds_for(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    shape=shapes(min_dims=2, max_dims=4, max_side=4),
    offset=st.integers(-5, 5),
    static=st.booleans(),
)
def test_any_diagonal_is_read_and_written_as_in_numpy(data, dtype, shape, offset, static):
    values = data.draw(hnp.arrays(dtype, shape, elements=elements(dtype)))
    axis1, axis2 = sorted(data.draw(st.permutations(range(len(shape))))[:2])
    x = pt.tensor("x", dtype=dtype, shape=shape if static else (None,) * len(shape))
    diagonal = ExtractDiag(offset, axis1, axis2)(x)
    matrices = AllocDiag(axis1=axis1, axis2=axis2, offset=offset)(diagonal)
    compare_onnx_and_py([x], [diagonal, matrices], [values])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_triangles_are_numpys_and_read_no_other_element(dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    kinds = [(lower, diagonal) for lower in (True, False) for diagonal in (-1, 0, 1)]
    results = [Triangle(lower=lower, diagonal=diagonal)(x) for lower, diagonal in kinds]
    value = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(dtype)
    value[0, 2, 0] = value[1, 0, 3] = np.nan
    program = compare_onnx_and_py([x], results, [value])
    for (lower, diagonal), found in zip(kinds, program(value), strict=True):
        np.testing.assert_array_equal(found, (np.tril if lower else np.triu)(value, diagonal))
    assert {node.op_type for node in program.model.graph} == {"Trilu"}
    assert [y.shape for y in program(np.zeros((0, 3, 0), dtype))] == [(0, 3, 0)] * 6
