"""Sparse matrices of complex numbers, and products of real ones with complex arrays."""

import json

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse as sp
from pytensor import sparse
from pytensor.conditional import ifelse
from pytensor.sparse import basic, math

from pytensor_onnx import UnsupportedOpError, export_onnx, load
from tests.conftest import op_types
from tests.rewriting.sparse.matrices import SHAPES, compare_on, matrix


def complex_matrix(shape, kind="csr", dtype="complex128"):
    real, imag = (matrix(shape, kind, "float64", density) for density in (0.4, 0.7))
    return (real + 1j * imag).astype(dtype).asformat(kind)


def complex_array(shape, dtype="complex128"):
    rng = np.random.default_rng(shape)
    return (rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)).astype(dtype)


def variables(kind, dtypes):
    """Return a sparse matrix of the first dtype, and dense operands of the second."""
    own, other = dtypes
    x = sparse.matrix(kind, "x", dtype=own)
    vectors = [pt.vector(name, dtype=other) for name in ("right", "left")]
    matrices = [pt.matrix(name, dtype=other) for name in ("wide", "tall", "same")]
    return [x, *vectors, *matrices, pt.scalar("number", dtype=other)]


def sample(a, dtype):
    """Return a matrix, and dense operands for it."""
    m, n = a.shape
    shapes = [(n,), (m,), (n, 3), (2, m), (m, n), ()]
    is_complex = dtype.startswith("complex")
    arrays = [complex_array(shape) for shape in shapes]
    return [a, *((x if is_complex else x.real).astype(dtype) for x in arrays)]


MIXED = [
    ("csr", ("float64", "complex128")),
    ("csc", ("complex128", "float64")),
    ("csc", ("float32", "complex128")),
    ("csr", ("complex64", "float64")),
    ("csc", ("int8", "complex64")),
]


@pytest.mark.parametrize(("kind", "dtypes"), MIXED)
@pytest.mark.few(1)
def test_real_and_complex_operands(kind, dtypes):
    inputs = x, right, left, wide, tall, same, number = variables(kind, dtypes)
    results = [
        sparse.dot(x, right),
        sparse.dot(left, x),
        sparse.dot(x, wide),
        sparse.dot(tall, x),
        sparse.structured_dot(x, wide),
        sparse.structured_dot(tall, x),
        x + same,
        x * same,
        x * number,
        math.eq(x, same),
    ]
    matrices = []
    for shape in ((4, 3), *SHAPES):
        a = complex_matrix(shape, kind) if dtypes[0].startswith("c") else matrix(shape, kind)
        matrices.append(a.astype(dtypes[0]))
    compare_on(inputs, results, [sample(a, dtypes[1]) for a in matrices])


def test_a_real_factor_needs_two_products():
    x, d = sparse.csr_matrix("x"), pt.zmatrix("d")
    z, e = sparse.csr_matrix("z", dtype="complex128"), pt.dmatrix("e")
    for inputs, count in (([x, d], 2), ([z, e], 2), ([z, d], 4)):
        program = export_onnx(inputs, sparse.structured_dot(*inputs))
        assert op_types(program).count("Loop") == count


@pytest.mark.parametrize("kinds", ["csr csr", "csr csc", "csc csc"])
@pytest.mark.few(1)
def test_products_of_real_and_complex_sparse_matrices(kinds):
    first, second = kinds.split()
    x, y = sparse.matrix(first, "x"), sparse.matrix(second, "y", dtype="complex128")
    results = [
        product(*pair)
        for product in (sparse.dot, sparse.structured_dot)
        for pair in ((x, y), (y.T, x.T))
    ]
    samples = [
        (matrix((m, k), first), complex_matrix((k, n), second))
        for m, k, n in ((4, 3, 5), (0, 3, 2), (3, 0, 2), (3, 2, 0))
    ]
    compare_on([x, y], results, samples)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_structured_functions_and_casts(dtype):
    x, number = sparse.csc_matrix("x", dtype=dtype), pt.scalar("number", dtype=dtype)
    real = sparse.csr_matrix("real", dtype="float32")
    functions = [math.structured_exp, math.abs, math.sinh, math.arctan, math.sqrt, math.sqr]
    results = [f(x) for f in [*functions, math.log1p, math.neg, math.conjugate]]
    results += [
        math.structured_pow(x, number),
        math.structured_add(x, number),
        math.structured_maximum(x, number),
        sparse.cast(x, "complex64"),
        sparse.cast(real, dtype),
        pt.real(sparse.csm_data(x)),
        sparse.csm_shape(x),
    ]
    samples = [
        (complex_matrix(shape, "csc", dtype), np.array(1.5 - 2j, dtype), matrix((2, 3)))
        for shape in ((4, 3), (0, 2))
    ]
    samples = [(a, number, b.astype("float32")) for a, number, b in samples]
    compare_on([x, number, real], results, samples)


