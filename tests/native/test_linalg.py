"""Kernels of linear algebra agree with the functions in whose place they run."""

import math

import numpy as np
import onnxruntime
import pytensor.tensor as pt
import pytest
import scipy.linalg
from onnx import TensorProto, helper

from pytensor_onnx import export_onnx, native
from pytensor_onnx.running.session import Session, SessionOptions

TOLERANCE = {"float32": 2e-4, "float64": 1e-11}
SIZES = [0, 1, 2, 5, 32, 33, 70]


def positive(*shape):
    a = np.random.default_rng(0).normal(size=shape)
    return a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])


def general(*shape):
    return np.random.default_rng(1).normal(size=shape) + 3 * np.eye(shape[-2], shape[-1])


OPERATIONS = {
    "cholesky": (pt.linalg.cholesky, positive),
    "upper cholesky": (lambda a: pt.linalg.cholesky(a, lower=False), positive),
    "inv": (pt.linalg.inv, general),
    "det": (pt.linalg.det, general),
    "slogdet": (pt.linalg.slogdet, general),
    "lu_factor": (pt.linalg.lu_factor, general),
}


def triangular(lower, unit):
    return lambda a, b, rank: pt.linalg.solve_triangular(
        a, b, lower=lower, unit_diagonal=unit, b_ndim=rank
    )


SOLVERS = {
    **{
        f"{'lower' if lower else 'upper'}{' unit' * unit}": (triangular(lower, unit), general)
        for lower in (True, False)
        for unit in (True, False)
    },
    "cho_solve": (lambda a, b, rank: pt.linalg.cho_solve((a, True), b, b_ndim=rank), general),
    "upper cho_solve": (
        lambda a, b, rank: pt.linalg.cho_solve((a, False), b, b_ndim=rank),
        general,
    ),
    **{
        f"solve {kind}{' lower' * lower}": (
            lambda a, b, rank, kind=kind, lower=lower: pt.linalg.solve(
                a, b, assume_a=kind, lower=lower, b_ndim=rank
            ),
            general if kind == "gen" else positive,
        )
        for kind, lower in [
            ("gen", False),
            ("pos", False),
            ("pos", True),
            ("sym", False),
            ("sym", True),
        ]
    },
}


def run(graph, cases, kernels):
    """Return the results for each case, of one model of open sizes."""
    inputs = [
        pt.tensor(f"x{i}", dtype=a.dtype, shape=(None,) * a.ndim) for i, a in enumerate(cases[0])
    ]
    program = export_onnx(inputs, graph(*inputs), verify=False)
    feeds = [{f"x{i}": a for i, a in enumerate(arrays)} for arrays in cases]
    sessions = [Session(program.model, options=SessionOptions(kernels=k)) for k in kernels]
    return [[session.run(feed) for session in sessions] for feed in feeds]


def both(graph, *cases):
    """Return the results for each case with and without kernels."""
    return run(graph, cases, [True, False])


def by_kernels(graph, *cases):
    return [results for [results] in run(graph, cases, [True])]


