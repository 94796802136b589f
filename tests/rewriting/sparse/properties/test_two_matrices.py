"""Operations on two sparse matrices agree with SciPy on drawn matrices."""

import operator

import scipy.sparse as sp
from hypothesis import strategies as st
from pytensor import sparse
from pytensor.sparse import math
from pytensor.sparse.linalg import block_diag

from tests.rewriting.sparse.properties.drawn import (
    COMPLEX,
    FLOATS,
    Operations,
    assert_scipy_agrees,
    matrices,
    runs,
    sizes,
)


@st.composite
def of_one_shape(draw, kind, other, dtype):
    shape = draw(sizes()), draw(sizes())
    return [draw(matrices(k, dtype, shape)) for k in (kind, other)]


COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_equal": operator.le,
    "greater_than": operator.gt,
    "greater_equal": operator.ge,
}


@runs([*FLOATS, "int8", COMPLEX])
def test_sums_products_and_comparisons(kind, dtype, examples):
    other = "csc" if dtype == "float32" else kind
    x, y = sparse.matrix(kind, "x", dtype=dtype), sparse.matrix(other, "y", dtype=dtype)
    operations: Operations = {
        "sum": (x + y, operator.add),
        "difference": (x - y, operator.sub),
        "product": (x * y, lambda a, b: a.multiply(b).asformat(kind)),
    }
    for name, compare in COMPARISONS.items() if other == kind else ():
        operations[name] = (
            getattr(math, f"{name}_s_s")(x, y),
            lambda a, b, compare=compare: compare(a, b).astype("uint8"),
        )
    assert_scipy_agrees([x, y], operations, of_one_shape(kind, other, dtype), examples)


@st.composite
def four_blocks(draw, kind, other, dtype):
    (m, n), (k, p) = ((draw(sizes(3)), draw(sizes(3))) for _ in range(2))
    shapes = ((m, n), (k, n), (m, p), (k, p))
    return [
        draw(matrices(of, dtype, shape))
        for of, shape in zip((kind, other, kind, other), shapes, strict=True)
    ]


@runs([*FLOATS, "int64", COMPLEX])
def test_stacks_and_block_diagonals(kind, dtype, examples):
    other = "csc" if dtype == "float32" else kind
    blocks = [
        sparse.matrix(of, name, dtype=dtype)
        for of, name in zip((kind, other, kind, other), "abcd", strict=True)
    ]
    a, b, c, d = blocks
    operations: Operations = {}
    for of in ("csr", "csc"):
        operations |= {
            f"rows {of}": (
                sparse.vstack([a, b, a], format=of),
                lambda a, b, c, d, of=of: sp.vstack([a, b, a], format=of),
            ),
            f"columns {of}": (
                sparse.hstack([a, c], format=of),
                lambda a, b, c, d, of=of: sp.hstack([a, c], format=of),
            ),
            f"diagonal {of}": (
                block_diag(a, b, d, format=of),
                lambda a, b, c, d, of=of: sp.block_diag([a, b, d], format=of),
            ),
            f"blocks {of}": (
                sparse.vstack([sparse.hstack([a, c]), sparse.hstack([b, d])], format=of),
                lambda a, b, c, d, of=of: sp.bmat([[a, c], [b, d]], format=of, dtype=dtype),
            ),
        }
    assert_scipy_agrees(blocks, operations, four_blocks(kind, other, dtype), examples)
