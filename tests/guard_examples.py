"""For each guard, a graph on which it stops PyTensor's own rewrite."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.basic import arange

from tests.rule_examples import Graph, X, matrix

BYTES = np.array([100, -100, 12, -128], "int8")
UNSIGNED = np.array([1, 0, 3], "uint8")


def vector(
    f: Callable[[Any], Any], value: Any, shape: Sequence[int | None] = (None,)
) -> Callable[[], Graph]:
    def graph() -> Graph:
        array = np.asarray(value)
        x = pt.tensor("x", dtype=array.dtype, shape=shape)
        return [x], f(x), [array]

    return graph


def scalar_and_size(f: Callable[[Any, Any], Any], number: float, n: int) -> Callable[[], Graph]:
    def graph() -> Graph:
        x, size = pt.dscalar("x"), pt.lscalar("n")
        return [x, size], f(x, size), [np.float64(number), n]

    return graph


def written_twice() -> Graph:
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    values = [np.arange(3.0), np.array([5.0, 6]), np.array([0, -3])]
    return [x, y, i], x[i].set(y)[i], values


def narrow_increments() -> Graph:
    x, y = pt.lvector("x"), pt.vector("y", dtype="int8")
    return [x, y], x[0].inc(y[0])[0].inc(y[1]), [np.arange(3), BYTES[[0, 0]]]


def split_without_elements() -> Graph:
    x, n = pt.vector("x", shape=(0,)), pt.lvector("n")
    y = pt.split_dims(x, axis=0, shape=(n.shape[0], 3, 0))
    return [x, n], [y[-1:2], y.shape[0]], [np.zeros(0), np.arange(3)]


def joined_without_elements() -> Graph:
    x = pt.tensor("x", shape=(None, 0, 3))
    return [x], pt.join_dims(x, 1, 2), [np.zeros((2, 0, 3))]


def reshape_without_elements() -> Graph:
    x = pt.tensor("x", shape=(None, 0))
    return [x], pt.reshape(x, (1, 0)), [np.zeros((5, 0))]


def row_of_partly_known_shape() -> Graph:
    x = pt.tensor3("x")
    return [x], pt.specify_shape(x, (None, None, 2))[0], [np.arange(12.0).reshape(2, 3, 2)]


def diagonals(f: Callable[[Any], Any], offset: int, axis1: int, axis2: int) -> Graph:
    x = pt.tensor3("x")
    y = pt.diagonal(f(x), offset, axis1, axis2)
    return [x], y, [np.arange(15.0).reshape(5, 3, 1)]


def batched_product() -> Graph:
    x, y = pt.tensor("x", shape=(None, None, 1)), pt.tensor4("y")
    n, k = pt.lscalars("n", "k")
    values = [np.arange(8.0).reshape(4, 2, 1), np.ones((2, 4, 3, 2)), np.array(2), np.array(2)]
    return [x, y, n, k], pt.broadcast_to(x, (n, 4, k, 3)) @ y, values


def products_of_one() -> Graph:
    x = pt.tensor("x", shape=(1, None, 3))
    w = pt.matrix("w")
    return [x, w], pt.exp(x @ w) @ w, [X[None], np.eye(3)]


def narrow_index(x: Any) -> Any:
    return x[::2][pt.constant(100, dtype="int8")]


GUARDS: dict[str, Callable[[], Graph]] = {
    "local_div_by_one": matrix(lambda x: x // np.uint8(1)),
    "local_zero_div": lambda: ([], pt.constant(np.zeros(2)) / np.zeros(2), []),
    "local_log1p": vector(
        lambda x: pt.log(pt.constant(np.nextafter(np.float32(1), np.float32(2))) + x),
        np.array([0, 1e-9, -1e-9], "float32"),
    ),
    "local_neg_to_mul": vector(lambda x: -x, UNSIGNED),
    "local_pow_to_nested_squaring": vector(lambda x: x**np.inf, X[0]),
    "local_reciprocal_canon": vector(pt.reciprocal, np.array([2, 4], "float16")),
    "local_useless_abs": vector(lambda x: abs(x.astype("int8")), np.array([200, 3], "uint8")),
    "local_abs_lift": vector(lambda x: abs(2 * x), BYTES),
    "local_blockwise_alloc_inputs": batched_product,
    "local_eager_useless_unbatched_blockwise": products_of_one,
    "local_useless_unbatched_blockwise": products_of_one,
    "local_reshape_to_dimshuffle": vector(
        lambda x: x.reshape((1, x.shape[1], 3)), X[None], (1, None, 3)
    ),
    "local_useless_reshape": reshape_without_elements,
    "local_subtensor_SpecifyShape_lift": row_of_partly_known_shape,
    "local_join_dims": joined_without_elements,
    "local_split_dims": split_without_elements,
    "local_read_of_write_same_indices": written_twice,
    "local_write_of_write_same_indices": narrow_increments,
    "local_adv_idx_to_slice": matrix(lambda x: x[:, np.array([2, 1], "uint8")]),
    "local_subtensor_merge_slice": vector(narrow_index, np.arange(300.0), (300,)),
    "local_subtensor_merge_integer": vector(narrow_index, np.arange(300.0), (300,)),
    "local_useless_slice": vector(
        lambda x: x[pt.constant(200, dtype="uint8") :], np.arange(56.0), (56,)
    ),
    "local_convert_negative_indices": vector(
        lambda x: x[pt.constant(-1, dtype="int8")], np.arange(300.0), (300,)
    ),
    "local_subtensor_of_batch_dims": vector(
        lambda x: pt.exp(x)[0][pt.constant(1) - 1], np.ones((4, 1)), (None, 1)
    ),
    "local_dimshuffle_subtensor": vector(lambda x: x[::-2].squeeze(0), X, (2, 3)),
    "local_extract_diag_of_alloc_diag": vector(lambda x: pt.diagonal(pt.diag(x, 1), 5), X[0]),
    "local_extract_diag_of_eye": lambda: ([n := pt.lscalar("n")], pt.diagonal(pt.eye(n), 5), [2]),
    "local_extract_diag_lift": lambda: diagonals(pt.exp, 0, 0, 1),
    "dot_diag_to_elemwise": lambda: (
        [v := pt.vector("v", shape=(1,)), x := pt.matrix("x")],
        pt.diag(v) @ x,
        [X[0, :1], X[:1]],
    ),
    "index_by_selection": lambda: (
        [x := pt.matrix("x", shape=(0, 5))],
        pt.constant(np.zeros((0, 0))) @ x,
        [np.zeros((0, 5))],
    ),
    "local_careduce_of_alloc": scalar_and_size(lambda x, n: pt.sum(pt.alloc(x, n)), np.inf, 0),
    "local_sum_prod_of_mul_or_div": scalar_and_size(
        lambda x, n: pt.sum(x * arange(n).astype("float64")), np.inf, 0
    ),
    "local_sum_of_neg_to_neg_of_sum": vector(lambda x: pt.sum(-x), UNSIGNED),
    "local_sumsqr2dot": vector(
        lambda x: pt.sum(pt.sqr(x[None] * x[:, None, :]), axis=(1, 2)), BYTES[None], (None, None)
    ),
    "local_Unique_lift": lambda: (
        [x := pt.vector("x"), n := pt.lscalar("n")],
        pt.unique(pt.alloc(x, n, 2)),
        [np.array([3.0, 1.0]), 0],
    ),
    "local_max_to_min": vector(lambda x: -pt.max(-x), UNSIGNED),
}
"""By the names of PyTensor's rewrites."""
UNCHANGED = {
    *("local_eager_useless_unbatched_blockwise", "local_useless_unbatched_blockwise"),
    *("local_reshape_to_dimshuffle", "local_subtensor_SpecifyShape_lift", "local_join_dims"),
    *("local_split_dims", "local_subtensor_of_batch_dims", "dot_diag_to_elemwise"),
    "index_by_selection",
}
"""Rewrites that change no value of their example: they cost time, lose an error, or fail."""
ENDLESS = {"local_blockwise_alloc_inputs"}
"""Rewrites that do not end on their example."""
