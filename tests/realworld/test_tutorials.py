"""The examples of PyTensor's tutorials work in mode ONNX, with the numbers of Python."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.gradient import (
    disconnected_grad,
    grad_clip,
    hessian,
    hessian_vector_product,
    jacobian,
    pullback,
    pushforward,
    verify_grad,
)
from pytensor.graph import vectorize_graph
from pytensor.raise_op import Assert
from pytensor.scan.basic import scan
from pytensor.scan.utils import until

from tests.conftest import PY, assert_same

Compile = Callable[..., Callable]
Lesson = Callable[[Compile, np.random.Generator], list[Any]]
LESSONS: dict[str, Lesson] = {}


def in_onnx(*args: Any, **kwargs: Any) -> Callable:
    return pytensor.function(*args, mode="ONNX", **kwargs)


def in_python(*args: Any, **kwargs: Any) -> Callable:
    return pytensor.function(*args, mode=PY, **kwargs)


def lesson(teach: Lesson) -> Lesson:
    """Register a lesson, which compiles functions, calls them and returns all results in order."""
    LESSONS[teach.__name__] = teach
    return teach


@lesson
def adding(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, y, m, n = pt.dscalar("x"), pt.dscalar("y"), pt.dmatrix("m"), pt.dmatrix("n")
    f, g = compile([x, y], x + y), compile([m, n], m + n)
    a, b = pt.vectors("a", "b")
    square = compile([a, b], a**2 + b**2 + 2 * a * b)
    return [f(2, 3), g([[1, 2], [3, 4]], [[10, 20], [30, 40]]), square([0, 1], [2, 3])]


@lesson
def several_outputs_and_arguments_by_name(compile: Compile, rng: np.random.Generator) -> list[Any]:
    a, b = pt.dmatrices("a", "b")
    f = compile([a, b], [a - b, abs(a - b), (a - b) ** 2])
    x, w = pt.dscalar("x"), pytensor.In(pt.dscalar("w"), name="weight")
    g = compile([x, w], x * w.variable)
    return [*f(np.ones((2, 2)), np.arange(4.0).reshape(2, 2)), g(33, 2), g(weight=3, x=2)]


@lesson
def the_logistic_function(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x = pt.dmatrix("x")
    s = 1 / (1 + pt.exp(-x))
    f, g = compile([x], [s, (1 + pt.tanh(x / 2)) / 2]), compile([x], pt.grad(s.sum(), x))
    return [*f([[0, 1], [-1, -2]]), g([[0, 1], [-1, -2]])]


@lesson
def an_accumulator(compile: Compile, rng: np.random.Generator) -> list[Any]:
    state, step = pytensor.shared(0, name="state"), pt.iscalar("step")
    add = compile([step], state, updates=[(state, state + step)])
    subtract = compile([step], state, updates=[(state, state - step)])
    results = [add(1), add(300), subtract(2), state.get_value()]
    state.set_value(-1)
    return [*results, add(3), state.get_value()]


@lesson
def replacing_a_shared_variable(compile: Compile, rng: np.random.Generator) -> list[Any]:
    state, foo = pytensor.shared(np.int64(4), name="state"), pt.lscalar("foo")
    f = compile([foo], state * 2 + foo, givens=[(state, foo + 10)])
    return [f(1), state.get_value()]


@lesson
def copies_with_other_shared_variables(compile: Compile, rng: np.random.Generator) -> list[Any]:
    state, step = pytensor.shared(np.float64(0), name="state"), pt.dscalar("step")
    f = compile([step], state, updates={state: state + step}, on_unused_input="ignore")
    f(10)
    other = pytensor.shared(np.float64(100), name="other")
    g, h = f.copy(swap={state: other}), f.copy(delete_updates=True)
    return [g(1), other.get_value(), *np.atleast_1d(h(5)), state.get_value(), f(1)]


@lesson
def functions_that_share_memory_after_pickling(
    compile: Compile, rng: np.random.Generator
) -> list[Any]:
    w, x = pytensor.shared(np.arange(3.0), name="w"), pt.dvector("x")
    f = compile([x], (w * x).sum(), updates={w: w + x})
    f([1, 2, 3])
    g = pickle.loads(pickle.dumps(f))
    return [f([1, 1, 1]), g([1, 1, 1]), f([0, 1, 0]), g([0, 1, 0])]


@lesson
def logistic_regression(compile: Compile, rng: np.random.Generator) -> list[Any]:
    features, labels = rng.normal(size=(60, 20)), rng.integers(0, 2, size=60)
    x, y = pt.dmatrix("x"), pt.ivector("y")
    w = pytensor.shared(rng.normal(size=20), name="w")
    b = pytensor.shared(0.0, name="b")
    p = 1 / (1 + pt.exp(-(x @ w) - b))
    loss = -y * pt.log(p) - (1 - y) * pt.log(1 - p)
    cost = loss.mean() + 0.01 * (w**2).sum()
    by_w, by_b = pt.grad(cost, [w, b])
    train = compile([x, y], [p > 0.5, cost], updates=((w, w - 0.1 * by_w), (b, b - 0.1 * by_b)))
    predict = compile([x], p > 0.5)
    for _ in range(30):
        _, last = train(features, labels.astype("int32"))
    return [last, w.get_value(), b.get_value(), predict(features)]


@lesson
def two_layers_with_momentum(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, y = pt.dmatrix("x"), pt.lvector("y")
    w1 = pytensor.shared(rng.normal(size=(4, 6)) / 2, name="w1")
    w2 = pytensor.shared(rng.normal(size=(6, 3)) / 2, name="w2")
    parameters = [w1, w2]
    logits = pt.maximum(x @ w1, 0) @ w2
    p = pt.special.softmax(logits, axis=-1)
    cost = -pt.log(p[pt.arange(y.shape[0]), y]).mean()
    updates = []
    for w, g in zip(parameters, pt.grad(cost, parameters), strict=True):
        v = pytensor.shared(np.zeros_like(w.get_value()))
        updates += [(v, 0.9 * v - 0.05 * g), (w, w + 0.9 * v - 0.05 * g)]
    train = compile([x, y], cost, updates=updates)
    data, labels = rng.normal(size=(20, 4)), rng.integers(0, 3, size=20)
    return [*(train(data, labels) for _ in range(10)), *(w.get_value() for w in parameters)]


@lesson
def an_autoencoder_with_tied_weights(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x = pt.dmatrix("x")
    w, b = pytensor.shared(rng.normal(size=(6, 2)), name="w"), pytensor.shared(np.zeros(2))
    code = pt.sigmoid(x @ w + b)
    cost = ((code @ w.T - x) ** 2).sum(axis=1).mean()
    by_w, by_b = pt.grad(cost, [w, b])
    train = compile([x], cost, updates={w: w - 0.02 * by_w, b: b - 0.02 * by_b})
    data = rng.normal(size=(15, 6))
    return [*(train(data) for _ in range(8)), w.get_value()]


@lesson
def jacobians(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, w = pt.dvector("x"), pt.dmatrix("w")
    y = pt.tanh(w @ x) ** 2
    by_scan = scan(
        lambda i, y, x: pt.grad(y[i], x),
        sequences=pt.arange(y.shape[0]),
        non_sequences=[y, x],
        return_updates=False,
    )
    row = pt.dvector("row")
    vectorised = vectorize_graph(pullback(y, x, row), {row: pt.eye(y.shape[0])})
    f = compile([x, w], [by_scan, jacobian(y, x), jacobian(y, x, vectorize=True), vectorised])
    return f(rng.normal(size=3), rng.normal(size=(4, 3)))


@lesson
def hessians(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, v = pt.dvector("x"), pt.dvector("v")
    cost = (x**4).sum() + x[0] * x[1] * x[2] + pt.exp(x[0] * x[-1])
    f = compile([x, v], [hessian(cost, x), hessian_vector_product(cost, [x], [v])[0]])
    return f(rng.normal(size=3), rng.normal(size=3))


@lesson
def products_with_jacobians(compile: Compile, rng: np.random.Generator) -> list[Any]:
    w, v, x, u = pt.dmatrix("w"), pt.dmatrix("v"), pt.dvector("x"), pt.dvector("u")
    y = pt.exp(pt.dot(x, w))
    forward, backward = pushforward(y, w, v), pullback(y, w, u)
    direct = pushforward(y, w, v, use_op_pushforward=True)
    f = compile([w, v, x, u], [forward, direct, backward])
    return f(*(rng.normal(size=s) for s in ((3, 2), (3, 2), 3, 2)))


@lesson
def gradients_cut_and_clipped(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x = pt.dvector("x")
    cost = (grad_clip(x, -0.5, 0.5) ** 3).sum() + (disconnected_grad(x) * x).sum()
    return [compile([x], pt.grad(cost, x))(rng.normal(size=5) * 3)]


@lesson
def powers_by_a_loop(compile: Compile, rng: np.random.Generator) -> list[Any]:
    k, a = pt.iscalar("k"), pt.dvector("a")
    powers = scan(
        lambda before, a: before * a,
        outputs_info=pt.ones_like(a),
        non_sequences=a,
        n_steps=k,
        return_updates=False,
    )
    f, g = compile([a, k], powers), compile([a, k], powers[-1])
    return [f(np.arange(5.0), 2), g(np.arange(5.0), 4)]


@lesson
def a_polynomial_by_a_loop(compile: Compile, rng: np.random.Generator) -> list[Any]:
    coefficients, x = pt.dvector("coefficients"), pt.dscalar("x")
    terms = scan(
        lambda c, power, x: c * x**power,
        sequences=[coefficients, pt.arange(1000)],
        non_sequences=x,
        return_updates=False,
    )
    f = compile([coefficients, x], [terms.sum(), pt.grad(terms.sum(), x)])
    return [*f([1, 0, 2], 3), *f([1.5, -2, 0, 4], -0.5)]


@lesson
def a_triangle_of_sums_by_a_loop(compile: Compile, rng: np.random.Generator) -> list[Any]:
    up_to = pt.lscalar("up_to")
    sums = scan(
        lambda i, total: total + i,
        sequences=pt.arange(up_to),
        outputs_info=np.int64(0),
        return_updates=False,
    )
    return [compile([up_to], sums)(15)]


@lesson
def a_loop_that_ends_early(compile: Compile, rng: np.random.Generator) -> list[Any]:
    limit = pt.dscalar("limit")

    def double(before: Any, limit: Any) -> Any:
        return before * 2, until(before * 2 > limit)

    values = scan(
        double,
        outputs_info=pt.constant(1.0),
        non_sequences=limit,
        n_steps=1024,
        return_updates=False,
    )
    f = compile([limit], values)
    return [f(45), f(1)]


@lesson
def a_recurrent_network(compile: Compile, rng: np.random.Generator) -> list[Any]:
    u, w, v = pt.dmatrix("u"), pt.dmatrix("w"), pt.dmatrix("v")
    x, start, target = pt.dmatrix("x"), pt.dvector("start"), pt.dmatrix("target")
    states = scan(
        lambda x, h, u, w: pt.tanh(x @ u + h @ w),
        sequences=x,
        outputs_info=start,
        non_sequences=[u, w],
        return_updates=False,
    )
    cost = ((states @ v - target) ** 2).mean()
    f = compile([x, target, start, u, w, v], [cost, states, *pt.grad(cost, [u, w, v, start])])
    shapes = ((6, 2), (6, 1), 3, (2, 3), (3, 3), (3, 1))
    return f(*(rng.normal(size=shape) for shape in shapes))


@lesson
def two_steps_back_and_reversed(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, u, v, n = pt.dmatrix("x"), pt.dmatrix("u"), pt.dmatrix("v"), pt.iscalar("n")
    forward = scan(
        lambda second, first: second @ u + pt.tanh(first @ v),
        outputs_info=[{"initial": x, "taps": [-2, -1]}],
        n_steps=n,
        return_updates=False,
    )
    backward = scan(
        lambda row, total: row + total / 2,
        sequences=x,
        outputs_info=pt.zeros(x.shape[1]),
        go_backwards=True,
        return_updates=False,
    )
    f = compile([x, u, v, n], [forward, backward])
    return f(*(rng.normal(size=(2, 2)) for _ in range(3)), 7)


@lesson
def the_mandelbrot_set(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    (re, im), inside = [pt.zeros_like(x), pt.zeros_like(y)], pt.zeros_like(x, dtype="int64")
    for _ in range(6):
        re, im = re**2 - im**2 + x, 2 * re * im + y
        inside += (re**2 + im**2 < 4).astype("int64")
    return [compile([x, y], inside)(*np.meshgrid(np.linspace(-2, 1, 7), np.linspace(-1, 1, 5)))]


@lesson
def conditions(compile: Compile, rng: np.random.Generator) -> list[Any]:
    a, b, x, y = pt.dscalar("a"), pt.dscalar("b"), pt.dmatrix("x"), pt.dmatrix("y")
    eager = compile([a, b, x, y], pt.switch(a < b, x.mean(), y.mean()))
    lazy = compile([a, b, x, y], ifelse(a < b, x.mean(), y.mean()))
    values = rng.normal(size=(2, 3, 3))
    return [f(*bounds, *values) for f in (eager, lazy) for bounds in ((1, 2), (2, 1))]


@lesson
def broadcasting(compile: Compile, rng: np.random.Generator) -> list[Any]:
    row, column, m = pt.drow("row"), pt.dcol("column"), pt.dmatrix("m")
    f = compile([row, column, m], [row + column, m * row, m - column, m + m.mean(axis=0)])
    return f(*(rng.normal(size=s) for s in ((1, 4), (3, 1), (3, 4))))


@lesson
def graphs_as_operations(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, y, z = pt.dscalars("x", "y", "z")
    inner = OpFromGraph([x, y, z], [x + y * z, x * pt.sin(y)])
    first, second = inner(x, y, z)
    again, _ = inner(first, second, z)
    return compile([x, y, z], [again, *pt.grad(again, [x, y, z])])(1.0, 2.0, 3.0)


@lesson
def shapes_and_types(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    joined = pt.join(0, x, y)
    fixed = pt.specify_shape(x, (2, 3))
    f = compile([x, y], [joined.shape, (fixed**2).shape, joined.size, joined.astype("int32")])
    return f(rng.normal(size=(2, 3)) * 5, rng.normal(size=(4, 3)))


@lesson
def indexing(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, v = pt.dmatrix("x"), pt.dvector("v")
    outputs = [x[1:, ::-1], x[x > 0], x[pt.argsort(v)], x[:, 1].set(0), x[1:].inc(v), x[..., None]]
    return compile([x, v], outputs)(rng.normal(size=(4, 4)), rng.normal(size=4))


@lesson
def a_planar_flow(compile: Compile, rng: np.random.Generator) -> list[Any]:
    z, u, w = pt.dmatrix("z"), pt.dvector("u"), pt.dvector("w")
    projected = pt.dot(z, w)
    moved = z + u * pt.tanh(projected)[:, None]
    slopes = (1 - pt.tanh(projected) ** 2)[:, None] * w
    density = -0.5 * (moved**2).sum(axis=-1) + pt.log(pt.abs(1 + slopes @ u))
    f = compile([z, u, w], [density, *pt.grad(density.mean(), [u, w])])
    return f(rng.normal(size=(7, 2)), rng.normal(size=2), rng.normal(size=2))


@lesson
def a_transformer_block(compile: Compile, rng: np.random.Generator) -> list[Any]:
    x, heads, width = pt.tensor("x", shape=(None, None, 8), dtype="float64"), 2, 8
    weights = [pytensor.shared(rng.normal(size=(width, n)) / 3) for n in (24, 8, 16)]
    down = pytensor.shared(rng.normal(size=(16, width)) / 4)

    def normalised(h: Any) -> Any:
        return (h - h.mean(-1, keepdims=True)) / pt.sqrt(h.var(-1, keepdims=True) + 1e-5)

    batch, length = x.shape[0], x.shape[1]
    q, k, v = pt.split(normalised(x) @ weights[0], [width] * 3, n_splits=3, axis=-1)
    q, k, v = (
        h.reshape((batch, length, heads, width // heads)).transpose(0, 2, 1, 3) for h in (q, k, v)
    )
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(width / heads)
    scores = pt.where(pt.tril(pt.ones((length, length))) > 0, scores, -np.inf)
    mixed = (pt.special.softmax(scores, axis=-1) @ v).transpose(0, 2, 1, 3)
    h = x + mixed.reshape((batch, length, width)) @ weights[1]
    inner = normalised(h) @ weights[2]
    h = h + (inner * 0.5 * (1 + pt.erf(inner / np.sqrt(2)))) @ down
    cost = (h**2).mean()
    f = compile([x], [h, *pt.grad(cost, [*weights, down])])
    return [*f(rng.normal(size=(2, 5, width))), *f(rng.normal(size=(1, 3, width)))]


@lesson
def evaluation_without_a_function(compile: Compile, rng: np.random.Generator) -> list[Any]:
    mode = "ONNX" if compile is in_onnx else PY
    x = pt.dvector("x")
    return [pt.exp(x).eval({x: [0.0, 1.0]}, mode=mode), pt.arange(5).cumsum().eval(mode=mode)]


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.few(7)
def test_lessons(name: str) -> None:
    found = LESSONS[name](in_onnx, np.random.default_rng(0))
    with pytensor.config.change_flags(cxx=""):
        expected = LESSONS[name](in_python, np.random.default_rng(0))
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        # Sums of terms of both signs: the scale is that of the whole array.
        scale = np.abs(b).max(initial=0.0) if np.asarray(b).dtype.kind == "f" else 0.0
        assert_same(np.asarray(a), b, rtol=1e-11, atol=1e-13 * scale)


def test_assertions_carry_their_message() -> None:
    x = pt.dvector("x")
    checked = Assert("positive numbers only")(x, (x > 0).all())
    f = in_onnx([x], checked * 2)
    np.testing.assert_array_equal(f([1, 2]), [2, 4])
    with pytest.raises(AssertionError, match="positive numbers only"):
        f([1, -2])


def test_gradients_are_verified_by_finite_differences() -> None:
    verify_grad(
        lambda x: pt.special.logsumexp(x, axis=0) * x[0],
        [np.random.default_rng(0).normal(size=(3, 2))],
        rng=np.random.default_rng(1),
        mode="ONNX",
    )


def test_the_configuration_takes_the_mode_itself() -> None:
    x = pt.dvector("x")
    mode = pytensor.compile.mode.get_mode("ONNX")
    with pytensor.config.change_flags(mode=mode):
        f = pytensor.function([x], x + 1)
    assert f.maker.mode is mode
    np.testing.assert_array_equal(f([1.0]), [2.0])
