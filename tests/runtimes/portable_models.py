"""Small models of all kinds, to be exported for every runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.sparse
from pytensor import sparse
from pytensor.graph.basic import Variable
from pytensor.scan.utils import until

from pytensor_onnx import export_onnx, nn, prng
from pytensor_onnx.exporting.program.program import ONNXProgram


class Model(NamedTuple):
    """Inputs, outputs and values of a graph, and further arguments of its export."""

    inputs: Sequence[Variable]
    outputs: Sequence[Variable]
    values: Sequence[Any]
    options: Mapping[str, Any] = {}

    def export(self, target: str) -> ONNXProgram:
        """Export in float32, without verification: the runtimes are compared with each other."""
        names = [f"result{i}" for i in range(len(self.outputs))]
        options = {"precision": "float32", "verify": False, "output_names": names}
        outputs = list(self.outputs)
        return export_onnx(list(self.inputs), outputs, target=target, **options, **self.options)


MODELS: dict[str, Callable[[], Model]] = {}


def model(function: Callable[[], Model]) -> Callable[[], Model]:
    MODELS[function.__name__.replace("_", " ").strip()] = function
    return function


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def weight(name: str, *shape: int) -> Variable:
    return pytensor.shared(numbers(*shape, seed=sum(map(ord, name))) / 3, name=name)


def symbol(name: str, *shape: int | None) -> Variable:
    return pt.tensor(name, shape=shape, dtype="float32")


@model
def dense_network() -> Model:
    x = symbol("x", None, 16)
    h = nn.relu(nn.linear(x, weight("w1", 8, 16), weight("b1", 8)))
    y = nn.softmax(nn.linear(h, weight("w2", 3, 8), weight("b2", 3)), axis=-1)
    return Model([x], [y], [numbers(4, 16)], {"dynamic_axes": {"x": {0: "batch"}}})


@model
def convolutional_network() -> Model:
    x = symbol("x", None, 1, 8, 8)
    h = nn.conv2d(x, weight("filters", 4, 1, 3, 3), padding=1, bias=weight("bias", 4))
    h = nn.max_pool(nn.relu(h), 2)
    y = nn.linear(h.reshape((h.shape[0], 64)), weight("w", 5, 64), weight("b", 5))
    return Model([x], [y], [numbers(2, 1, 8, 8)], {"dynamic_axes": {"x": {0: "batch"}}})


@model
def batch_norm_and_residual() -> Model:
    x = symbol("x", None, 4, 6, 6)
    ones, zeros = np.ones(4, "float32"), np.zeros(4, "float32")
    h = nn.batch_norm(nn.conv2d(x, weight("k", 4, 4, 3, 3), padding=1), ones, zeros, zeros, ones)
    y = nn.avg_pool(nn.relu(x + h), 2)
    return Model([x], [y], [numbers(2, 4, 6, 6)], {"dynamic_axes": {"x": {0: "batch"}}})


@model
def upsampling_network() -> Model:
    x = symbol("x", None, 3, 4, 4)
    y = nn.conv2d_transpose(x, weight("k", 3, 2, 2, 2), stride=2)
    return Model([x], [nn.sigmoid(y), nn.upsample(x, 2)], [numbers(1, 3, 4, 4)])


@model
def lstm() -> Model:
    x = symbol("x", 2, 7, 5)
    parts = weight("wi", 5, 24), weight("wh", 6, 24), weight("bi", 24), weight("bh", 24)
    y, h, _ = nn.lstm(x, *parts)
    return Model([x], [y, h], [numbers(2, 7, 5)])


@model
def gru() -> Model:
    x = symbol("x", 2, 7, 5)
    parts = weight("wi", 5, 18), weight("wh", 6, 18), weight("bi", 18), weight("bh", 18)
    y, h = nn.gru(x, *parts)
    return Model([x], [y, h], [numbers(2, 7, 5)])


@model
def transformer() -> Model:
    x = symbol("x", None, 6, 16)
    h = nn.layer_norm(x, weight("g", 16), weight("b", 16))
    q, k, v = (h @ weight(name, 16, 16) for name in ("wq", "wk", "wv"))
    x1 = x + nn.attention(q, k, v, is_causal=True, q_num_heads=2, kv_num_heads=2)
    y = x1 + nn.linear(nn.gelu(nn.linear(x1, weight("w1", 32, 16))), weight("w2", 16, 32))
    return Model([x], [y], [numbers(2, 6, 16)], {"dynamic_axes": {"x": {0: "batch"}}})


@model
def embedding() -> Model:
    i = pt.lmatrix("i")
    return Model([i], [weight("table", 10, 4)[i].mean(axis=1)], [np.array([[1, 2], [9, 0]])])


@model
def training_step() -> Model:
    x, y = symbol("x", None, 5), pt.lvector("y")
    parameters = [weight("w1", 5, 8), weight("b1", 8), weight("w2", 8, 3), weight("b2", 3)]
    w1, b1, w2, b2 = parameters
    z = pt.tanh(x @ w1 + b1) @ w2 + b2
    loss = -pt.special.log_softmax(z, axis=1)[pt.arange(y.shape[0]), y].mean()
    gradients = zip(parameters, pt.grad(loss, parameters), strict=True)
    updates = {p: p - np.float32(0.1) * g for p, g in gradients}
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    values = [numbers(6, 5), np.array([0, 2, 1, 1, 0, 2])]
    return Model([x, y], [loss], values, {"updates": updates, "dynamic_axes": axes})


@model
def integers() -> Model:
    i = pt.imatrix("i")
    outputs = [i.sum(axis=0, dtype="int32"), i.max(axis=0), i // 3, i % 4, pt.abs(i)]
    return Model([i], outputs, [np.arange(-4, 8, dtype="int32").reshape(3, 4)])


@model
def reductions() -> Model:
    x = symbol("x", None, None)
    outputs = [x.sum(), x.mean(axis=0), x.var(axis=1), x.max(axis=1), pt.logsumexp(x, axis=1)]
    return Model([x], [*outputs, pt.cumsum(x, axis=0)], [numbers(3, 4)])


@model
def products() -> Model:
    x, y = symbol("x", None, 3, 4), symbol("y", None, 4, 5)
    joined = pt.einsum("bij,bjk->bik", x, y)
    return Model([x, y], [joined, pt.outer(x[0, 0], y[0, 0])], [numbers(2, 3, 4), numbers(2, 4, 5)])


@model
def indices() -> Model:
    x, i = symbol("x", None, None), pt.lvector("i")
    outputs = [x[i], x[:, i[0]], x.T.reshape((-1,)), x[::-1, 1:], x[i, i]]
    return Model([x, i], outputs, [numbers(4, 4), np.array([1, 0, 2])])


@model
def writes_at_indices() -> Model:
    x, i = symbol("x", None, None), pt.lvector("i")
    outputs = [pt.set_subtensor(x[i], 0.0), pt.inc_subtensor(x[i, i], 1.0)]
    return Model([x, i], outputs, [numbers(4, 4), np.array([1, 0, 2])])


@model
def masks() -> Model:
    x = symbol("x", None, None)
    outputs = [x[x > 0], x[x[:, 0] > 0], pt.switch(x > 0, x, 0.1 * x)]
    return Model([x], outputs, [numbers(4, 4)])


@model
def sorting() -> Model:
    x = symbol("x", None)
    return Model([x], [pt.sort(x), pt.argsort(x), pt.argmax(x)], [numbers(9)])


@model
def recurrence() -> Model:
    x, y0 = symbol("x", None), symbol("y0")
    ys = pytensor.scan(lambda u, y: pt.sin(u) + y / 2, [x], [y0], return_updates=False)
    return Model([x, y0], [ys], [numbers(6), np.float32(0.5)])


@model
def fixed_number_of_steps() -> Model:
    x = symbol("x", 3)
    ys = pytensor.scan(pt.cos, outputs_info=x, n_steps=20, return_updates=False)
    return Model([x], [ys[-1]], [numbers(3)])


@model
def loop_until_a_condition() -> Model:
    y0, limit = symbol("y0"), symbol("limit")
    ys = pytensor.scan(
        lambda y: (y * 1.5 + 1, until(y > limit)), [], [y0], n_steps=50, return_updates=False
    )
    return Model([y0, limit], [ys[-1]], [np.float32(0.5), np.float32(40)])


@model
def cholesky() -> Model:
    a, b = symbol("a", 4, 4), symbol("b", 4)
    z = numbers(4, 4)
    outputs = [pt.linalg.cholesky(a), pt.linalg.solve(a, b, assume_a="pos")]
    return Model([a, b], outputs, [z @ z.T + 4 * np.eye(4, dtype="float32"), numbers(4)])


@model
def linear_equations() -> Model:
    a, b = symbol("a", 3, 3), symbol("b", 3)
    values = [numbers(3, 3) + 4 * np.eye(3, dtype="float32"), numbers(3)]
    return Model([a, b], [pt.linalg.solve(a, b), pt.linalg.inv(a), pt.linalg.det(a)], values)


@model
def svd() -> Model:
    a = symbol("a", 4, 3)
    return Model([a], [pt.linalg.svd(a, compute_uv=False)], [numbers(4, 3)])


@model
def activations() -> Model:
    x = symbol("x", None)
    outputs = [pt.erf(x), pt.sigmoid(x), pt.softplus(x), nn.gelu(x), nn.elu(x), pt.expm1(x)]
    return Model([x], outputs, [numbers(7)])


@model
def gamma_functions() -> Model:
    x = symbol("x", None)
    return Model([x], [pt.gammaln(x), pt.digamma(x)], [np.abs(numbers(5)) + np.float32(0.5)])


@model
def incomplete_beta() -> Model:
    x = symbol("x", None)
    return Model([x], [pt.betainc(2.0, 3.0, x / (1 + x))], [np.abs(numbers(5))])


@model
def uniform_draws() -> Model:
    rng = pt.random.shared_rng(seed=1, name="rng")
    following, draws = rng.uniform(size=4)
    return Model([], [draws], [], {"updates": {rng: following}})


@model
def normal_draws() -> Model:
    rng = pt.random.shared_rng(seed=1, name="rng")
    following, draws = rng.normal(size=4)
    return Model([], [draws], [], {"updates": {rng: following}})


@model
def stateless_uniform_draws() -> Model:
    seed = pt.lscalar("seed")
    draws = prng.random_uniform(prng.init_prng(seed), 5).values
    # All bits of the fractions.
    return Model([seed], [draws, (draws * np.float32(2**23)).astype("int32")], [np.array(42)])


@model
def stateless_normal_draws() -> Model:
    seed = pt.lscalar("seed")
    return Model([seed], [prng.random_normal(prng.init_prng(seed), 5).values], [np.array(42)])


@model
def density_of_a_PyMC_model() -> Model:
    import pymc as pm

    x = np.random.default_rng(0).normal(size=(12, 2))
    with pm.Model() as regression:
        slopes = pm.Normal("slopes", 0, 2, shape=2)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", x @ slopes, sigma, observed=x @ [1.0, -0.5])
    values = [np.array([0.5, -0.5], "float32"), np.float32(0.1)]
    return Model(regression.value_vars, [regression.logp(), regression.dlogp()], values)


@model
def Fourier_transform() -> Model:
    x = symbol("x", 2, 8)
    return Model([x], [pt.fft.rfft(x)], [numbers(2, 8)])


@model
def sparse_product() -> Model:
    dense = np.where(np.random.default_rng(1).random((6, 5)) > 0.6, numbers(6, 5), 0)
    x = symbol("x", 5, 2)
    constant = sparse.as_sparse_variable(scipy.sparse.csr_matrix(dense))
    return Model([x], [sparse.dot(constant, x)], [numbers(5, 2)])


@model
def complex_numbers() -> Model:
    z = pt.cvector("z")
    value = (numbers(3) + 1j * numbers(3, seed=1)).astype("complex64")
    return Model([z], [z * (1 + 1j), pt.abs(z), pt.exp(z)], [value])


@model
def convolution_of_signals() -> Model:
    x = symbol("x", 20)
    return Model([x], [pt.signal.convolve1d(x, weight("k", 5), mode="same")], [numbers(20)])
