"""Models as users write them, small: networks, densities, samplers, training, loops.

`scripts/ablate.py` switches each rule off and exports them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.sparse
from pytensor import sparse
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.special import log_softmax, softmax

from benchmarks import loops
from pytensor_onnx import ONNXProgram, export_onnx, nn

Define = Callable[[np.random.Generator], None]
MODELS: dict[str, Callable[[], UserModel]] = {}
"""Functions that build the models, by name."""


@dataclass(frozen=True)
class UserModel:
    """A model to export, and values of its inputs in order."""

    export: Callable[[], ONNXProgram]
    values: Sequence[Any]


def user_model(build: Callable[[], UserModel]) -> Callable[[], UserModel]:
    """Register a model by the name of its function."""
    MODELS[build.__name__] = build
    return build


def _exported(inputs: Sequence[Any], outputs: Any, values: Sequence[Any]) -> UserModel:
    return UserModel(lambda: export_onnx(list(inputs), outputs, verify=False), values)


def _drawn(*shapes: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(scale=0.3, size=shape).astype(dtype) for shape in shapes]


def _weight(rng: np.random.Generator, *shape: int) -> Any:
    return pytensor.shared(rng.normal(0, 0.1, shape).astype("float32"), shape=shape)


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return -pt.mean(log_softmax(logits, axis=1)[pt.arange(labels.shape[0]), labels])


def _residual(rng: np.random.Generator, images: Any) -> tuple[Any, list[Any]]:
    """Return the logits of a small residual network, and its weights."""
    weights: list[Any] = []

    def conv(x: Any, channels: int, stride: int = 1) -> Any:
        filters, bias = _weight(rng, channels, x.type.shape[1], 3, 3), _weight(rng, channels)
        weights.extend([filters, bias])
        return nn.conv2d(x, filters, (1, 1), (stride, stride), filter_flip=False, bias=bias)

    x = nn.max_pool(nn.relu(conv(images, 16)), 2)
    for channels, stride in ((16, 1), (32, 2)):
        y = conv(nn.relu(conv(x, channels, stride)), channels)
        x = nn.relu(y + (conv(x, channels, stride) if stride > 1 else x))
    weights += [_weight(rng, 32, 10), _weight(rng, 10)]
    return x.mean(axis=(2, 3)) @ weights[-2] + weights[-1], weights


@user_model
def residual_network() -> UserModel:
    """Classify images of any number by convolutions with shortcuts."""
    images = pt.tensor("images", shape=(None, 3, 32, 32), dtype="float32")
    logits, _ = _residual(np.random.default_rng(0), images)
    return _exported([images], logits, _drawn((8, 3, 32, 32)))


@user_model
def training_step_of_residual_network() -> UserModel:
    """Return the loss and the gradients of the residual network."""
    images = pt.tensor("images", shape=(None, 3, 32, 32), dtype="float32")
    labels = pt.lvector("labels")
    logits, weights = _residual(np.random.default_rng(0), images)
    loss = _cross_entropy(logits, labels)
    steps = [w - np.float32(0.1) * g for w, g in zip(weights, pt.grad(loss, weights), strict=True)]
    return _exported([images, labels], [loss, *steps], [*_drawn((8, 3, 32, 32)), np.arange(8)])


@user_model
def residual_network_of_any_size() -> UserModel:
    """Classify images of any size by a residual network of 17 convolutions, with its shortcuts."""
    rng = np.random.default_rng(0)
    images = pt.tensor("images", shape=(None, 3, None, None), dtype="float32")

    def conv(x: Any, channels: int, stride: int = 1) -> Any:
        filters = _weight(rng, channels, x.type.shape[1], 3, 3)
        return nn.conv2d(
            x, filters, (1, 1), (stride, stride), filter_flip=False, bias=_weight(rng, channels)
        )

    x = nn.max_pool(nn.relu(conv(images, 8, 2)), 2)
    for channels, stride in ((8, 1), (8, 1), (16, 2), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        y = conv(nn.relu(conv(x, channels, stride)), channels)
        x = nn.relu(y + (conv(x, channels, stride) if stride > 1 else x))
    logits = x.mean(axis=(2, 3)) @ _weight(rng, 64, 10)
    return _exported([images], logits, _drawn((2, 3, 64, 64)))


@user_model
def training_step_of_mobile_network() -> UserModel:
    """Return a step of Adam for a classifier of five separable convolutions."""
    rng = np.random.default_rng(0)
    x = images = pt.tensor("images", shape=(None, 3, 32, 32), dtype="float32")
    labels, weights = pt.lvector("labels"), []
    for channels, stride in ((16, 1), (32, 2), (64, 1), (128, 2), (256, 1)):
        own = x.type.shape[1]
        depthwise, mixing = _weight(rng, own, 1, 3, 3), _weight(rng, channels, own, 1, 1)
        bias = _weight(rng, channels)
        weights += [depthwise, mixing, bias]
        x = nn.separable_conv2d(
            x, depthwise, mixing, border_mode="half", subsample=(stride, stride), bias=bias
        )
        x = nn.relu(x)
    weights.append(_weight(rng, 256, 10))
    loss = _cross_entropy(x.mean(axis=(2, 3)) @ weights[-1], labels)
    first, second = ([w.type(f"{w.name}") for w in weights] for _ in range(2))
    steps: list[Any] = []
    for w, m, v, g in zip(weights, first, second, pt.grad(loss, weights), strict=True):
        mean = np.float32(0.9) * m + np.float32(0.1) * g
        square = np.float32(0.999) * v + np.float32(0.001) * pt.sqr(g)
        steps += [w - np.float32(1e-3) * mean / (pt.sqrt(square) + np.float32(1e-8)), mean, square]
    moments = [np.full(w.type.shape, 0.01, "float32") for w in weights]
    return _exported(
        [images, labels, *first, *second],
        [loss, *steps],
        [*_drawn((8, 3, 32, 32)), np.arange(8), *moments, *moments],
    )


def digits_classifier() -> tuple[Any, Any]:
    """Return the input and the pytensor-ml model of a convolutional classifier of digits."""
    from pytensor_ml.activations import ReLU
    from pytensor_ml.layers import Conv2D, Input, Linear, MaxPool2D, Sequential
    from pytensor_ml.model import Model

    pixels = Input("pixels", shape=(None, 8, 8, 1))
    features = Sequential(
        Conv2D("conv1", in_channels=1, out_channels=16, kernel_size=3, padding="same"),
        ReLU(),
        MaxPool2D(kernel_size=2),
        Conv2D("conv2", in_channels=16, out_channels=32, kernel_size=3, padding="same"),
        ReLU(),
        MaxPool2D(kernel_size=2),
    )(pixels)
    model = Model(Linear("logits", n_in=128, n_out=10)(features.reshape((-1, 128))))
    model.initialize(seed=0)
    return pixels, model


@user_model
def digits_of_pytensor_ml() -> UserModel:
    """Classify digits by layers of pytensor-ml."""
    with pytensor.config.change_flags(floatX="float32"):
        pixels, model = digits_classifier()
    return _exported([pixels], model.y, _drawn((16, 8, 8, 1)))


@user_model
def training_step_of_digits() -> UserModel:
    """Return the loss and the gradients of the classifier of digits."""
    from pytensor_ml.loss import CrossEntropy, supervised_loss

    with pytensor.config.change_flags(floatX="float32"):
        pixels, model = digits_classifier()
        kind = CrossEntropy(expect_onehot_labels=False, expect_logits=True)
        loss, target = supervised_loss(model.y, kind)
        gradients = pt.grad(loss, list(model.weights))
    labels = np.arange(16) % 10
    return _exported(
        [pixels, target],
        [loss, *gradients],
        [*_drawn((16, 8, 8, 1)), labels.astype(target.type.dtype)],
    )


def _block(rng: np.random.Generator, x: Any, width: int = 64, heads: int = 4) -> Any:
    def layer(x: Any, n_in: int, n_out: int) -> Any:
        return x @ _weight(rng, n_in, n_out) + _weight(rng, n_out)

    def norm(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = pt.sqr(x - mean).mean(-1, keepdims=True)
        scaled = (x - mean) / pt.sqrt(variance + np.float32(1e-5))
        return scaled * _weight(rng, width) + _weight(rng, width)

    y = norm(x)
    batch, length = x.shape[0], x.shape[1]
    queries, keys, values = (
        layer(y, width, width).reshape((batch, length, heads, width // heads)).transpose(0, 2, 1, 3)
        for _ in range(3)
    )
    scores = queries @ keys.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // heads))
    allowed = pt.tril(pt.ones((length, length), dtype="bool"))
    weights = softmax(pt.where(allowed, scores, np.float32(-1e9)), axis=-1)
    mixed = (weights @ values).transpose(0, 2, 1, 3).reshape((batch, length, width))
    x = x + layer(mixed, width, width)
    return x + layer(nn.gelu(layer(norm(x), width, 4 * width)), 4 * width, width)


@user_model
def transformer_of_pytensor_ml() -> UserModel:
    """Classify texts by a block of pytensor-ml."""
    from pytensor_ml.layers import Embedding, LayerNorm, Linear, Sequential, TransformerBlock
    from pytensor_ml.model import Model

    with pytensor.config.change_flags(floatX="float32"):
        words = pt.lmatrix("words")
        layers = (
            Embedding("embedding", n_embeddings=50, n_features=32),
            TransformerBlock("block", d_model=32, n_head=4),
            LayerNorm("norm", n_in=32),
            Linear("y", n_in=32, n_out=2),
        )
        model = Model(Sequential(*layers)(words).mean(axis=1))
        model.initialize(seed=0)
    return UserModel(lambda: export_onnx(model, verify=False), [np.arange(32).reshape(2, 16)])


@user_model
def recurrent_network_of_pytensor_ml() -> UserModel:
    """Classify sequences by an LSTM of pytensor-ml."""
    from pytensor_ml.layers import LSTM, Linear, Sequential
    from pytensor_ml.model import Model

    with pytensor.config.change_flags(floatX="float32"):
        x = pt.tensor("x", shape=(None, None, 8), dtype="float32")
        model = Model(
            Sequential(LSTM("lstm", n_in=8, n_hidden=32), Linear("y", n_in=32, n_out=2))(x)
        )
        model.initialize(seed=0)
    return UserModel(lambda: export_onnx(model, verify=False), _drawn((4, 20, 8)))


@user_model
def segmentation_of_pytensor_ml() -> UserModel:
    """Mark pixels by convolutions and upsampling of pytensor-ml."""
    from pytensor_ml.activations import Swish
    from pytensor_ml.layers import Conv2D, Input, MaxPool2D, Sequential, Upsample2D
    from pytensor_ml.model import Model

    with pytensor.config.change_flags(floatX="float32"):
        pixels = Input("pixels", shape=(None, 16, 16, 3))
        options = {"kernel_size": 3, "padding": "same"}
        layers = (
            Conv2D("c1", in_channels=3, out_channels=16, **options),
            *(Swish(), MaxPool2D(kernel_size=2)),
            *(Conv2D("c2", in_channels=16, out_channels=16, **options), Swish()),
            *(Upsample2D(scale_factor=2), Conv2D("c3", in_channels=16, out_channels=1, **options)),
        )
        model = Model(Sequential(*layers)(pixels))
        model.initialize(seed=0)
    return UserModel(lambda: export_onnx(model, verify=False), _drawn((2, 16, 16, 3)))


@user_model
def transformer_block() -> UserModel:
    """Apply a block of GPT-2, written out."""
    x = pt.tensor("x", shape=(None, None, 64), dtype="float32")
    return _exported([x], _block(np.random.default_rng(0), x), _drawn((2, 16, 64)))


@user_model
def training_step_of_transformer() -> UserModel:
    """Return the loss of a block of GPT-2, written out, and the gradients of its weights."""
    rng = np.random.default_rng(0)
    x, labels = pt.tensor("x", shape=(None, None, 64), dtype="float32"), pt.lmatrix("labels")
    out = _weight(rng, 64, 100)
    y = _block(rng, x)
    scores = log_softmax(y @ out, axis=-1)
    loss = -pt.take_along_axis(scores, labels[:, :, None], axis=2).mean()
    shared = [v for v in graph_inputs([y]) if hasattr(v, "get_value")]
    gradients = pt.grad(loss, [*shared, out])
    return _exported([x, labels], [loss, *gradients], [*_drawn((2, 16, 64)), np.ones((2, 16), int)])


@user_model
def efficient_network() -> UserModel:
    """Classify images by convolutions with batch normalisation and SiLU, written out."""
    rng = np.random.default_rng(0)
    x = images = pt.tensor("images", shape=(None, 3, 32, 32), dtype="float32")
    for channels in (16, 32):
        filters = _weight(rng, channels, x.type.shape[1], 3, 3)
        x = nn.conv2d(x, filters, (1, 1), (2, 2), filter_flip=False)
        mean, scale, shift = (_weight(rng, channels)[:, None, None] for _ in range(3))
        x = (x - mean) / pt.sqrt(scale**2 + np.float32(1e-5)) * scale + shift
        x = x * pt.sigmoid(x)
    return _exported([images], x.mean(axis=(2, 3)) @ _weight(rng, 32, 10), _drawn((8, 3, 32, 32)))


@user_model
def perceptron_in_float64() -> UserModel:
    """Return a training step of a perceptron with two hidden layers, in float64."""
    rng = np.random.default_rng(0)
    x, y = pt.dmatrix("x"), pt.dvector("y")
    sizes = [(8, 32), (32,), (32, 32), (32,), (32, 1), (1,)]
    weights = [pytensor.shared(rng.normal(0, 0.3, s), shape=s) for s in sizes]
    a, b, c, d, e, f = weights
    result = pt.tanh(pt.tanh(x @ a + b) @ c + d) @ e + f
    loss = pt.mean((result[:, 0] - y) ** 2)
    steps = [w - 0.1 * g for w, g in zip(weights, pt.grad(loss, weights), strict=True)]
    return _exported([x, y], [loss, *steps], _drawn((64, 8), (64,), dtype="float64"))


def _of_loop(build: Callable[[], loops.Case]) -> Callable[[], UserModel]:
    def built() -> UserModel:
        case = build()
        return _exported(case.inputs, case.output, case.values)

    return built


MODELS |= {
    "lstm_layer": _of_loop(loops.lstm_layer),
    "lstm_by_scan": _of_loop(lambda: loops.lstm("float32")),
    "gru_by_scan": _of_loop(loops.gru),
    "autoregression": _of_loop(loops.autoregression),
    "newton_iteration": _of_loop(loops.newton),
    "recurrence_along_rows": _of_loop(loops.rows),
    "kalman_filter": _of_loop(loops.kalman),
    "differential_equation": _of_loop(loops.runge_kutta),
}


@user_model
def training_step_of_lstm_by_scan() -> UserModel:
    """Return the gradients of the weights of a long short-term memory written as a loop."""
    case = loops.lstm("float32")
    loss = pt.sqr(case.output[-1]).mean()
    return _exported(case.inputs, [loss, *pt.grad(loss, case.inputs[3:])], case.values)


@user_model
def forward_simulation() -> UserModel:
    """Draw the steps of a process with feedback."""
    generator, x0 = pt.random.rng("generator"), pt.dvector("x0")

    def step(x: Any, rng: Any) -> tuple[Any, Any]:
        rng, noise = rng.normal(0, 0.1, size=3)
        return 0.9 * pt.tanh(x) + noise, rng

    path, _ = pytensor.scan(step, outputs_info=[x0, generator], n_steps=200, return_updates=False)
    return _exported([generator, x0], path, [np.random.default_rng(1), np.zeros(3)])


@user_model
def cumulative_scan() -> UserModel:
    """Return the last of running sums and a map over rows, by loops, and their gradient."""
    x = pt.dmatrix("x")
    sums = pytensor.scan(lambda row, s: s + row**2, [x], [pt.zeros(5)], return_updates=False)
    mapped = pytensor.scan(lambda row: pt.tanh(row).sum(), [x], return_updates=False)
    loss = sums[-1].sum() + mapped.sum()
    return _exported([x], [loss, pt.grad(loss, x)], _drawn((20, 5), dtype="float64"))


@user_model
def sparse_regression() -> UserModel:
    """Return the loss and the gradient of a regression on a sparse matrix."""
    x, y, w = sparse.csr_matrix("x", dtype="float64"), pt.dvector("y"), pt.dvector("w")
    loss = pt.sum((sparse.structured_dot(x, w[:, None])[:, 0] - y) ** 2)
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(100, 20, 0.1, format="csr", random_state=rng)
    return _exported(
        [x, y, w], [loss, pt.grad(loss, w)], [matrix, *_drawn((100,), (20,), dtype="float64")]
    )


@user_model
def spectral_filter() -> UserModel:
    """Filter signals by their Fourier transforms."""
    from pytensor.tensor.fft import irfft, rfft

    x, gain = pt.dmatrix("x"), pt.dvector("gain")
    filtered = irfft(rfft(x) * gain[None, :, None])
    return _exported([x, gain], filtered, _drawn((4, 64), (33,), dtype="float64"))


@user_model
def random_walk_draws() -> UserModel:
    """Draw a random walk with a drawn scale."""
    generator = pt.random.rng("generator")
    following, scale = generator.gamma(2.0, 1.0)
    _, steps = following.normal(0, scale, size=50)
    return _exported([generator], pt.cumsum(steps), [np.random.default_rng(1)])


def _density(define: Define) -> Define:
    """Register the log density of a PyMC model with its gradient."""

    def built() -> UserModel:
        from pytensor_onnx.pymc import export_logp

        model = _built(define)
        size = sum(value.size for value in model.initial_point().values())
        point = np.random.default_rng(1).normal(0, 0.1, size)
        return UserModel(lambda: export_logp(model, verify=False), [point])

    MODELS[define.__name__] = built
    return define


def _built(define: Define) -> Any:
    import pymc as pm

    with pm.Model() as model:
        define(np.random.default_rng(7))
    return model


@_density
def eight_schools(rng: np.random.Generator) -> None:
    """Define effects of schools around a common mean."""
    import pymc as pm

    mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
    theta = mu + tau * pm.Normal("z", shape=8)
    pm.Normal("effect", theta, rng.uniform(9, 18, 8), observed=rng.normal(8, 9, 8))


@_density
def radon(rng: np.random.Generator) -> None:
    """Define intercepts and slopes that vary by county."""
    import pymc as pm

    county, floor = rng.integers(0, 9, 60), rng.integers(0, 2, 60)
    a = pm.Normal("a", pm.Normal("mu_a"), pm.HalfNormal("sigma_a"), shape=9)
    b = pm.Normal("b", pm.Normal("mu_b"), pm.HalfNormal("sigma_b"), shape=9)
    pm.Normal("y", a[county] + b[county] * floor, pm.HalfNormal("s"), observed=rng.normal(size=60))


@_density
def gaussian_process(rng: np.random.Generator) -> None:
    """Define a latent function of one variable."""
    import pymc as pm

    x = np.linspace(0, 1, 20)[:, None]
    covariance = pm.HalfNormal("eta") ** 2 * pm.gp.cov.ExpQuad(1, pm.Gamma("scale", 2, 4))
    process = pm.gp.Marginal(cov_func=covariance)
    process.marginal_likelihood("y", x, np.sin(6 * x[:, 0]), sigma=pm.HalfNormal("sigma"))


@_density
def stochastic_volatility(rng: np.random.Generator) -> None:
    """Define a random walk of the logarithm of a scale."""
    import pymc as pm

    steps = pm.Normal("steps", 0, pm.Exponential("size", 10), shape=50)
    scale = pt.exp(pt.cumsum(steps))
    nu = pm.Exponential("nu", 0.1) + 2
    pm.StudentT("y", nu=nu, mu=0, sigma=scale, observed=rng.normal(size=50))


@_density
def mixture(rng: np.random.Generator) -> None:
    """Define two normal components of unknown weights."""
    import pymc as pm

    weights, means = pm.Dirichlet("w", np.ones(2)), pm.Normal("m", [-1, 1], 1, shape=2)
    pm.NormalMixture("y", weights, means, pm.HalfNormal("s", shape=2), observed=rng.normal(size=40))


@_density
def logistic_regression(rng: np.random.Generator) -> None:
    """Define probabilities by a linear predictor."""
    import pymc as pm

    x = rng.normal(size=(40, 3))
    logits = x @ pm.Normal("slopes", 0, 2, shape=3) + pm.Normal("intercept")
    pm.Bernoulli("y", logit_p=logits, observed=(x[:, 0] > 0).astype(int))


@_density
def scalars(rng: np.random.Generator) -> None:
    """Define 25 numbers with priors of their own."""
    import pymc as pm

    kinds = (pm.Normal, pm.HalfNormal, pm.Exponential)
    numbers = [kinds[i % 3](f"x{i}", **({"lam": 1} if i % 3 == 2 else {})) for i in range(25)]
    pm.Normal("y", sum(numbers), 1, observed=rng.normal(size=10))


@_density
def correlated_effects(rng: np.random.Generator) -> None:
    """Define effects with an LKJ prior of their covariance."""
    import pymc as pm

    factor, *_ = pm.LKJCholeskyCov("c", 2, 2, sd_dist=pm.Exponential.dist(1, shape=2))
    pm.MvNormal("y", pm.Normal("mu", shape=2), chol=factor, observed=rng.normal(size=(20, 2)))


@_density
def precision_of_two(rng: np.random.Generator) -> None:
    """Define pairs of observations with an unknown precision matrix."""
    import pymc as pm

    a, b = pm.HalfNormal("a", 1), pm.Normal("b", 0, 0.1)
    tau = pt.stack([pt.stack([1 + a, b]), pt.stack([b, 1 + a])])
    pm.MvNormal("y", np.zeros(2), tau=tau, observed=rng.normal(size=(20, 2)))


@user_model
def radon_at_many_points() -> UserModel:
    """Return the log densities of the radon model at many points."""
    from pytensor_onnx.pymc import export_logp

    def export() -> ONNXProgram:
        return export_logp(
            model, outputs=["logp", "dlogp"], batch=True, data="stored", verify=False
        )

    model = _built(radon)
    size = sum(value.size for value in model.initial_point().values())
    return UserModel(export, _drawn((8, size), dtype="float64"))


@user_model
def sampler_of_eight_schools() -> UserModel:
    """Sample the posterior of the schools."""
    from pytensor_onnx.pymc import export_sampler

    model = _built(_schools)
    values = [np.arange(2), np.array(50), np.array(50)]
    return UserModel(lambda: export_sampler(model, verify=False), values)


def _schools(rng: np.random.Generator) -> None:
    import pymc as pm

    mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
    theta = pm.Normal("theta", mu, tau, shape=8)
    pm.Normal("effect", theta, rng.uniform(9, 18, 8), observed=rng.normal(8, 9, 8))
