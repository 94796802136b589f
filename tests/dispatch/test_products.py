import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import strategies as st
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from pytensor.tensor.math import Dot

from pytensor_onnx import InputError, PyTensorONNXError, compile_onnx
from tests.conftest import compare_onnx_and_py, op_types
from tests.properties import holds_for
from tests.targets.conftest import is_repaired

DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]
FLOATS = ["float16", "float32", "float64"]
TOLERANCE = {"float16": 1e-3, "float32": 1e-6}


def array(shape, dtype="float64", seed=0):
    """Return numbers whose products fill the integers, so that they wrap around."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return np.round(rng.normal(size=shape), 2).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def compare(inputs, outputs, values, dtype="float64", **options):
    return compare_onnx_and_py(inputs, outputs, values, atol=TOLERANCE.get(dtype, 0), **options)


@pytest.mark.each_value
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_of_every_dtype_are_multiplied(dtype, static):
    shapes = (2, 3), (3, 4)
    x, y = (pt.tensor(dtype=dtype, shape=s if static else (None, None)) for s in shapes)
    values = [array(s, dtype) for s in shapes]
    compare([x, y], [Dot()(x, y), x @ y, y.T @ x.T], values, dtype)


@pytest.mark.parametrize(
    "dtypes", [("int8", "float32"), ("bool", "int16"), ("uint8", "int64"), ("float16", "float64")]
)
def test_different_dtypes_are_multiplied_in_their_common_one(dtypes):
    x, y = (pt.matrix(dtype=dtype) for dtype in dtypes)
    values = [array((2, 3), dtypes[0]), array((3, 2), dtypes[1])]
    compare([x, y], [Dot()(x, y), pt.tensordot(x, y, 1)], values, "float32")


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "uint32", "uint64", "float32"])
@pytest.mark.parametrize(
    "shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 0, 0), (1, 1, 1), (1, 0, 1)]
)
def test_empty_and_single_sizes(shape, dtype):
    rows, inner, columns = shape
    x, y = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype)
    u, v = pt.vector("u", dtype=dtype), pt.vector("v", dtype=dtype)
    values = [array(s, dtype) for s in ((rows, inner), (inner, columns), (rows,), (inner,))]
    results = [x @ y, x @ v, u @ x, v @ v, pt.outer(u, v), pt.dot(x, v), pt.dot(u, x)]
    compare([x, y, u, v], results, values, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_of_every_dtype(dtype):
    x, u, v = pt.matrix("x", dtype=dtype), pt.vector("u", dtype=dtype), pt.vector("v", dtype=dtype)
    values = [array((2, 3), dtype), array((2,), dtype), array((3,), dtype)]
    results = [pt.dot(u, x), pt.dot(x, v), pt.dot(v, v), pt.outer(u, v), pt.vecdot(x, v[None])]
    compare([x, u, v], results, values, dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float64"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((5, 2, 3, 4), (2, 4, 1)),
        ((5, 1, 3, 4), (1, 2, 4, 2)),
        ((2, 3, 4), (4,)),
        ((3,), (2, 3, 4)),
        ((0, 3, 4), (0, 4, 5)),
        ((2, 3, 0), (2, 0, 5)),
        ((2, 0, 3), (3, 2)),
    ],
    ids=str,
)
def test_batches_of_matrices_are_multiplied(first, second, dtype):
    shapes = [[1 if size == 1 else None for size in shape] for shape in (first, second)]
    x, y = (pt.tensor(dtype=dtype, shape=shape) for shape in shapes)
    program = compare([x, y], pt.matmul(x, y), [array(first, dtype), array(second, dtype)], dtype)
    products = [node for node in program.model.graph.all_nodes() if node.op_type == "MatMul"]
    made_by = {v.producer().op_type for node in products for v in node.inputs if v.producer()}
    assert not {"Reshape", "Expand"} & made_by


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_batch_times_a_batch_is_one_node(dtype):
    x, y = pt.tensor("x", dtype=dtype, shape=(None, None, 4)), pt.tensor3("y", dtype=dtype)
    w = pt.matrix("w", dtype=dtype)
    values = [array((2, 3, 4), dtype), array((2, 4, 5), dtype), array((4, 2), dtype)]
    for result in (x @ y, x @ w):
        assert op_types(compare([x, y, w], result, values, dtype)) == ["MatMul"]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint32", "uint64", "bool"])
@pytest.mark.parametrize(("left", "right"), [(4, 4), (1, 4), (4, 1)])
def test_a_batch_of_empty_products_is_zero(left, right, dtype):
    sizes = [(left, 2, 0), (right, 0, 3), (4, 2, 3)]
    types = [(1 if size[0] == 1 else None, None, None) for size in sizes]
    x, y, used = (pt.tensor(dtype=dtype, shape=shape) for shape in types)
    values = [np.ones(size, dtype) for size in sizes]
    for _ in range(5):
        compare_onnx_and_py([x, y, used], [used * used, x @ y, used + x @ y], values)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint32"])
@pytest.mark.parametrize("size", [0, 3])
def test_a_batch_of_products_without_elements_is_as_long_as_its_operands(dtype, size):
    x = pt.tensor3("x", dtype=dtype)
    last = pt.constant(np.full((1, 1, 1), 2, dtype)) * x[-1]
    values = [np.ones((2, size, size), dtype)]
    compare_onnx_and_py([x], [last @ x, x @ last, last @ last], values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ops_of_batches(dtype):
    x, y = pt.tensor3("x", dtype=dtype), pt.tensor3("y", dtype=dtype)
    values = [array((2, 3, 4), dtype), array((2, 4, 2), dtype)]
    program = compare([x, y], BatchedDot()(x, y), values, dtype)
    assert "MatMul" in op_types(program)


@pytest.mark.parametrize("axes", [0, 1, 2, [[0], [1]], [[2, 0], [0, 1]], [[1, 0], [1, 2]]], ids=str)
def test_tensors_are_contracted(axes):
    x, y = pt.tensor3("x"), pt.tensor3("y")
    values = [array((3, 3, 3)), array((3, 3, 3), seed=1)]
    compare_onnx_and_py([x, y], pt.tensordot(x, y, axes), values, atol=1e-14)


def test_products_by_einsum():
    x, y = pt.tensor3("x"), pt.tensor3("y")
    results = [pt.einsum(text, x, y) for text in ("bij,bjk->bik", "bij,bjk->bk", "bij,cjk->bcik")]
    values = [array((2, 3, 4)), array((2, 4, 5))]
    compare_onnx_and_py([x, y], results, values, atol=1e-14)


@pytest.mark.xfail(
    not is_repaired("1.32"),
    strict=True,
    reason="ONNX Runtime before 1.32 refuses to repeat a matrix no times",
)
@pytest.mark.parametrize(
    ("first", "second"),
    [((2, 3), (0, 3, 4)), ((1, 2, 3), (0, 3, 4))],
    ids=str,
)
def test_a_matrix_is_repeated_no_times(first, second):
    x, y = (
        pt.tensor(shape=[1 if n == 1 else None for n in s], dtype="bool") for s in (first, second)
    )
    values = [np.ones(first, "bool"), np.ones(second, "bool")]
    compare_onnx_and_py([x, y], pt.matmul(x, y), values)


def test_sizes_that_do_not_meet_fail():
    x, y = pt.matrices("xy")
    f = compile_onnx([x, y], x @ y, verify=False)
    with pytest.raises((PyTensorONNXError, ValueError), match=r"dimension"):
        f(array((2, 3)), array((4, 2)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_that_blas_computes(dtype):
    x, y, v = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype), pt.vector("v", dtype=dtype)
    z, w = pt.matrix("z", dtype=dtype), pt.vector("w", dtype=dtype)
    a, b = pt.scalar("a", dtype=dtype), pt.scalar("b", dtype=dtype)
    one, half = (pt.constant(np.asarray(number, dtype)) for number in (1, 0.5))
    zero = pt.constant(np.asarray(0, dtype))
    gemm, gemv = Gemm(inplace=False), Gemv(inplace=False)
    results = [
        gemm(z, a, x, y, b),
        gemm(z, one, x, y, one),
        gemm(z, half, x, y, half),
        gemm(z, one, x, y, zero),
        gemv(w, a, x, v, b),
        gemv(w, one, x, v, zero),
        gemv(w, half, x, v, one),
    ]
    if dtype != "float16":
        results += [Dot22()(x, y), Dot22Scalar()(x, y, a)]
    shapes = (2, 3), (3, 4), (3,), (2, 4), (2,)
    values = [*(array(s, dtype) for s in shapes), np.asarray(1.5, dtype), np.asarray(-0.5, dtype)]
    compare([x, y, v, z, w, a, b], results, values, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_factor_of_zero_drops_nan(dtype):
    x, z, b = pt.matrix("x", dtype=dtype), pt.matrix("z", dtype=dtype), pt.scalar("b", dtype=dtype)
    one, zero = pt.constant(np.asarray(1, dtype)), pt.constant(np.asarray(0, dtype))
    gemm = Gemm(inplace=False)
    values = [array((2, 2), dtype), np.full((2, 2), np.nan, dtype), np.asarray(0, dtype)]
    compare([x, z, b], [gemm(z, one, x, x, zero), gemm(z, one, x, x, b)], values, dtype)


def test_a_matrix_is_broadcast_when_a_product_is_added_to_it():
    x, y = pt.matrices("xy")
    row, column = pt.tensor("row", shape=(1, None)), pt.tensor("column", shape=(None, 1))
    one = pt.constant(np.asarray(1.0))
    results = [Gemm(inplace=False)(z, one, x, y, one) for z in (row, column)]
    values = [array((2, 3)), array((3, 4)), array((1, 4)), array((2, 1))]
    compare([x, y, row, column], results, values)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2, 3), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((3,), (3,)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (5, 3, 1)),
    ],
    ids=str,
)
def test_gradients_of_products(first, second, dtype):
    x, y = (pt.tensor(dtype=dtype, shape=(None,) * len(s)) for s in (first, second))
    cost = (pt.matmul(x, y) ** 2).sum()
    values = [array(first, dtype), array(second, dtype)]
    compare_onnx_and_py(
        [x, y], pt.grad(cost, [x, y]), values, atol=1e-5 if dtype == "float32" else 1e-14
    )


@st.composite
def products(draw):
    size = st.integers(0, 4)
    rows, inner, columns = draw(size), draw(size), draw(size)
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    own = [tuple(draw(st.sampled_from([n, 1])) for n in batch) for _ in range(2)]
    own = [sizes[draw(st.integers(0, len(sizes))) :] if sizes else () for sizes in own]
    first, second = (*own[0], rows, inner), (*own[1], inner, columns)
    if draw(st.booleans()) and not own[0]:
        first = (inner,)
    elif draw(st.booleans()) and not own[1]:
        second = (inner,)
    return first, second


@pytest.mark.slow
@holds_for(drawn=products(), dtype=st.sampled_from(DTYPES))
def test_any_product(drawn, dtype):
    shapes = [[1 if size == 1 else None for size in shape] for shape in drawn]
    x, y = (pt.tensor(dtype=dtype, shape=shape) for shape in shapes)
    values = [array(shape, dtype, seed) for seed, shape in enumerate(drawn)]
    compare_onnx_and_py(
        [x, y],
        pt.matmul(x, y),
        values,
        atol=1e-2 if dtype == "float16" else 1e-5 if dtype == "float32" else 1e-14,
    )


def test_batches_that_meet_in_a_product_have_one_size():
    x, y = pt.tensor3("x"), pt.tensor3("y", shape=(None, None, 2))
    program = compile_onnx([x, y], x @ y, verify=False)
    assert [str(v.shape[0]) for v in program.model.graph.inputs] == ["x_dim0", "x_dim0"]
    with pytest.raises(InputError, match="x_dim0"):
        program(np.ones((1, 2, 3)), np.ones((4, 3, 2)))
    sliced = compile_onnx([x, y], x[:1] @ y, verify=False)
    with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
        sliced(np.ones((2, 2, 3)), np.ones((4, 3, 2)))
