import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.tensor.basic import AllocDiag, ExtractDiag, alloc_diag
from pytensor.tensor.extra_ops import fill_diagonal, fill_diagonal_offset

from pytensor_onnx import compile_onnx
from pytensor_onnx.ops.linalg.matrix_parts import Triangle
from tests.conftest import compare_onnx_and_py, op_types
from tests.dispatch.values import DTYPES, elements, shapes, special_values
from tests.properties import holds_for

OFFSETS = [-7, -2, -1, 0, 1, 3, 7]


class TestEye:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, dtype):
        n, m, k = (pt.lscalar(name) for name in "nmk")
        compare_onnx_and_py([n, m, k], pt.eye(n, m, k, dtype=dtype), [3, 4, 1])

    @pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (1, 1)])
    def test_sizes_and_offsets(self, n, m):
        rows, columns, offset = pt.lscalar("n"), pt.iscalar("m"), pt.scalar("k", dtype="int8")
        outputs = [pt.eye(rows, columns, offset), pt.eye(rows)]
        outputs += [pt.eye(rows, columns, k) for k in OFFSETS]
        compare_onnx_and_py([rows, columns, offset], outputs, [n, np.int32(m), np.int8(-1)])

    def test_identity_like(self):
        x = pt.tensor("x", dtype="float32", shape=(None, 4))
        compare_onnx_and_py([x], pt.identity_like(x), [np.ones((3, 4), "float32")])


class TestTriangles:
    @pytest.mark.each_value
    @pytest.mark.parametrize("k", [-2, 0, 1])
    @pytest.mark.parametrize("dtype", ["int8", "uint64", "int64", "float32", "float64"])
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_tril_and_triu(self, k, dtype, static):
        values = np.arange(24).reshape(2, 3, 4).astype(dtype)
        x = pt.tensor("x", dtype=dtype, shape=values.shape if static else (None,) * 3)
        compare_onnx_and_py([x], [pt.tril(x, k), pt.triu(x, k)], [values])

    @pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
    def test_of_empty_matrices(self, shape):
        x = pt.matrix("x")
        compare_onnx_and_py([x], [pt.tril(x), pt.triu(x)], [np.ones(shape)])

    def test_tri_and_indices(self):
        n, m, k = (pt.lscalar(name) for name in "nmk")
        outputs = [pt.tri(n, m, k), *pt.tril_indices(n, k, m), *pt.triu_indices(n, k, m)]
        compare_onnx_and_py([n, m, k], outputs, [3, 5, 1])


class TestExtractDiag:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, dtype):
        values = np.resize(special_values(dtype), (5, 6))
        x = pt.tensor("x", dtype=dtype, shape=(None, None))
        compare_onnx_and_py([x], pt.diagonal(x, 1), [values])

    @pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (1, 1)])
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_offsets(self, shape, static):
        x = pt.tensor("x", shape=shape if static else (None, None))
        values = np.arange(np.prod(shape, dtype=float)).reshape(shape)
        compare_onnx_and_py([x], [pt.diagonal(x, offset) for offset in OFFSETS], [values])

    @pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (-1, -2), (3, 1)])
    def test_axes(self, axes):
        x = pt.tensor("x", shape=(None, 3, None, 4))
        values = np.arange(120.0).reshape(2, 3, 5, 4)
        outputs = [pt.diagonal(x, offset, *axes) for offset in (-1, 0, 2)]
        compare_onnx_and_py([x], outputs, [values])

    @pytest.mark.parametrize("offset", [-1, 0, 2])
    def test_gradient(self, offset):
        x = pt.tensor("x", shape=(None, None, 4))
        gradient = pytensor.grad((pt.diagonal(x, offset, 1, 2) ** 2).sum(), x)
        compare_onnx_and_py([x], gradient, [np.arange(24.0).reshape(2, 3, 4)])

    def test_trace(self):
        x = pt.tensor("x", dtype="int32", shape=(None, None))
        compare_onnx_and_py([x], pt.trace(x, 1), [np.arange(12, dtype="int32").reshape(3, 4)])

    def test_of_a_static_matrix_is_a_slice(self):
        x = pt.tensor("x", shape=(3, 4))
        program = compare_onnx_and_py([x], pt.diagonal(x), [np.arange(12.0).reshape(3, 4)])
        assert op_types(program) == ["Reshape", "Slice"]


class TestAllocDiag:
    @pytest.mark.each_value
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_dtypes(self, dtype, static):
        values = special_values(dtype)
        x = pt.tensor("x", dtype=dtype, shape=values.shape if static else (None,))
        compare_onnx_and_py([x], [pt.diag(x), pt.diag(x, 1)], [values])

    @pytest.mark.parametrize("size", [0, 1, 4])
    def test_offsets(self, size):
        x = pt.vector("x")
        outputs = [pt.diag(x, offset) for offset in OFFSETS]
        compare_onnx_and_py([x], outputs, [np.arange(1.0, size + 1)])

    @pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 2), (1, 2), (0, 3), (-1, 1)])
    def test_axes(self, axes):
        x = pt.tensor("x", shape=(None, 3, None))
        values = np.arange(24.0).reshape(2, 3, 4)
        outputs = [alloc_diag(x, offset, *axes) for offset in (-1, 0, 2)]
        compare_onnx_and_py([x], outputs, [values])

    def test_gradient(self):
        x = pt.matrix("x")
        gradient = pytensor.grad((alloc_diag(x, 1, 0, 2) ** 2).sum(), x)
        compare_onnx_and_py([x], gradient, [np.arange(6.0).reshape(2, 3)])


class TestFillDiagonal:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, dtype):
        x, value = pt.tensor("x", dtype=dtype, shape=(None, 4)), pt.scalar("value", dtype=dtype)
        values = np.resize(special_values(dtype), (3, 4))
        compare_onnx_and_py([x, value], fill_diagonal(x, value), [values, special_values(dtype)[1]])

    @pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (3, 3, 3), (2,) * 4])
    @pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
    def test_shapes(self, shape, static):
        x, value = pt.tensor("x", shape=shape if static else (None,) * len(shape)), pt.scalar("v")
        compare_onnx_and_py([x, value], fill_diagonal(x, value), [np.zeros(shape), 7.0])

    def test_a_block_that_is_not_cubic_raises(self):
        x = pt.tensor3("x")
        program = compile_onnx([x], fill_diagonal(x, 1), verify=False)
        with pytest.raises(ValueError, match="equal length"):
            program(np.zeros((2, 3, 2)))

    @pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
    @pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2)])
    def test_offsets(self, offset, shape):
        x, value, k = pt.matrix("x"), pt.scalar("v"), pt.iscalar("k")
        outputs = [fill_diagonal_offset(x, value, k), fill_diagonal_offset(x, value, offset)]
        compare_onnx_and_py([x, value, k], outputs, [np.zeros(shape), 7.0, np.int32(offset)])

    @pytest.mark.parametrize("offset", [None, -1, 2])
    def test_gradients(self, offset):
        x, value = pt.matrix("x"), pt.scalar("v")
        filled = fill_diagonal(x, value)
        if offset is not None:
            filled = fill_diagonal_offset(x, value, offset)
        gradients = pytensor.grad((filled**2).sum(), [x, value])
        compare_onnx_and_py([x, value], gradients, [np.arange(12.0).reshape(3, 4), 7.0])


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
