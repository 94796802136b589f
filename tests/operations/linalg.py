"""Records of linear algebra; vectors whose signs LAPACK leaves free are in products without signs.

Gradients are compared together in ``tests/functions/linalg/test_gradients.py``, errors with those
of LAPACK in the modules beside it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from tests.operations.record import Arrays, Operation

L = pt.linalg
CASTS = ("float32", "int64", "float16")
"""Dtypes of the sweep, where the reference takes all of them."""
KINDS = ("gen", "sym", "pos", "tridiagonal", "banded")


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape)


def regular(*shape: int) -> np.ndarray:
    return normal(*shape) / shape[-1] + 2 * np.eye(*shape[-2:])


def positive(*shape: int) -> np.ndarray:
    a = regular(*shape)
    return a @ a.swapaxes(-1, -2)


def lower(a: np.ndarray) -> np.ndarray:
    """Return a matrix with other numbers above the diagonal, which are not read."""
    return a + np.tri(a.shape[-1], k=-1).T


def in_dtype(*arrays: np.ndarray, dtype: str) -> Arrays:
    """Return arrays of a dtype, integers being large enough to be regular."""
    return tuple((8 * x if dtype == "int64" else x).astype(dtype) for x in arrays)


def matrices(
    make: Callable[..., np.ndarray], *shapes: tuple[int, ...]
) -> Callable[[str], list[Arrays]]:
    """Return a function of a dtype that draws a matrix of each shape."""
    return lambda dtype: [in_dtype(make(*shape), dtype=dtype) for shape in shapes]


def triangles(dtype: str) -> list[Arrays]:
    """Return pairs of matrices: one with a lower triangle that is read, one with an upper one."""
    shapes = [(40, 40), (3, 3)] if dtype == "float64" else [(2, 3, 5, 5)]
    found = [(lower(positive(*s)), lower(positive(*s)).swapaxes(-1, -2)) for s in shapes]
    return [in_dtype(*pair, dtype=dtype) for pair in found]


def systems(dtype: str) -> list[Arrays]:
    """Return a matrix of each kind with right-hand sides, vectors in float64."""
    shapes = [((40, 40), (40,)), ((6, 6), (6,))]
    if dtype != "float64":
        shapes = [((2, 5, 5), (2, 5, 3))]
    found = []
    for shape, sides in shapes:
        band = np.triu(np.tril(regular(*shape), 1), -1)
        square = regular(*shape), lower(positive(*shape)), lower(positive(*shape)), band, band
        found.append(in_dtype(*square, normal(*sides), dtype=dtype))
    return found


def solutions(*operands: Variable) -> list[Variable]:
    *given, b = operands
    options = {"lower": True, "b_ndim": 2 - given[0].type.ndim + b.type.ndim}
    pairs = zip(given, KINDS, strict=True)
    return [L.solve(a, b, assume_a=kind, **options) for a, kind in pairs]


def triangular(a: Variable, b: Variable) -> list[Variable]:
    rank = 2 - a.type.ndim + b.type.ndim
    options = [(True, False, 0), (False, True, 1), (True, True, 1), (False, False, 0)]
    found = [
        L.solve_triangular(a, b, lower=lower, unit_diagonal=unit, trans=trans, b_ndim=rank)
        for lower, unit, trans in options
    ]
    return found + [L.cho_solve((a, lower), b, b_ndim=rank) for lower in (True, False)]


def lu(a: Variable) -> list[Variable]:
    factors = *L.lu(a), *L.lu(a, p_indices=True), L.lu(a, permute_l=True)[0]
    # PyTensor states another dtype for the factors of integers than the definition returns.
    return [*factors, *(L.lu_factor(a) if a.type.dtype != "int64" else ())]


def qr(a: Variable) -> list[Variable]:
    return [*L.qr(a), *L.qr(a, mode="economic", pivoting=True), L.qr(a, mode="r")]


def svd(a: Variable) -> list[Variable]:
    u, s, v = L.svd(a, full_matrices=False)
    weights = pt.arange(1, s.shape[-1] + 1).astype(s.dtype)
    return [s, (u * weights) @ v, L.svd(a, compute_uv=False)]


def eigh(a: Variable) -> list[Variable]:
    w, v = L.eigh(a)
    return [w, (v * (w**3)[..., None, :]) @ v.mT, L.eigvalsh(a), L.eigvalsh(a, lower=False)]


def schur(a: Variable) -> list[Variable]:
    t, z = L.schur(a)
    return [(t * t.mT).sum(axis=(-1, -2)), z @ t @ z.mT, z @ z.mT]


def qz(a: Variable, b: Variable) -> list[Variable]:
    s, t, q, z = L.qz(a, b)
    return [q @ s @ z.mT, q @ t @ z.mT, q @ q.mT, z @ z.mT]


def record(
    name: str, function: Callable, draw: Callable, eps: float = 100, **fields: Any
) -> Operation:
    """Return the record of a function, in float64 and by the sweep in other dtypes."""
    options = {"swept": ("float32", "int64"), "signed_zeros": False, "ulp_again": 64} | fields
    return Operation(name, function, draw, ("float64",), eps=eps, **options)


STACK = (2, 5, 5)

OPERATIONS = [
    record(
        "cholesky",
        lambda a, b: [L.cholesky(a), L.cholesky(b, lower=False)],
        triangles,
        swept=CASTS,
    ),
    record("solve", solutions, systems, 500),
    record("solve_triangular", triangular, lambda dtype: [x[::5] for x in systems(dtype)]),
    record("inv", L.inv, matrices(regular, (40, 40), STACK)),
    record("det", lambda a: [L.det(a), *L.slogdet(a)], matrices(regular, (20, 20), (3, 3))),
    record("lu", lu, matrices(regular, (20, 20), (3, 3))),
    record("qr", qr, matrices(normal, (5, 3), (3, 5)), swept=CASTS),
    record("svd", svd, matrices(normal, STACK), 500, nodes_again=1.1),
    record("eigh", eigh, matrices(lambda *s: lower(positive(*s)), STACK), 500, swept=CASTS),
    record("pinv", L.pinv, matrices(normal, (2, 4, 3)), 500),
    record("schur", schur, matrices(normal, STACK), 500),
    record(
        "qz",
        qz,
        lambda dtype: [in_dtype(normal(4, 4), regular(4, 4), dtype=dtype)],
        500,
        is_slow=True,
    ),
    record("expm", L.expm, matrices(regular, STACK), swept=("float32",)),
]
