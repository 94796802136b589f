"""For each exclusion, a graph that PyTensor's rewrite would change.

``topo_constant_folding`` has none: the same folding runs in its place.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt

from tests.guard_examples import diagonals, products_of_one
from tests.rule_examples import Graph, X, buffers, gradient_of, matrix, steps_read, vectors


class Excluded(NamedTuple):
    """Maker of a graph, the reason that PyTensor gives for a change of it, and our rule instead."""

    graph: Callable[[], Graph]
    reason: str
    instead: str | None = None


def product(*shapes: tuple[int | None, ...]) -> Callable[[], Graph]:
    def graph() -> Graph:
        x, y = inputs = [pt.tensor(name, shape=s) for name, s in zip("xy", shapes, strict=True)]
        return inputs, x @ y, [np.ones([n or 3 for n in shape]) for shape in shapes]

    return graph


def gradient_in_two_elements() -> Graph:
    x = pt.vector("x")
    return [x], gradient_of(lambda v: pt.exp(v[0]) + v[1] ** 2)(x), [X[0]]


EXCLUSIONS = {
    "BlasOpt": Excluded(matrix(lambda x: x @ x.T), "local_dot_to_dot22"),
    "local_sign_div": Excluded(matrix(lambda x: pt.sign(1 / x)), "local_sign_div"),
    "local_add_canonizer": Excluded(
        matrix(lambda x: (x + 1) - x + pt.exp(x)), "local_add_canonizer"
    ),
    "local_mul_canonizer": Excluded(matrix(lambda x: (x * pt.exp(x)) / x), "local_mul_canonizer"),
    "local_greedy_distributor": Excluded(
        vectors(lambda x, y, z: (z / x + z / y) * x * y, 3),
        "local_greedy_distributor",
        "distribute_factors",
    ),
    "local_sigm_times_exp": Excluded(
        matrix(lambda x: pt.sigmoid(x) * pt.exp(-x)), "local_sigm_times_exp"
    ),
    "pre_local_IncSubtensor_serialize": Excluded(
        gradient_in_two_elements, "local_IncSubtensor_serialize", "join_writes"
    ),
    "local_IncSubtensor_serialize": Excluded(
        matrix(lambda x: x[0].inc(x[1]) + x[1].inc(x[0])),
        "local_IncSubtensor_serialize",
        "join_writes",
    ),
    "local_elemwise_alloc": Excluded(
        lambda: (
            [n := pt.lscalar("n"), y := pt.vector("y")],
            pt.exp(pt.alloc(2.0, n) * y),
            [2, np.ones(2)],
        ),
        "local_elemwise_alloc",
    ),
    "dot_diag_to_elemwise": Excluded(
        matrix(lambda x: pt.diag(x[0]) @ x.T), "dot_diag_to_elemwise", "multiply_by_structure"
    ),
    "selection_dot_to_indexing": Excluded(
        matrix(lambda x: pt.constant(np.eye(2)[::-1]) @ x),
        "selection_dot_to_indexing",
        "multiply_by_structure",
    ),
    "useless_symmetric_transpose": Excluded(
        matrix(lambda x: pt.exp((x @ x.T).T)), "useless_symmetric_transpose"
    ),
    "local_useless_unbatched_blockwise": Excluded(
        products_of_one, "local_useless_unbatched_blockwise"
    ),
    "extract_diag_lift_pass": Excluded(
        lambda: diagonals(pt.exp, 0, 0, 1), "local_extract_diag_lift"
    ),
    "local_batched_matmul_to_core_matmul": Excluded(
        product((None, 1, None), (None, None)), "local_batched_matmul_to_core_matmul"
    ),
    "local_batched_matmul_to_core_matmul_with_reshape": Excluded(
        product((None, None, None), (None, None)),
        "local_batched_matmul_to_core_matmul_with_reshape",
    ),
    "specialize_matmul_to_batched_dot": Excluded(
        product((None,) * 3, (None,) * 3), "specialize_matmul_to_batched_dot"
    ),
    "scan_reduce_nsteps": Excluded(matrix(lambda x: buffers(x)[:1]), "scan_reduce_nsteps"),
    "scan_reduce_trace_prealloc": Excluded(lambda: steps_read(-1), "scan_reduce_trace_prealloc"),
    "scan_sit_sot_to_untraced": Excluded(lambda: steps_read(-1), "scan_sit_sot_to_untraced"),
}
"""By the names of exclusions."""
