"""Small graphs for each rule: one that it changes, and one that it leaves alone."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
import pytest
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.scan.utils import until
from pytensor.tensor.fft import irfft, rfft
from pytensor.tensor.linalg import solve_discrete_are, solve_discrete_lyapunov
from pytensor.tensor.optimize import minimize_scalar
from pytensor.tensor.signal import convolve1d

from pytensor_onnx import nn

Graph = tuple[Sequence[Variable], Any, Sequence[Any]]
"""Inputs, outputs and values of the inputs."""
X = np.array([[0.5, -1.5, 2.0], [1.25, 0.75, -0.25]])
SQUARE = np.array([[2.0, 0.5, 0.25], [0.5, 3.0, -0.5], [0.125, -0.25, 1.5]])


class Example(NamedTuple):
    """Makers of a graph that a rule changes, and of a graph that it leaves alone."""

    fires: Callable[[], Graph]
    leaves: Callable[[], Graph]


def of_matrix(f: Callable[[Any], Any], value: np.ndarray = X) -> Graph:
    x = pt.tensor("x", dtype=value.dtype, shape=(None,) * value.ndim)
    return [x], f(x), [value]


def matrix(f: Callable[[Any], Any], value: np.ndarray = X) -> Callable[[], Graph]:
    return lambda: of_matrix(f, value)


def vectors(f: Callable[..., Any], count: int = 2) -> Callable[[], Graph]:
    def graph() -> Graph:
        inputs = [pt.vector(name) for name in "xyz"[:count]]
        return inputs, f(*inputs), [X[0], X[1], X[0]][:count]

    return graph


def images(f: Callable[[Any], Any], *shape: int | None) -> Callable[[], Graph]:
    def graph() -> Graph:
        x = pt.tensor("x", shape=shape or (None, 2, 8, 8), dtype="float32")
        return [x], f(x), [filters(*(n or 3 for n in x.type.shape))]

    return graph


def filters(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def scanned(step: Callable, *sequences: Any, state: Any = None, **options: Any) -> Any:
    return pytensor.scan(step, sequences, outputs_info=state, return_updates=False, **options)


def loop_of_loops(x: Any) -> Any:
    def row(r: Any) -> Any:
        return scanned(lambda e, s: pt.tanh(e * s + 1), r, state=[np.float64(0.5)])[-1]

    return scanned(row, x)


def loop_with_state_of_loops(x: Any) -> Any:
    def row(r: Any, s: Any) -> Any:
        return scanned(lambda e, s: pt.tanh(e * s + 1), r, state=[s])[-1]

    return scanned(row, x, state=[np.float64(0.5)])


def steps_read(k: int) -> Graph:
    x = pt.matrix("x")
    return [x], scanned(lambda r, s: pt.tanh(r + s), x, state=[pt.zeros(3)])[k], [X]


def steps_of_given_number(f: Callable[[Any, Any], Any] = lambda x, y: y) -> Graph:
    x, n = pt.vector("x"), pt.lscalar("n")
    y = scanned(lambda e, s: pt.tanh(e + s), x, state=[np.float64(0)], n_steps=n)
    return [x, n], f(x, y), [X[0], 2]


def updates_of_vectors(n: int = 5) -> Graph:
    """Momentum steps of some vectors."""
    vectors = [pt.vector(shape=(3,)) for _ in range(2 * n)]
    velocities = [0.9 * v - 0.1 * g for v, g in zip(vectors[:n], vectors[n:], strict=True)]
    return vectors, velocities, [X[i % 2] * (i + 1) for i in range(2 * n)]


def convolution_of_images(width: int) -> Graph:
    shapes = (3, 64, 3, width), (160, 64, 3, 2)
    x, w = (pt.tensor(shape=shape, dtype="float32") for shape in shapes)
    values = [filters(*x.type.shape), filters(*w.type.shape) / 1024]
    return [x, w], nn.conv2d(x, w), values


def buffers(x: Any) -> Any:
    return scanned(lambda r, s: pt.tanh(r * s + r), x, state=[pt.ones(3)])


def selected(*piece: slice) -> Graph:
    x, m = pt.tensor3("x"), pt.matrix("m", dtype="bool")
    mask = np.array([[True, False, True], [False, True, True]])
    return [x, m], x[m, *piece], [np.arange(12.0).reshape(2, 3, 2), mask]


def solution(n: int) -> Graph:
    a = pt.matrix("a", shape=(n, n))
    return [a], pt.linalg.solve(a, a[0]), [np.eye(n) + 0.1 * np.arange(n * n).reshape(n, n)]


def routed_gradient(f: Callable[[Any], Any]) -> Graph:
    x, g = (
        pt.tensor(name, shape=(None, 2, n, n), dtype="float32") for name, n in (("x", 8), ("g", 4))
    )
    gradient = pt.grad(None, x, known_grads={nn.max_pool(f(x), 2): g})
    return [x, g], gradient, [filters(3, 2, 8, 8), filters(3, 2, 4, 4)]


def steps_that_draw(ends: bool = False) -> Graph:
    def step(x: Any, rng: Any) -> Any:
        rng, z = rng.uniform()
        # The numbers are other ones than PyTensor's.
        y = x + (z < 2)
        return ((y, rng), until(y > 9)) if ends else (y, rng)

    rng = pt.random.rng("rng")
    trace, _ = scanned(step, state=[pt.zeros(()), rng], n_steps=5)
    return [rng], trace, [np.random.default_rng(1)]


def lstm(f: Callable[[Any], Any], dtype: str) -> Graph:
    x = pt.tensor("x", shape=(None, None, 3), dtype=dtype)
    rng = np.random.default_rng(0)
    w, r = (pytensor.shared(rng.normal(0, 0.3, s).astype(dtype)) for s in ((3, 16), (4, 16)))
    y, *_ = nn.lstm(x, w, r)
    return [x], f(y), [rng.normal(size=(2, 3, 3)).astype(dtype)]


def channels_last(x: Any) -> Any:
    y = nn.max_pool(x.transpose(0, 3, 1, 2), 2).transpose(0, 2, 3, 1)
    return nn.max_pool(nn.relu(y).transpose(0, 3, 1, 2), 2)


def products_with_a_matrix_and_its_transpose(rows: int = 40) -> Graph:
    x, y = pt.fmatrix("x"), pt.fmatrix("y")
    w = filters(rows, 50)
    return [x, y], [x @ w, y @ w.T], [filters(2, rows), filters(3, 50)]


def product_in_a_loop(
    step: Callable[[Any, Any, Any], Any], f: Callable[[Any, Any], Any] = lambda y, w: y
) -> Graph:
    x, w = pt.matrix("x"), pt.matrix("w")
    y = scanned(step, x, state=[pt.zeros_like(x[0])], non_sequences=[w])
    return [x, w], f(y, w), [X, SQUARE / 4]


def layer(f: Callable[[Any, Any], Any], *shape: int | None) -> Callable[[], Graph]:
    """Make a graph of a layer of pytensor-ml in float32."""

    def graph() -> Graph:
        layers = pytest.importorskip("pytensor_ml.layers")
        with pytensor.config.change_flags(floatX="float32"):
            x = pt.tensor("x", shape=shape, dtype="float32")
            y = f(layers, x)
        inputs = list(explicit_graph_inputs([y]))
        return inputs, y, [filters(*(n or 3 for n in v.type.shape)) for v in inputs]

    return graph


def gradient_of(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: pt.grad(f(x).sum(), x)


def interpolated(x: Any) -> Any:
    from scipy.interpolate import InterpolatedUnivariateSpline

    dist_math = pytest.importorskip("pymc.distributions.dist_math")
    knots = np.linspace(-2, 2, 9)
    return dist_math.SplineWrapper(InterpolatedUnivariateSpline(knots, knots**3, k=3, ext=0))(x)


def beta_integrals(f: Callable[[Any, Any, Any], Any]) -> Graph:
    a, b, x = pt.vectors("a", "b", "x")
    return [a, b, x], f(a, b, x), [X[0] ** 2, X[1] ** 2, np.array([0.1, 0.5, 0.9])]


def minimum() -> Graph:
    x, a = pt.dscalar("x"), pt.dscalar("a")
    solution, success = minimize_scalar((x - a) ** 2, x)
    return [x, a], [solution, success], [0.5, 2.0]


def named(x: Any) -> Any:
    y = px.as_xtensor(x, dims=("row", "column"))
    return (y - y.mean("column")).values


F32 = X.astype("float32")
OPEN = None, 2, None, None
EXAMPLES: dict[str, Example] = {
    "name_activation": Example(
        images(lambda x: pt.switch(x > 0, x, np.float32(0.1) * x)),
        matrix(lambda x: pt.switch(x > 0, x, 0.1 * x)),
    ),
    "solve_as_matrices": Example(
        lambda: (
            [x := pt.tensor4("x"), b := pt.matrix("b")],
            [pt.linalg.tensorinv(x, ind=2), pt.linalg.tensorsolve(x, b)],
            [np.eye(6).reshape(2, 3, 3, 2) + 0.1 * np.arange(36.0).reshape(2, 3, 3, 2), X],
        ),
        lambda: (
            [x := pt.tensor3("x"), b := pt.matrix("b")],
            pt.linalg.tensorsolve(x, b),
            [np.eye(6).reshape(2, 3, 6) * 2 + 0.1, X],
        ),
    ),
    "zero_quotient": Example(matrix(lambda x: 0 / x), matrix(lambda x: 0 // x, np.arange(1, 3))),
    "multiply_matrices": Example(
        matrix(lambda x: x @ x.T), matrix(lambda x: x @ x.mT, np.stack([X, X]))
    ),
    "multiply_by_structure": Example(matrix(lambda x: pt.eye(2) @ x), matrix(lambda x: x @ x.T)),
    "drop_symmetric_transpose": Example(
        matrix(lambda x: pt.exp((x @ x.T).T)), matrix(lambda x: pt.exp((x @ x).T), SQUARE)
    ),
    "multiply_bessel_last": Example(
        matrix(lambda x: pt.ive(1.5, x) * pt.exp(pt.abs(x))),
        vectors(lambda x, y: pt.ive(1.5, x) * pt.exp(pt.abs(y))),
    ),
    "drop_two_signs": Example(
        matrix(lambda x: 1 - pt.sigmoid(-x)), matrix(lambda x: pt.log(-x - 9))
    ),
    "canonize_sum": Example(
        matrix(lambda x: (x + 1) - x + pt.exp(x)), matrix(lambda x: x + pt.exp(x))
    ),
    "canonize_product": Example(
        matrix(lambda x: (x * pt.exp(x)) / x), matrix(lambda x: x * pt.exp(x))
    ),
    "distribute_factors": Example(
        matrix(lambda x: pt.exp(x) * (x + 1 / pt.exp(x))), matrix(lambda x: pt.exp(x) * (x + 1))
    ),
    "multiply_sigmoids": Example(
        matrix(lambda x: pt.sigmoid(x) * pt.exp(-x)), matrix(lambda x: pt.sigmoid(x) * pt.exp(x))
    ),
    "compute_before_choice": Example(
        matrix(lambda x: pt.exp(pt.where(x > 0, x[0, 0], x[0, 1]))),
        matrix(lambda x: pt.exp(pt.where(x > 0, x, x[0, 1]))),
    ),
    "fit_numbers": Example(matrix(lambda x: 2 * x), matrix(lambda x: x * x)),
    "join_writes: increments": Example(
        vectors(lambda x: pytensor.grad(pt.exp(x[0]) + x[1] ** 2, x), 1),
        vectors(lambda x, y: pt.exp(x) + y),
    ),
    "join_writes: over all": Example(
        matrix(lambda x: x[1:].set(1)[1:].set(x[:1])), matrix(lambda x: x[1:].set(1)[:1].set(0))
    ),
    "narrow_arithmetic": Example(
        matrix(lambda x: (x.astype("float64") * x.astype("float64")).astype("float32"), F32),
        matrix(lambda x: (x.astype("float64") * x.sum()).astype("float32")),
    ),
    "widen_numbers": Example(
        matrix(lambda x: pt.log(pt.constant(np.float32(1.5))) * x),
        matrix(lambda x: pt.log(pt.constant(np.float32(1.5))) * x, F32),
    ),
    "widen_cumulative": Example(
        matrix(lambda x: pt.cumsum(x, 0), X > 0), matrix(lambda x: pt.cumsum(x, 0))
    ),
    "share_partial_sums": Example(
        vectors(lambda x, y, z: [x + y + z, pt.exp(x + y)], 3),
        vectors(lambda x, y, z: x + y + z, 3),
    ),
    "inline_products": Example(
        matrix(lambda x: pt.linalg.kron(x, x)), matrix(lambda x: pt.outer(x[0], x[1]))
    ),
    "drop_empty_product": Example(
        lambda: ([x := pt.matrix("x", shape=(0, 3))], x @ X.T, [np.ones((0, 3))]),
        lambda: ([x := pt.matrix("x", shape=(None, 3))], x @ X.T, [np.ones((0, 3))]),
    ),
    "divide_sizes": Example(
        matrix(lambda x: (6 * x.shape[0]) // 3 + x[0, 0].astype("int64")),
        matrix(lambda x: (5 * x.shape[0]) // 3 + x[0, 0].astype("int64")),
    ),
    "widen_operands": Example(matrix(lambda x: x + x.astype("int8")), matrix(lambda x: x + x[0])),
    "derive_betainc": Example(
        lambda: beta_integrals(lambda a, b, x: pt.grad(pt.betainc(a, b, x).sum(), a)),
        lambda: beta_integrals(pt.betainc),
    ),
    "correct_types": Example(
        vectors(lambda x: pt.linalg.lstsq(pt.constant(X), x[:2], -1.0)[0], 1),
        matrix(lambda x: pt.linalg.lstsq(pt.constant(X), x, -1.0)[0]),
    ),
    "convolve_fully": Example(
        vectors(lambda x, y: convolve1d(x, y[:2], mode="valid")),
        images(lambda x: nn.conv2d(x, filters(4, 2, 3, 3))),
    ),
    "encode_values": Example(
        lambda: ([z := pt.zvector("z")], pt.exp(z) * z, [X[0] + 1j * X[1]]), matrix(pt.exp)
    ),
    "transform_pairs: real": Example(matrix(rfft), matrix(lambda x: x.real)),
    "transform_pairs: to real": Example(
        matrix(lambda x: irfft(rfft(x) * 2)), matrix(lambda x: pt.real(2j * x))
    ),
    "slice_before_masking": Example(lambda: selected(np.s_[0:1]), lambda: selected(np.s_[:])),
    "index_joined_from_start": Example(
        vectors(lambda x, y: pt.join(0, x, y)[-2]), vectors(lambda x, y: pt.join(0, x, y)[2])
    ),
    "repeat_by_an_axis": Example(
        vectors(lambda x, y: x[np.array([[0, 1, 2]])].inc(y)),
        vectors(lambda x, y: x[np.array([0, 1, 0])].inc(y)),
    ),
    "batch_by_axes: sorting": Example(
        matrix(pt.vectorize(pt.sort, "(n)->(n)")), matrix(lambda x: pt.sort(x, axis=1))
    ),
    "batch_by_axes: indexing": Example(
        lambda: (
            [x := pt.matrix("x"), i := pt.lmatrix("i")],
            pt.vectorize(lambda x, i: x[i], "(n),(k)->(k)")(x, i),
            [X, np.array([[0, 2], [1, 1]])],
        ),
        lambda: ([x := pt.matrix("x"), i := pt.lmatrix("i")], x[:, i], [X, np.array([[0, 2]])]),
    ),
    "batch_scan": Example(
        matrix(lambda x: scanned(lambda r: pt.tanh(r).sum(), x)), matrix(buffers)
    ),
    "check_lengths": Example(
        steps_of_given_number, matrix(lambda x: scanned(lambda r, s: r * s, x, state=[x[0]]))
    ),
    "check_lengths: inside": Example(
        matrix(loop_of_loops), matrix(lambda x: scanned(lambda r: pt.tanh(r).sum(), x))
    ),
    "drop_known_checks": Example(
        lambda: steps_of_given_number(lambda x, y: pt.grad(y[-1], x)), steps_of_given_number
    ),
    "check_read_step": Example(lambda: steps_read(1), lambda: steps_read(-1)),
    "reduce_steps": Example(matrix(lambda x: buffers(x)[:1]), matrix(buffers)),
    "reduce_steps: constant bounds": Example(
        lambda: (
            [x := pt.matrix("x", shape=(2, 3))],
            scanned(lambda r, s: pt.tanh(r + s), x, state=[x[0]], n_steps=2)[1:1],
            [X],
        ),
        lambda: (
            [x := pt.matrix("x", shape=(2, 3))],
            scanned(lambda r, s: pt.tanh(r + s), x, state=[x[0]], n_steps=2)[1:],
            [X],
        ),
    ),
    "reduce_trace": Example(lambda: steps_read(-1), matrix(buffers)),
    "reduce_trace: buffers": Example(
        lambda: product_in_a_loop(
            lambda r, s, w: pt.tanh(r @ w + s), lambda y, w: pt.grad(y[-1].sum(), w)
        ),
        lambda: product_in_a_loop(lambda r, s, w: pt.tanh(r @ w + s)),
    ),
    "loop_over_layers": Example(
        lambda: lstm(lambda y: y.sum(), "float64"), lambda: lstm(lambda y: y.sum(), "float32")
    ),
    "compute_before_loop: products": Example(
        lambda: product_in_a_loop(lambda r, s, w: pt.tanh(r @ w + s)),
        lambda: product_in_a_loop(lambda r, s, w: pt.tanh(s @ w + r)),
    ),
    "compute_before_loop: draws": Example(steps_that_draw, lambda: steps_that_draw(ends=True)),
    "compute_before_loop: equal operations": Example(
        matrix(
            lambda x: scanned(
                lambda r, s: [pt.tanh(r + s) * pt.exp(s), pt.tanh(r + s) + pt.exp(s)],
                x,
                state=[pt.zeros(3), None],
            )[1]
        ),
        matrix(
            lambda x: scanned(
                lambda r, s: [pt.tanh(r + s), pt.exp(s)], x, state=[pt.zeros(3), None]
            )[1]
        ),
    ),
    "batch_inner_loops": Example(matrix(loop_of_loops), matrix(loop_with_state_of_loops)),
    "search_by_loops": Example(minimum, matrix(lambda x: x**2)),
    "solve_riccati": Example(
        lambda: (
            [a := pt.matrix("a"), q := pt.matrix("q")],
            solve_discrete_are(a, np.eye(3), q, np.eye(3)),
            [SQUARE / 4, np.eye(3)],
        ),
        lambda: (
            [a := pt.matrix("a"), q := pt.matrix("q")],
            solve_discrete_lyapunov(a, q, method="direct"),
            [SQUARE / 4, np.eye(3)],
        ),
    ),
    "choose_sizes_in_pairs": Example(
        lambda: (
            [x := pt.matrix("x"), i := pt.lvector("i")],
            x[pt.arange(i.shape[0]), i].mean(),
            [X, np.array([2, 1])],
        ),
        matrix(lambda x: x[[0, 1], [0, 1]]),
    ),
    "forget_sizes_beside_zero": Example(
        lambda: (
            [x := pt.vector("x", shape=(0,)), n := pt.lscalar("n")],
            pt.reshape(x, (n, 0)),
            [np.ones(0), 3],
        ),
        lambda: ([x := pt.vector("x"), n := pt.lscalar("n")], x.reshape((n, 1)), [X[0], 3]),
    ),
    "read_one_size": Example(images(lambda x: x.mean(axis=(0, 2, 3))), images(lambda x: x.sum())),
    "read_one_size: product": Example(matrix(lambda x: x.size * x), matrix(lambda x: x.prod())),
    "infer_sizes": Example(
        images(lambda x: nn.conv2d(x, filters(4, 2, 3, 3), subsample=(2, 2)).shape, *OPEN),
        images(lambda x: nn.conv2d(x, filters(4, 2, 3, 3)).shape, *OPEN),
    ),
    "infer_sizes: of read arrays": Example(
        images(lambda x: nn.conv2d(x, filters(4, 2, 3, 3), subsample=(2, 2)).mean((2, 3)), *OPEN),
        images(lambda x: nn.conv2d(x, filters(4, 2, 3, 3)).mean((2, 3)), *OPEN),
    ),
    "lower_named": Example(matrix(named), matrix(lambda x: x - x.mean(1)[:, None])),
    "attend_as_one": Example(
        layer(lambda ml, x: ml.MultiheadAttention("m", n_embd=8, n_head=4)(x), None, None, 8),
        layer(
            lambda ml, x: gradient_of(ml.MultiheadAttention("m", n_embd=8, n_head=4))(x),
            *(None, None, 8),
        ),
    ),
    "inline_layers": Example(
        layer(lambda ml, x: ml.Linear("fc", n_in=3, n_out=2)(x), None, 3),
        matrix(lambda x: pt.special.softmax(x, axis=1)),
    ),
    "inline_layers: gradients": Example(
        layer(lambda ml, x: gradient_of(ml.Linear("fc", n_in=3, n_out=2))(x), None, 3),
        matrix(gradient_of(lambda x: pt.special.softmax(x, axis=1)[:, 0])),
    ),
    "normalise_as_one": Example(
        layer(lambda ml, x: ml.LayerNorm("n", n_in=3)(x), None, 3),
        layer(lambda ml, x: ml.Linear("fc", n_in=3, n_out=2)(x), None, 3),
    ),
    "slice_gradients": Example(
        matrix(gradient_of(lambda x: pt.pad(x, ((1, 1), (0, 2))) ** 2)),
        matrix(gradient_of(lambda x: pt.pad(x, ((1, 1), (0, 2)), mode="edge") ** 2)),
    ),
    "recur_as_one": Example(
        layer(lambda ml, x: ml.LSTM("l", n_in=3, n_hidden=4)(x), None, None, 3),
        layer(lambda ml, x: gradient_of(ml.LSTM("l", n_in=3, n_hidden=4))(x), None, None, 3),
    ),
    "channels_first": Example(
        layer(
            lambda ml, x: ml.Conv2D("c", in_channels=2, out_channels=3, kernel_size=3)(x),
            *(None, 5, 5, 2),
        ),
        images(lambda x: nn.conv2d(x, filters(4, 2, 3, 3))),
    ),
    "resize_upsampled": Example(
        layer(lambda ml, x: ml.Upsample2D(scale_factor=2)(x), None, 4, 5, 3),
        layer(lambda ml, x: ml.Upsample2D(size=(10, 5))(x), None, None, None, 3),
    ),
    "replace_ops_of_pymc": Example(matrix(interpolated), matrix(lambda x: x**3)),
    "drop_leading_axes": Example(
        lambda: ([x := pt.matrix("x"), b := pt.vector("b")], x * b, [X, X[0]]),
        matrix(pt.exp),
    ),
    "fold_into_conv": Example(
        images(lambda x: 2 * nn.conv2d(x, filters(4, 2, 3, 3), filter_flip=False) + 1),
        images(lambda x: x[0, 0, 0, 0] * nn.conv2d(x, filters(4, 2, 3, 3), filter_flip=False)),
    ),
    "join_vectors": Example(updates_of_vectors, lambda: updates_of_vectors(2)),
    "merge_short_images": Example(
        lambda: convolution_of_images(4), lambda: convolution_of_images(40)
    ),
    "fuse_gemm": Example(
        matrix(lambda x: x @ x.T + 1), matrix(lambda x: x @ x.mT + 1, np.stack([X, X]))
    ),
    "fuse_relu_clip": Example(
        images(lambda x: pt.clip(nn.relu(x), np.float32(-1), np.float32(1))),
        images(lambda x: pt.clip(x, np.float32(-1), np.float32(1))),
    ),
    "keep_reduced_axes": Example(
        matrix(lambda x: x - pt.exp(pt.sum(x, axis=1))[:, None]),
        matrix(lambda x: x - pt.exp(pt.sum(x, axis=1))[None], SQUARE),
    ),
    "move_transposes": Example(images(channels_last, None, 8, 8, 2), matrix(lambda x: x.T)),
    "legalise": Example(matrix(pt.tanh), images(pt.tanh)),
    "keep_apart": Example(matrix(lambda x: x + 1e-300), matrix(lambda x: x + 1)),
    "merge_equal": Example(matrix(lambda x: pt.eye(x.shape[0]) + x @ x.T), matrix(pt.exp)),
    "add_leading_axes_last": Example(
        matrix(lambda x: pt.exp(x[None])), matrix(lambda x: pt.exp(x[:, None]))
    ),
    "share_transposed": Example(
        products_with_a_matrix_and_its_transpose,
        lambda: products_with_a_matrix_and_its_transpose(4),
    ),
    "vector_products": Example(
        lambda: (
            [v := pt.vector("v"), a := pt.matrix("a")],
            [v @ a, a.T @ v],
            [np.array([1.0, 2.0]), X],
        ),
        matrix(lambda x: x @ x.T),
    ),
    "broadcast_numbers": Example(
        images(lambda x: np.float32(0.5) * x, 300, 300, 1, 1),
        images(lambda x: np.float32(0.5) * x, 300, 300),
    ),
    "mask_before_routing": Example(
        lambda: routed_gradient(nn.relu), lambda: routed_gradient(pt.exp)
    ),
    "sum_batched_product": Example(
        matrix(lambda x: (x.mT @ x).sum(axis=0), np.stack([SQUARE, X.T @ X])),
        matrix(lambda x: [y := x.mT @ x, y.sum(axis=0)], np.stack([SQUARE, X.T @ X])),
    ),
    "write_out_small": Example(lambda: solution(3), lambda: solution(4)),
    "spell_sizes": Example(matrix(lambda x: pt.join(0, x, x[1:])), matrix(pt.exp)),
    "keep_origins": Example(matrix(lambda x: x + 0 * x + pt.exp(x)), matrix(pt.exp)),
}
"""By the names of rules, with a part of the rule after a colon."""