def assert_equal(graph, *cases, exactly=False):
    tolerance = 0 if exactly else TOLERANCE[str(cases[0][0].dtype)]
    for on, off in both(graph, *cases):
        for found, expected in zip(on, off, strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.few(3)
def test_results_are_those_of_the_function(name, batch, dtype):
    graph, matrix = OPERATIONS[name]
    # Determinants of larger matrices leave the range of float32.
    sizes = [n for n in SIZES if name != "det" or n <= 33]
    assert_equal(graph, *([matrix(*batch, n, n).astype(dtype)] for n in sizes))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.few(4)
def test_solutions_are_those_of_the_function(name, rank, batch, dtype):
    graph, matrix = SOLVERS[name]
    cases = []
    for shape in [(n,) for n in SIZES] if batch == 0 else [(3, 5), (0, 5), (2, 40)]:
        n = shape[-1]
        # Off the diagonal, where unit triangles would grow.
        a = matrix(*shape, n) / (n + 1 if "unit" in name else 1)
        b = np.random.default_rng(2).normal(size=(*shape, 7)[: len(shape) - 1 + rank])
        cases.append([a.astype(dtype), b.astype(dtype)])
    assert_equal(lambda x, y: graph(x, y, rank), *cases)


def test_wide_batches_and_many_columns():
    case = [general(2, 2, 9, 9), general(2, 2, 9, 50)]
    assert_equal(lambda x, y: pt.linalg.solve(x, y, b_ndim=2), case)


def test_a_factor_without_a_positive_pivot_is_nan():
    cases = []
    for pivot in (0.0, -1.0, np.nan, np.inf):
        for row in (0, 40, 49):
            a = positive(50, 50)
            a[row, row] = pivot
            cases.append([a])
    for case in both(pt.linalg.cholesky, *cases):
        assert all(np.isnan(result).all() for (result,) in case)


def test_special_values_on_the_diagonal_of_a_triangle_are_those_of_lapack():
    b = general(6, 4)
    cases = []
    for value in (0.0, -0.0, np.nan, np.inf):
        a = general(6, 6)
        a[3, 3] = value
        cases.append([a, b])
    graph, _ = SOLVERS["lower"]
    for (a, _), ((found,), _) in zip(cases, both(lambda x, y: graph(x, y, 2), *cases), strict=True):
        expected = np.full_like(b, np.nan)
        if a[3, 3] != 0:
            expected = scipy.linalg.solve_triangular(a, b, lower=True, check_finite=False)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_singular_systems_are_nan_and_have_no_inverse():
    a = np.ones((5, 5))
    for graph in (lambda x: pt.linalg.solve(x, x, b_ndim=2), pt.linalg.lu_factor):
        assert all(np.isnan(results[0]).all() for results in both(graph, [a])[0])
    assert_equal(pt.linalg.slogdet, [a], exactly=True)
    x = pt.matrix("x")
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        export_onnx([x], pt.linalg.inv(x), verify=False)(a)


@pytest.mark.parametrize("lower", [True, False])
def test_one_triangle_is_read(lower):
    a = np.where(
        np.tri(40, dtype=bool) if lower else np.tri(40, dtype=bool).T, positive(40, 40), np.nan
    )
    ones = np.ones(40)

    def results(x):
        return [
            pt.linalg.cholesky(x, lower=lower),
            pt.linalg.solve(x, ones, assume_a="pos", lower=lower, b_ndim=1),
            pt.linalg.solve_triangular(x, ones, lower=lower, b_ndim=1),
        ]

    assert_equal(results, [a])


def test_errors_are_those_of_the_function():
    a, b = pt.matrix("a"), pt.vector("b")
    with pytest.raises(ValueError, match="Input array is expected to be square"):
        export_onnx([a], pt.linalg.cholesky(a), verify=False)(np.ones((2, 3)))
    solve = export_onnx([a, b], pt.linalg.solve(a, b), verify=False)
    with pytest.raises(ValueError, match="incompatible dimensions"):
        solve(np.eye(3), np.ones(2))


def test_large_determinants_do_not_overflow_on_the_way():
    matrices = [np.diag([1e-200, 1e-200, 1e300, 2e100]), 1e300 * np.eye(3), 1e-300 * np.eye(3)]
    assert_equal(pt.linalg.det, *([a] for a in matrices))


def real_matrices(*shape):
    """Matrices with all kinds of eigenvalues: of every second one some are equal or zero."""
    a = np.random.default_rng(4).normal(size=shape)
    a.reshape(math.prod(shape[:-2]), *shape[-2:])[::2, : shape[-1] // 2] = 0
    return a


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_schur_forms_are_in_standard_form_and_give_the_matrix(dtype):
    squares = [real_matrices(n, n).astype(dtype) for n in SIZES]
    batches = [real_matrices(*s).astype(dtype) for s in [(4, 6, 6), (0, 3, 3), (2, 0, 0)]]
    forms = [
        form
        for group in (squares, batches)
        for form in by_kernels(pt.linalg.schur, *([a] for a in group))
    ]
    for a, (t, z) in zip(squares + batches, forms, strict=True):
        atol = TOLERANCE[dtype]
        np.testing.assert_allclose(z @ t @ z.mT, a, rtol=0, atol=atol)
        np.testing.assert_allclose(
            z.mT @ z, np.broadcast_to(np.eye(a.shape[-1]), a.shape), atol=atol
        )
        below, above = (np.diagonal(t, k, -2, -1) for k in (-1, 1))
        equal = np.diagonal(t, 0, -2, -1)[..., 1:] == np.diagonal(t, 0, -2, -1)[..., :-1]
        assert (np.tril(t, -2) == 0).all()
        assert ((below == 0) | (equal & (above * below < 0))).all()
        assert not ((below[..., 1:] != 0) & (below[..., :-1] != 0)).any()


def test_schur_forms_of_special_matrices():
    matrices = [
        np.diag([1e300, 1e-300, -2e300]),
        np.full((3, 3), 5e-324),
        np.eye(4, k=1) + np.eye(4, k=-3),
        np.kron(np.eye(3), [[0.0, 1.0], [-1.0, 0.0]]) + np.eye(6, k=2),
        np.zeros((5, 5)),
        np.triu(np.ones((6, 6))),
    ]
    special = [np.diag([1.0, value]) for value in (np.nan, np.inf)]
    *forms, nan, inf = by_kernels(pt.linalg.schur, *([a] for a in matrices + special))
    for a, (t, z) in zip(matrices, forms, strict=True):
        atol = 1e-14 * len(a) * np.abs(a).max()
        np.testing.assert_allclose(z @ t @ z.T, a, rtol=0, atol=max(atol, 5e-323))
    assert np.isnan([nan, inf]).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shapes", [[(0, 3), (1, 1), (5, 2), (3, 20)], [(2, 4, 5)]], ids=str)
def test_solutions_of_sylvesters_equation_are_those_of_the_function(shapes, dtype):
    cases = []
    for *batch, m, n in shapes:
        rng = np.random.default_rng(5)
        a, b = (real_matrices(*batch, k, k) + 8 * np.eye(k) for k in (m, n))
        cases.append([x.astype(dtype) for x in (a, b, rng.normal(size=(*batch, m, n)))])
    assert_equal(pt.linalg.solve_sylvester, *cases)


def test_sylvesters_equation_without_one_solution_is_nan():
    a, b = np.array([[1.0, 2.0], [-2.0, 1.0]]), np.array([[-1.0, 1.0], [-4.0, -1.0]])
    for on, off in both(pt.linalg.solve_sylvester, [a, b, np.ones((2, 2))]):
        assert np.isnan(on).all()
        assert np.isnan(off).all()


def symmetric(*shape):
    a = real_matrices(*shape)
    return a + a.mT


SHAPES = [(n, n) for n in SIZES] + [(3, 8), (8, 3), (1, 4), (5, 0), (2, 4, 6), (0, 3, 3)]
FACTORISATIONS = {
    "qr": (pt.linalg.qr, real_matrices, SHAPES),
    "economic qr": (lambda x: pt.linalg.qr(x, mode="economic"), real_matrices, SHAPES),
    "r of qr": (lambda x: pt.linalg.qr(x, mode="r"), real_matrices, SHAPES),
    "eigh": (pt.linalg.eigh, symmetric, SHAPES[:7]),
    "upper eigh": (lambda x: pt.linalg.eigh(x, lower=False), symmetric, SHAPES[2:5]),
    "eigvalsh": (pt.linalg.eigvalsh, symmetric, [*SHAPES[:7], (3, 4, 4)]),
    "svd": (pt.linalg.svd, real_matrices, SHAPES),
    "thin svd": (lambda x: pt.linalg.svd(x, full_matrices=False), real_matrices, SHAPES),
    "sorted schur": (lambda x: pt.linalg.schur(x, sort="lhp"), real_matrices, SHAPES[2:6]),
    "eigenvalues": (lambda x: pt.sort(pt.real(pt.linalg.eig(x)[0])), real_matrices, SHAPES[2:6]),
    "singular values": (lambda x: pt.linalg.svd(x, compute_uv=False), real_matrices, SHAPES),
}


def products_of(results):
    """Return products and values that are unique; repeated values leave a choice of vectors."""
    match results:
        case [q, r] if r.ndim == q.ndim and not np.tril(r, -1).any():
            return [q @ r, abs(r), q.mT @ q]
        case [t, z] if t.ndim == z.ndim and not np.tril(t, -2).any():
            return [z @ t @ z.mT, z.mT @ z]
        case [w, v]:
            return [w, (v * w[..., None, :]) @ v.mT, v.mT @ v]
        case [u, s, v]:
            k = s.shape[-1]
            product = (u[..., :k] * s[..., None, :]) @ v[..., :k, :]
            return [product, s, u.mT @ u, v @ v.mT]
    return results


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", FACTORISATIONS)
@pytest.mark.few(8)
def test_factorisations_are_those_of_the_function(name, dtype):
    graph, matrix, shapes = FACTORISATIONS[name]
    for rank in {len(shape) for shape in shapes}:
        cases = [[matrix(*s).astype(dtype)] for s in shapes if len(s) == rank]
        for on, off in both(graph, *cases):
            for found, expected in zip(products_of(on), products_of(off), strict=True):
                tolerance = TOLERANCE[dtype]
                np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["qr", "eigh", "svd"])
def test_vectors_have_the_signs_of_the_function(name):
    graph, _, _ = FACTORISATIONS[name]
    a = np.random.default_rng(6).normal(size=(7, 7))
    assert_equal(graph, [a + a.T])


def test_eigenvalues_and_singular_values_of_special_matrices():
    matrices = [
        np.zeros((4, 4)),
        np.diag([1e300, -1e-300, 1e300]),
        np.full((3, 3), 5e-324),
        np.eye(5, k=1) + np.eye(5, k=-1),
        np.eye(6, k=2),
        np.ones((6, 6)),
        np.diag([1.0, 0.0, 2.0, 0.0]) + np.eye(4, k=1),
        np.vander(np.linspace(0, 1, 12)),
    ]
    special = [np.diag([1.0, value]) for value in (np.nan, np.inf)]
    for name, cases in (("svd", matrices), ("eigh", [a + a.T for a in matrices])):
        graph = FACTORISATIONS[name][0]
        *found, nan, inf = by_kernels(graph, *([a] for a in cases + special))
        for case, results in zip(cases, found, strict=True):
            product, _, *units = products_of(results)
            reached = product if name == "svd" else products_of(results)[1]
            atol = max(1e-15 * len(case) * np.abs(case).max(), 5e-323)
            np.testing.assert_allclose(reached, case, rtol=0, atol=atol)
            for unit in units[-1:]:
                np.testing.assert_allclose(unit, np.eye(len(case)), rtol=0, atol=1e-14)
        assert all(np.isnan(result).all() for result in [*nan, *inf])


def test_nan_reaches_the_columns_behind_it():
    a = real_matrices(5, 4)
    a[4, 2] = np.nan
    (((_, r), _),) = both(pt.linalg.qr, [a])
    assert np.isnan(r[2, 2:]).all()
    np.testing.assert_allclose(r[:, :2], np.linalg.qr(a[:, :2], mode="complete")[1], atol=1e-14)


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 5), (1, 1), (80, 70)])
def test_nan_is_where_lapack_returns_it(shape):
    """No reflector changes columns before its own."""
    x = pt.matrix("x")
    program = export_onnx([x], pt.linalg.qr(x, mode="full"), verify=False)
    for place in [(0, 0), (-1, -1), (0, shape[1] // 2), (-1, shape[1] // 2)]:
        a = general(*shape)
        a[place] = np.nan
        for found, expected in zip(program(a), np.linalg.qr(a, mode="complete"), strict=True):
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


@pytest.mark.parametrize("name", ["QR_mode_r", "SVD", "Eigh_lower", "Cholesky_lower"])
def test_an_operand_that_is_no_matrix_is_named(name):
    function, n_results = f"{name}_float64", 2 if name == "Eigh_lower" else 1
    results = [f"y{i}" for i in range(n_results)]
    values = [helper.make_tensor_value_info(v, TensorProto.DOUBLE, None) for v in ("x", *results)]
    node = helper.make_node(function, ["x"], results, domain="pytensor.standard")
    graph = helper.make_graph([node], "graph", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("pytensor.standard", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    native.register(options, [function])
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    with pytest.raises(Exception, match="an operand is no matrix"):
        session.run(None, {"x": np.ones(3)})


def test_generalised_eigenvalues_run_by_the_function():
    a, b = symmetric(5, 5), positive(5, 5)
    assert_equal(pt.linalg.eigh, [a, b])
