"""Gradients of every differentiable sparse Op agree with PyTensor's Python mode."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse as sp
from pytensor import sparse
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.sparse import basic, math

from tests.rewriting.sparse.matrices import compare_on

KINDS, FLOATS = ("csr", "csc"), ("float32", "float64")
SIZES = [(4, 3, 0.5), (4, 3, 1.0), (4, 3, 0.1), (4, 3, 0.0), (0, 3, 0.0), (3, 0, 0.0), (1, 1, 1.0)]
"""Rows, columns and share of stored entries of the matrices."""


class Operands:
    """Two m x n matrices, an n x m one, and dense operands of sizes that fit."""

    def __init__(self, kind: str, dtype: str) -> None:
        self.kind, self.dtype = kind, dtype
        self.x, self.y, self.turned = (
            sparse.matrix(kind, name, dtype=dtype) for name in ("x", "y", "turned")
        )
        self.same, self.wide, self.tall = (
            pt.matrix(name, dtype=dtype) for name in ("same", "wide", "tall")
        )
        self.cols, self.rows = (pt.vector(name, dtype=dtype) for name in ("cols", "rows"))
        self.number = pt.scalar("number", dtype=dtype)

    @property
    def variables(self) -> list[Any]:
        dense = [self.same, self.wide, self.tall, self.cols, self.rows, self.number]
        return [self.x, self.y, self.turned, *dense]

    def values(self, m: int, n: int, density: float) -> list[Any]:
        rng = np.random.default_rng([m, n, int(10 * density)])

        def halves(*shape: int) -> np.ndarray:
            # Of few digits, so that float32 rounds no sum of products.
            return np.asarray(
                rng.integers(1, 5, shape) * rng.choice([-0.5, 0.5], shape), self.dtype
            )

        matrices = [
            sp.csr_matrix(halves(*shape) * (rng.random(shape) < density)).asformat(self.kind)
            for shape in ((m, n), (m, n), (n, m))
        ]
        return [*matrices, *(halves(*shape) for shape in ((m, n), (n, 2), (m, 2), (n,), (m,), ()))]


CASES: dict[str, Callable[[Operands], Any]] = {
    "dense": lambda o: o.x.toarray(),
    "transposed": lambda o: o.x.T,
    "of dense": lambda o: sparse.csr_from_dense(o.same),
    "cast": lambda o: sparse.cast(o.x, "float64"),
    "vectors": lambda o: basic.CSM(o.kind)(*sparse.csm_properties(o.x)),
    "data": lambda o: sparse.csm_data(o.x),
    "sorted": lambda o: sparse.ensure_sorted_indices(o.x),
    "without zeros": lambda o: basic.remove0(o.x),
    "rows of a list": lambda o: sparse.get_item_list(o.x, [0, 2, 1]),
    "elements of lists": lambda o: sparse.get_item_2lists(o.x, [0, 2, 1], [1, 2, 0]),
    "column scale": lambda o: basic.col_scale(o.x, o.cols),
    "row scale": lambda o: basic.row_scale(o.x, o.rows),
    "diagonal": lambda o: sparse.diag(sparse.structured_dot(o.x, o.turned)),
    "sum": lambda o: sparse.sp_sum(o.x, sparse_grad=True),
    "sum, dense gradient": lambda o: sparse.sp_sum(o.x),
    "sums of columns": lambda o: sparse.sp_sum(o.x, axis=0, sparse_grad=True),
    "sums of columns, dense gradient": lambda o: sparse.sp_sum(o.x, axis=0),
    "sums of rows": lambda o: sparse.sp_sum(o.x, axis=1, sparse_grad=True),
    "rows below each other": lambda o: sparse.vstack([o.x, o.y], format=o.kind),
    "columns beside each other": lambda o: sparse.hstack([o.x, o.y], format=o.kind),
    "sum of two": lambda o: o.x + o.y,
    "difference of two": lambda o: o.x - o.y,
    "product of two": lambda o: o.x * o.y,
    "sum of entries": lambda o: sparse.add_s_s_data(o.x, o.x),
    "sum with dense": lambda o: o.x + o.same,
    "sum with columns": lambda o: math.structured_add_s_v(o.x, o.cols),
    "product with dense": lambda o: o.x * o.same,
    "product with a number": lambda o: o.x * o.number,
    "product with columns": lambda o: math.mul_s_v(o.x, o.cols),
    "function": lambda o: math.structured_exp(o.x),
    "sigmoid": lambda o: math.structured_sigmoid(o.x),
    "square": lambda o: math.sqr(o.x),
    "power": lambda o: math.structured_pow(o.x, o.number**2),
    "dot": lambda o: sparse.dot(o.x, o.wide),
    "dot with a vector": lambda o: sparse.dot(o.x, o.cols),
    "dot of a vector": lambda o: sparse.dot(o.rows, o.x),
    "dot of dense": lambda o: sparse.dot(o.tall.T, o.x),
    "structured dot": lambda o: sparse.structured_dot(o.x, o.wide),
    "structured dot of dense": lambda o: sparse.structured_dot(o.tall.T, o.x),
    "structured dot of two": lambda o: sparse.structured_dot(o.x, o.turned),
    "true dot": lambda o: sparse.true_dot(o.x, o.wide),
    "true dot of two": lambda o: sparse.true_dot(o.x, o.turned),
}


# PyTensor gives these in float64, whatever dtype the variable has.
FLOAT64_ONLY = ("rows of a list", "elements of lists")
# Run by default, the others with `-m sweep`.
ALWAYS = ("cast", "rows below each other", "diagonal", "sum of two", "product of two", "power")


def selected(name: str, kind: str, dtype: str) -> Any:
    few = name in ALWAYS and (kind, dtype) == ("csc", "float64")
    return pytest.param(name, kind, dtype, marks=[] if few else pytest.mark.sweep)


def weighted(result: Any) -> Any:
    """Return a number that depends on each element of a result in another way."""
    dense = sparse.dense_from_sparse(result) if hasattr(result.type, "format") else result
    weights = pt.arange(dense.size).reshape(dense.shape) % 5 - 1
    return (pt.cast(weights, dense.dtype) * dense**2).sum()


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [
        selected(name, kind, dtype)
        for name in CASES
        for kind in KINDS
        for dtype in (FLOATS[1:] if name in FLOAT64_ONLY else FLOATS)
    ],
)
@pytest.mark.slow
def test_gradients(name, kind, dtype):
    operands = Operands(kind, dtype)
    cost = weighted(CASES[name](operands))
    used = set(explicit_graph_inputs([cost]))
    by = [variable for variable in operands.variables if variable in used]
    gradients = pytensor.grad(cost, by, disconnected_inputs="ignore")
    sizes = SIZES[:4] if "list" in name else SIZES
    compare_on(operands.variables, gradients, [operands.values(*size) for size in sizes])
