"""A small graph for each rule that the rule changes: inputs, outputs and values of the inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.fft import irfft, rfft
from pytensor.tensor.signal import convolve1d
from pytensor.tensor.slinalg import solve_discrete_are

from pytensor_onnx import nn

Example = tuple[Sequence[Variable], Any, Sequence[Any]]
X = np.array([[0.5, -1.5, 2.0], [1.25, 0.75, -0.25]])
SQUARE = np.array([[2.0, 0.5, 0.25], [0.5, 3.0, -0.5], [0.125, -0.25, 1.5]])


def of_matrix(f: Callable[[Any], Any], value: np.ndarray = X) -> Example:
    x = pt.tensor("x", dtype=value.dtype, shape=(None,) * value.ndim)
    return [x], f(x), [value]


def of_images(f: Callable[[Any], Any], *shape: int | None) -> Example:
    x = pt.tensor("x", shape=shape or (None, 2, 8, 8), dtype="float32")
    value = np.random.default_rng(0).normal(size=[n or 3 for n in x.type.shape])
    return [x], f(x), [value.astype("float32")]


def filters(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def scanned(step: Callable, *sequences: Any, state: Any = None, **options: Any) -> Any:
    return pytensor.scan(step, sequences, outputs_info=state, return_updates=False, **options)


def loop_of_loops(x: Any) -> Any:
    def row(r: Any) -> Any:
        return scanned(lambda e, s: pt.tanh(e * s + 1), r, state=[np.float64(0.5)])[-1]

    return scanned(row, x)


def steps_read(k: int) -> Example:
    x = pt.matrix("x")
    return [x], scanned(lambda r, s: pt.tanh(r + s), x, state=[pt.zeros(3)])[k], [X]


def updates_of_vectors() -> Example:
    """Momentum steps of five vectors."""
    vectors = [pt.vector(shape=(3,)) for _ in range(10)]
    velocities = [0.9 * v - 0.1 * g for v, g in zip(vectors[:5], vectors[5:], strict=True)]
    return vectors, velocities, [X[i % 2] * (i + 1) for i in range(10)]


def convolution_of_short_images() -> Example:
    x, w = (pt.tensor(shape=shape, dtype="float32") for shape in ((3, 64, 3, 4), (160, 64, 3, 2)))
    values = [filters(*x.type.shape), filters(*w.type.shape) / 1024]
    return [x, w], nn.conv2d(x, w), values


def buffers(x: Any) -> Any:
    return scanned(lambda r, s: pt.tanh(r * s + r), x, state=[pt.ones(3)])


def selected(mask: np.ndarray) -> Example:
    x, m = pt.tensor3("x"), pt.matrix("m", dtype="bool")
    return [x, m], x[m, 0:1], [np.arange(12.0).reshape(2, 3, 2), mask]


def solution_of_three() -> Example:
    a = pt.matrix("a", shape=(3, 3))
    return [a], pt.linalg.solve(a, a[0]), [SQUARE]


def routed_gradient() -> Example:
    x, g = (
        pt.tensor(name, shape=(None, 2, n, n), dtype="float32") for name, n in (("x", 8), ("g", 4))
    )
    gradient = pt.grad(None, x, known_grads={nn.max_pool(nn.relu(x), 2): g})
    return [x, g], gradient, [filters(3, 2, 8, 8), filters(3, 2, 4, 4)]


def steps_that_draw() -> Example:
    def step(x: Any, rng: Any) -> Any:
        rng, z = rng.uniform()
        # The numbers are other ones than PyTensor's.
        return x + (z < 2), rng

    rng = pt.random.rng("rng")
    trace, _ = scanned(step, state=[pt.zeros(()), rng], n_steps=5)
    return [rng], trace, [np.random.default_rng(1)]


def lstm_gradient() -> Example:
    x = pt.tensor("x", shape=(None, None, 3), dtype="float64")
    rng = np.random.default_rng(0)
    w, r = (pytensor.shared(rng.normal(0, 0.3, s)) for s in ((3, 16), (4, 16)))
    y, *_ = nn.lstm(x, w, r)
    return [x], y.sum(), [rng.normal(size=(2, 3, 3))]


def channels_last(x: Any) -> Any:
    y = nn.max_pool(x.transpose(0, 3, 1, 2), 2).transpose(0, 2, 3, 1)
    return nn.max_pool(nn.relu(y).transpose(0, 3, 1, 2), 2)


def products_with_a_matrix_and_its_transpose() -> Example:
    x, y = pt.fmatrix("x"), pt.fmatrix("y")
    w = filters(40, 50)
    return [x, y], [x @ w, y @ w.T], [filters(2, 40), filters(3, 50)]


EXAMPLES: dict[str, Callable[[], Example]] = {
    "name_activation": lambda: of_images(lambda x: pt.switch(x > 0, x, np.float32(0.1) * x)),
    "invert_as_matrix": lambda: (
        [x := pt.tensor4("x")],
        pt.linalg.tensorinv(x, ind=2),
        [np.eye(6).reshape(2, 3, 3, 2) + 0.1 * np.arange(36.0).reshape(2, 3, 3, 2)],
    ),
    "solve_as_matrix": lambda: (
        [x := pt.tensor4("x"), b := pt.matrix("b")],
        pt.linalg.tensorsolve(x, b),
        [np.eye(6).reshape(2, 3, 3, 2) * 2 + 0.1, X],
    ),
    "zero_quotient": lambda: of_matrix(lambda x: 0 / x),
    "multiply_matrices": lambda: of_matrix(lambda x: x @ x.T),
    "multiply_by_structure": lambda: of_matrix(lambda x: pt.eye(2) @ x),
    "drop_symmetric_transpose": lambda: of_matrix(lambda x: pt.exp((x @ x.T).T)),
    "multiply_bessel_last": lambda: of_matrix(lambda x: pt.ive(1.5, x) * pt.exp(pt.abs(x))),
    "canonize_sum": lambda: of_matrix(lambda x: (x + 1) - x + pt.exp(x)),
    "canonize_product": lambda: of_matrix(lambda x: (x * pt.exp(x)) / x),
    "distribute_factors": lambda: of_matrix(lambda x: pt.exp(x) * (x + 1 / pt.exp(x))),
    "multiply_sigmoids": lambda: of_matrix(lambda x: pt.sigmoid(x) * pt.exp(-x)),
    "fit_numbers": lambda: of_matrix(lambda x: 2 * x),
    "join_increments": lambda: (
        [x := pt.vector("x")],
        pytensor.grad(pt.exp(x[0]) + x[1] ** 2, x),
        [X[0]],
    ),
    "narrow_arithmetic": lambda: of_matrix(
        lambda x: (x.astype("float64") * x.astype("float64")).astype("float32"),
        X.astype("float32"),
    ),
    "widen_numbers": lambda: of_matrix(lambda x: pt.log(pt.constant(np.float32(1.5))) * x),
    "share_partial_sums": lambda: (
        [x := pt.vector("x"), y := pt.vector("y"), z := pt.vector("z")],
        [x + y + z, pt.exp(x + y)],
        [X[0], X[1], X[0]],
    ),
    "inline_products": lambda: of_matrix(lambda x: pt.linalg.kron(x, x)),
    "divide_sizes": lambda: of_matrix(lambda x: (6 * x.shape[0]) // 3 + x[0, 0].astype("int64")),
    "widen_operands": lambda: of_matrix(lambda x: x + x.astype("int8"), X.astype("float64")),
    "convolve_fully": lambda: (
        [x := pt.vector("x"), y := pt.vector("y")],
        convolve1d(x, y, mode="valid"),
        [np.arange(5.0), np.array([1.0, -2.0])],
    ),
    "encode_values": lambda: ([z := pt.zvector("z")], pt.exp(z) * z, [X[0] + 1j * X[1]]),
    "transform_real": lambda: of_matrix(rfft),
    "transform_to_real": lambda: of_matrix(lambda x: irfft(rfft(x) * 2)),
    "slice_before_masking": lambda: selected(np.array([[True, False, True], [False, True, True]])),
    "index_joined_from_start": lambda: (
        [x := pt.vector("x"), y := pt.vector("y")],
        pt.join(0, x, y)[-2],
        [X[0], X[1]],
    ),
    "batch_scan": lambda: of_matrix(lambda x: scanned(lambda r: pt.tanh(r).sum(), x)),
    "check_lengths": lambda: (
        [x := pt.vector("x"), n := pt.lscalar("n")],
        scanned(lambda e, s: pt.tanh(e + s), x, state=[np.float64(0)], n_steps=n),
        [X[0], 2],
    ),
    "check_read_step": lambda: steps_read(1),
    "check_inner_loops": lambda: of_matrix(loop_of_loops),
    "reduce_steps": lambda: of_matrix(lambda x: buffers(x)[:1]),
    "reduce_trace": lambda: steps_read(-1),
    "loop_over_layers": lstm_gradient,
    "multiply_before_loop": lambda: (
        [x := pt.matrix("x"), w := pt.matrix("w")],
        scanned(lambda r, s, w: pt.tanh(r @ w + s), x, state=[pt.zeros(3)], non_sequences=[w]),
        [X, SQUARE],
    ),
    "batch_inner_loops": lambda: of_matrix(loop_of_loops),
    "solve_riccati": lambda: (
        [a := pt.matrix("a"), q := pt.matrix("q")],
        solve_discrete_are(a, np.eye(3), q, np.eye(3)),
        [SQUARE / 4, np.eye(3)],
    ),
    "cast_one_size": lambda: of_images(lambda x: x.mean(axis=(0, 2, 3))),
    "multiply_sizes": lambda: of_matrix(lambda x: x.size * x),
    "count_elements": lambda: of_matrix(
        lambda x: x.shape[0].astype("float64") * x.shape[1].astype("float64") * x
    ),
    "drop_leading_axes": lambda: (
        [x := pt.matrix("x"), b := pt.vector("b")],
        x * b,
        [X, X[0]],
    ),
    "fold_into_conv": lambda: of_images(
        lambda x: 2 * nn.conv2d(x, filters(4, 2, 3, 3), filter_flip=False) + 1
    ),
    "join_vectors": updates_of_vectors,
    "merge_short_images": convolution_of_short_images,
    "fuse_gemm": lambda: of_matrix(lambda x: x @ x.T + 1),
    "fuse_relu_clip": lambda: of_images(
        lambda x: pt.clip(nn.relu(x), np.float32(-1), np.float32(1))
    ),
    "keep_reduced_axes": lambda: of_matrix(lambda x: x - pt.exp(pt.sum(x, axis=1))[:, None]),
    "move_transposes": lambda: of_images(channels_last, None, 8, 8, 2),
    "legalise": lambda: of_matrix(pt.tanh),
    "keep_apart": lambda: of_matrix(lambda x: x + 1e-300),
    "add_leading_axes_last": lambda: of_matrix(lambda x: pt.exp(x[None])),
    "share_transposed": products_with_a_matrix_and_its_transpose,
    "vector_products": lambda: (
        [v := pt.vector("v"), a := pt.matrix("a")],
        [v @ a, a.T @ v],
        [np.array([1.0, 2.0]), X],
    ),
    "broadcast_numbers": lambda: of_images(lambda x: np.float32(0.5) * x, 300, 300, 1, 1),
    "read_before_replacing": lambda: (
        [x := pt.vector("x"), y := pt.scalar("y")],
        pt.set_subtensor(x[2], y)[1] * 2,
        [X[0], 4.0],
    ),
    "draw_before_loop": steps_that_draw,
    "mask_before_routing": routed_gradient,
    "sum_batched_product": lambda: of_matrix(
        lambda x: (x.mT @ x).sum(axis=0), np.stack([SQUARE, X.T @ X])
    ),
    "write_out_small": solution_of_three,
    "write_over_all": lambda: of_matrix(lambda x: x[1:].set(1)[1:].set(x[:1])),
    "merge_equal_operations": lambda: of_matrix(
        lambda x: scanned(
            lambda r, s: [pt.tanh(r + s) * pt.exp(s), pt.tanh(r + s) + pt.exp(s)],
            x,
            state=[pt.zeros(3), None],
        )[1]
    ),
    "spell_sizes": lambda: of_matrix(lambda x: pt.join(0, x, x[1:])),
}
