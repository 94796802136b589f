"""Records of identities, of triangles, of diagonals and of blocks along them."""

import numpy as np
import pytensor.tensor as pt
import scipy.linalg
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import alloc_diag
from pytensor.tensor.extra_ops import fill_diagonal, fill_diagonal_offset

from tests.dispatch.values import DTYPES, some, special_values
from tests.operations.record import WIDE, Arrays, Operation

OFFSETS = (-7, -1, 0, 1, 3)
PAIRS = [
    *[((0, 1), -1), ((1, 0), 0), ((0, 2), 2), ((2, 0), -1), ((1, 2), 0), ((-1, -2), 2)],
    *[((3, 1), -1), ((1, 3), 2), ((0, 1), 0)],
]
NEW_PAIRS = [((0, 1), -1), ((1, 0), 2), ((0, 2), 0), ((1, 2), -1), ((0, 3), 2), ((-1, 1), 0)]
"""Axes and offsets."""
SIZES = [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0)]


def identities(n: Variable, m: Variable, k: Variable) -> list[Variable]:
    return [
        *(pt.eye(n, m, k, dtype=dtype) for dtype in DTYPES),
        *(pt.eye(n, m, offset) for offset in (*OFFSETS, 7)),
        pt.eye(n),
        pt.tri(n, m, k),
        *pt.tril_indices(n, k, m),
        *pt.triu_indices(n, k, m),
    ]


def identities_by_numpy(n: np.ndarray, m: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
    return [
        *(np.eye(n, m, k, dtype=dtype) for dtype in DTYPES),
        *(np.eye(n, m, offset) for offset in (*OFFSETS, 7)),
        np.eye(n),
        np.tri(n, m, k),
        *np.tril_indices(n, k, m),
        *np.triu_indices(n, k, m),
    ]


def matrices(dtype: str) -> list[Arrays]:
    """Return special values as matrices of any size, and as stacks."""
    shapes = SIZES if dtype == "float64" else [(6, 6)]
    found = [np.resize(special_values(dtype), shape) for shape in shapes]
    if dtype in ("int8", "uint64", "float32"):
        found.append(np.arange(24).reshape(2, 3, 4).astype(dtype))
    return [(x,) for x in found]


def diagonals(x: Variable) -> list[Variable]:
    if x.type.ndim == 4:
        return [pt.diagonal(x, k, *axes) for axes, k in PAIRS]
    return [pt.diagonal(x, k) for k in OFFSETS] + ([pt.trace(x, 1)] if x.type.ndim == 2 else [])


def diagonals_by_numpy(x: np.ndarray) -> list[np.ndarray]:
    if x.ndim == 4:
        return [np.diagonal(x, k, *axes) for axes, k in PAIRS]
    found = [np.diagonal(x, k) for k in OFFSETS]
    dtype = "int64" if x.dtype.kind in "bi" else "uint64" if x.dtype.kind == "u" else x.dtype
    return found + ([np.trace(x, 1).astype(dtype)] if x.ndim == 2 else [])


def with_axes(dtype: str) -> list[Arrays]:
    rank4 = [(some(dtype, (2, 3, 5, 4)),)] if dtype == "float64" else []
    return [*matrices(dtype), *rank4]


def of_diagonals(x: Variable) -> list[Variable]:
    if x.type.ndim == 1:
        return [pt.diag(x, k) for k in (OFFSETS if x.type.dtype == "float64" else (0, 1))]
    return [alloc_diag(x, k, *axes) for axes, k in NEW_PAIRS]


def vectors(dtype: str) -> list[Arrays]:
    values = special_values(dtype)
    more = [values[:0], values[:1], some(dtype, (2, 3, 4))] if dtype == "float64" else []
    return [(x,) for x in (values, *more)]


def written(x: Variable, value: Variable, k: Variable) -> list[Variable]:
    filled = [fill_diagonal(x, value)]
    if x.type.ndim == 2:
        filled += [fill_diagonal_offset(x, value, offset) for offset in (k, -2, -1, 0, 1, 2)]
    return filled


def written_by_numpy(x: np.ndarray, value: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
    found = [x.copy()]
    np.fill_diagonal(found[0], value)
    for offset in (k, -2, -1, 0, 1, 2) if x.ndim == 2 else ():
        is_diagonal = np.eye(*x.shape, offset, dtype=bool)
        found.append(np.where(is_diagonal, value, x))
    return found


def to_fill(dtype: str) -> list[Arrays]:
    value = special_values(dtype)[1]
    found = [(np.resize(special_values(dtype), (3, 4)), value, np.int32(1))]
    if dtype == "float64":
        cubes = [(3, 3, 3), (2, 2, 2, 2)]
        found += [(np.zeros(shape), np.array(7.0), np.int32(-1)) for shape in (*SIZES, *cubes)]
    return [tuple(map(np.asarray, call)) for call in found]


def triangles(x: Variable) -> list[Variable]:
    return [f(x, k) for k in (-2, 0, 1) for f in (pt.tril, pt.triu)]


def two_blocks(dtype: str) -> list[Arrays]:
    """Return pairs of matrices, the second of float32."""
    rng, dtypes = np.random.default_rng(5), (dtype, "float32")
    shapes = [((2, 3), (3, 2)), ((0, 2), (2, 2)), ((2, 4), (2, 0)), ((0, 0), (0, 0))]
    found = [
        [rng.integers(1, 9, s).astype(d) for s, d in zip(pair, dtypes, strict=True)]
        for pair in shapes
    ]
    if dtype != "int8":
        found.append([np.array([[np.nan, np.inf]] * 2, dtype), np.ones((2, 3), "float32")])
    return [tuple(pair) for pair in found]


POINT = np.array([[1.0, 2.5, 0.5], [3.0, 1.5, 2.0]])

OPERATIONS = [
    Operation(
        "eye",
        identities,
        lambda dtype: [
            tuple(map(np.asarray, (np.int64(n), np.int32(m), np.int8(k))))
            for n, m, k in ((3, 4, 1), (3, 3, -1), (2, 5, 3), (5, 2, -7), (0, 3, 0), (3, 0, 1))
        ],
        ("int64",),
        reference=identities_by_numpy,
    ),
    Operation(
        "tril_triu",
        triangles,
        matrices,
        DTYPES[1:],
    ),
    Operation("diagonal", diagonals, with_axes, reference=diagonals_by_numpy, slope=(POINT,)),
    Operation("diag", of_diagonals, vectors, slope=(POINT[0],), imported=8),
    Operation(
        "fill_diagonal",
        written,
        to_fill,
        reference=written_by_numpy,
        signed_zeros=False,
    ),
    Operation(
        "fill_diagonal_of_floats",
        lambda x, value: [fill_diagonal(x, value), fill_diagonal_offset(x, value, 2)],
        lambda dtype: [(np.zeros((3, 3), dtype), np.array(7.0, dtype))],
        ("float64",),
        slope=(POINT, np.array(7.0)),
    ),
    Operation(
        "block_diag",
        lambda x, y: pt.linalg.block_diag(x, y, 2 * x),
        two_blocks,
        ("int8", *WIDE),
        reference=lambda x, y: scipy.linalg.block_diag(x, y, 2 * x),
        imports_ops=False,
        slope=(POINT, -POINT),
    ),
    Operation(
        "kron",
        pt.linalg.kron,
        two_blocks,
        ("int8", *WIDE),
        reference=np.kron,
        slope=(POINT, -POINT),
    ),
]