def test_a_cast_to_a_real_dtype_takes_the_real_parts():
    x = sparse.csr_matrix("x", dtype="complex128")
    f = pytensor.function([x], sparse.cast(x, "float32"), mode="ONNX")
    a = complex_matrix((4, 3))
    np.testing.assert_array_equal(f(a).toarray(), a.toarray().real.astype("float32"), strict=True)


@pytest.mark.slow
def test_infinities_and_nan_in_one_part():
    x, v = sparse.csr_matrix("x", dtype="complex128"), pt.zvector("v")
    data = np.array([complex(np.inf, 1), complex(2, np.nan), 1 - 2j])
    a = sp.csr_matrix((data, ([0, 1, 1], [0, 1, 2])), shape=(2, 3))
    values = np.array([1j, complex(0, np.inf), 3.0])
    compare_on([x, v], [sparse.dot(x, v), x.toarray(), math.sqr(x), x * x], [(a, values)])


def test_branches_loops_and_shared_matrices():
    x, choice, v = sparse.csr_matrix("x", dtype="complex128"), pt.bscalar("choice"), pt.zvector("v")
    a = complex_matrix((3, 3))
    shared = pytensor.shared(a.tocsc(), name="shared")
    chosen = ifelse(choice, x.T, shared)
    steps = pytensor.scan(
        lambda v, x: sparse.dot(x, v) / 3,
        outputs_info=[v],
        non_sequences=[x],
        n_steps=4,
        return_updates=False,
    )
    constant = sparse.structured_dot(sparse.as_sparse_variable(a), v[:, None])
    samples = [(2 * a, np.int8(value), complex_array((3,))) for value in (0, 1)]
    compare_on([x, choice, v], [chosen, steps, constant], samples, atol=1e-12)
    update = {shared: math.conjugate(shared)}
    f = pytensor.function([], sparse.sp_sum(shared), updates=update, mode="ONNX")
    np.testing.assert_array_equal([f(), f(), f()], [a.sum(), a.sum().conj(), a.sum()])
    assert shared.get_value().dtype == "complex128"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_files_hold_pairs(tmp_path, dtype):
    x, v = sparse.csc_matrix("x", dtype=dtype), pt.vector("v", dtype=dtype)
    product, turned = sparse.dot(x, v), x.T
    product.name, turned.name = "product", "turned"
    path = tmp_path / "model.onnx"
    program = export_onnx([x, v], [product, turned], path=path)
    assert "PyTensor" in str(program.verification)
    described = json.loads(program.model.metadata_props["encodings"])
    assert described["inputs"]["x"]["encoding"] == "sparse"
    assert described["inputs"]["v"]["encoding"] == "complex"
    a, values = complex_matrix((4, 3), "csc", dtype), complex_array((3,), dtype)
    for run in (program, load(path)):
        found, transposed = run(a, values)
        np.testing.assert_array_equal(found, a @ values, strict=True)
        np.testing.assert_array_equal(transposed.toarray(), a.T.toarray(), strict=True)
        # A real matrix is a complex one without imaginary parts.
        np.testing.assert_array_equal(run(matrix((4, 3), "csc"), values)[0].dtype, dtype)
    session = onnxruntime.InferenceSession(path)
    real = np.dtype(dtype).type(0).real.dtype
    feed = {"x.data": a.data[:, None].view(real), "v": values[:, None].view(real)}
    feed |= {"x.indices": a.indices, "x.indptr": a.indptr, "x.shape": np.array(a.shape)}
    pairs = session.run(["product"], feed)[0]
    np.testing.assert_array_equal(pairs.view(dtype)[:, 0], a @ values)


def test_results_that_pytensor_takes_for_real_are_refused():
    x, z = sparse.csr_matrix("x"), sparse.csr_matrix("z", dtype="complex128")
    d, v = pt.zmatrix("d"), pt.zvector("v")
    for inputs, result in (
        ([z], z[[0, 1], [1, 0]]),
        ([x, v], basic.row_scale(x, v)),
        ([x, d], sparse.sampling_dot(d, d, x)),
    ):
        with pytest.raises(UnsupportedOpError, match=r"(?s)on sparse values.*x\.toarray"):
            export_onnx(inputs, result)


def test_array_operations_are_refused():
    x, z, d = sparse.csr_matrix("x"), sparse.csr_matrix("z", dtype="complex64"), pt.cmatrix("d")
    for inputs, result in (([z], pt.exp(z)), ([x, d], pt.add(x, d)), ([x, d], pt.join(0, x, d))):
        with pytest.raises(UnsupportedOpError, match=r"(?s)on sparse values.*x\.toarray"):
            export_onnx(inputs, result)


def test_functions_without_a_formula_are_refused_by_name():
    x = sparse.csr_matrix("x", dtype="complex128")
    with pytest.raises(UnsupportedOpError, match=r"(?s)expit.*formula of real parts"):
        export_onnx([x], math.structured_sigmoid(x))
