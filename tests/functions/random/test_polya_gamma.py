"""Pólya-Gamma numbers of any shape have their distribution."""

import os
import shutil
from types import SimpleNamespace

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.functions.random.polya_gamma import _is_kept, concentration_of, propose
from pytensor_onnx.random import state_of
from scripts.web_runtime import run_in_web
from tests.functions.random.goodness import pvalue

pm = pytest.importorskip("pymc")

NODE_MODULES = os.environ.get("ONNXRUNTIME_WEB_NODE_MODULES")
SHAPES = (0.01, 0.3, 0.9, 1, 1.5, 2.7, 13.2, 170.5, 1e4, 1e9)
TILTS = (0, 0.1, 2, -5, 40)
H, Z = np.array([(h, z) for h in SHAPES for z in TILTS], dtype="float64").T


def log_transform(s: np.ndarray, h: float, z: float) -> np.ndarray:
    """Return log E[exp(-s x)]: Polson, Scott and Windle (2013), equation 3."""
    # Logarithms of hyperbolic cosines, which overflow.
    logs = [y + np.log1p(np.exp(-2 * y)) for y in (np.abs(z) / 2, np.sqrt(z * z / 4 + s / 2))]
    return h * (logs[0] - logs[1])


def moments(h: float, z: float) -> tuple[float, float]:
    """Return mean and standard deviation."""
    z = abs(z)
    if z == 0:
        return h / 4, np.sqrt(h / 24)
    t = np.tanh(z / 2)
    return h * t / (2 * z), np.sqrt(h / (4 * z**3) * (2 * t - z * (1 - t * t)))


def cdf_of_small_shape(x: np.ndarray, h: float, z: float) -> np.ndarray:
    """Return the distribution function by an integral of its transform along a parabola.

    On it, ``z**2 / 4 + s / 2`` is the square of a complex number with the same real part, and
    ``exp(s x)`` decreases as a normal density.
    """
    x = x[:, None]
    real = np.sqrt(z * z / 4 + 1.5 / x)
    v = 6 / np.sqrt(2 * x) * np.linspace(-1, 1, 1_201)
    s = 2 * ((real + 1j * v) ** 2 - z * z / 4)
    values = np.exp(s * x + log_transform(s, h, z)) * 4 * (real + 1j * v) / s
    return values.real.sum(axis=1) * (v[:, 1] - v[:, 0]) / (2 * np.pi)


def cdf_of_large_shape(x: np.ndarray, h: float, z: float) -> np.ndarray:
    """Return the distribution function by the inversion of J. Gil-Pelaez (1951)."""
    mean, sd = moments(h, z)
    # Of standardised numbers, with frequencies close together near zero.
    w = max(40.0, (80 / h) ** 2 * 2 * sd) * np.linspace(1e-4, 1, 6_001) ** 2
    phi = np.exp(-1j * w * mean / sd + log_transform(-1j * w / sd, h, z))
    values = [np.trapezoid((np.exp(-1j * w * y) * phi).imag / w, w) for y in (x - mean) / sd]
    return 0.5 - np.array(values) / np.pi


def distribution(h: float, z: float) -> SimpleNamespace:
    """Return the distribution function, interpolated between 600 points."""
    invert = cdf_of_small_shape if h < 5 else cdf_of_large_shape

    def cdf(x: np.ndarray) -> np.ndarray:
        at = np.quantile(x, np.linspace(0, 1, 600))
        return np.interp(x, at, invert(at, h, z))

    return SimpleNamespace(cdf=cdf)


@pytest.fixture(scope="module")
def program():
    rng, h, z = pt.random.rng("rng"), pt.vector("h"), pt.vector("z")
    size = pt.lscalar("size")
    op = pm.PolyaGamma.rv_op
    _, x = op.make_node(rng, (size, h.shape[0]), h, z).outputs
    return export_onnx([rng, size, h, z], x, verify=False)


def test_the_references_agree():
    mean, sd = moments(4.0, 2.0)
    x = mean + sd * np.linspace(-1.5, 4, 12)
    expected = cdf_of_large_shape(x, 4.0, 2.0)
    np.testing.assert_allclose(cdf_of_small_shape(x, 4.0, 2.0), expected, rtol=0, atol=1e-6)
    x = np.array([0.05, 0.2, 0.6])

    def transform(s):
        root = mpmath.sqrt(s / 2)
        return mpmath.exp(-0.3 * (root + mpmath.log1p(mpmath.exp(-2 * root)) - mpmath.log(2))) / s

    expected = [float(mpmath.invertlaplace(transform, t, method="talbot")) for t in x]
    np.testing.assert_allclose(cdf_of_small_shape(x, 0.3, 0.0), expected, rtol=1e-9)


def test_moments_are_those_of_the_distribution(program):
    n = 2000
    drawn = program(state_of(1), n, H, Z)
    for column, h, z in zip(drawn.T, H, Z, strict=True):
        mean, sd = moments(h, z)
        # The transform, at which small numbers have much weight.
        for s in (0.2 / sd, min(4 / mean, 1 / sd)):
            weights = np.exp(-s * (column - mean))
            expected = np.exp(log_transform(s, h, z) + s * mean)
            assert abs(weights.mean() - expected) < 4 * weights.std() / np.sqrt(n), (h, z, s)


@pytest.mark.slow
def test_small_samples_have_the_distribution(program):
    h, z = np.array([[0.01, 2], [0.3, 0], [0.9, -5], [1.5, 0.1], [13.2, 2]]).T
    drawn = program(state_of(2), 4_000, h, z)
    for column, *parameters in zip(drawn.T, h, z, strict=True):
        assert pvalue(column, distribution(*parameters)) > 1e-3, parameters


@pytest.mark.slow
def test_draws_have_the_distribution(program):
    for h in SHAPES:
        drawn = program(state_of(3), 100_000, np.full(len(TILTS), h), np.array(TILTS, "float64"))
        for column, z in zip(drawn.T, TILTS, strict=True):
            assert pvalue(column, distribution(h, z)) > 1e-3, (h, z)


def ratio(x: float, h: float) -> float:
    """Return the ratio of the densities of a Jacobi number and a hitting time."""
    with mpmath.workdps(40):
        x, h = mpmath.mpf(x), mpmath.mpf(h)
        terms = [
            (-1) ** n * mpmath.rf(h + 1, n - 1) / mpmath.factorial(n) * (2 * n + h)
            * mpmath.exp(-2 * n * (n + h) / x)
            for n in range(1, 60)
        ]  # fmt: skip
        return float(1 + mpmath.fsum(terms))


def test_numbers_are_accepted_by_the_ratio_of_densities():
    x, h, v = (pt.vector(name) for name in "xhv")
    is_kept = pytensor.function([x, h, v], _is_kept(x, h, v), mode="ONNX")
    grid = np.array([(a, b) for a in np.geomspace(0.1, 31, 20) for b in (1e-9, 0.3, 1, 1.4)]).T
    expected = np.array([ratio(*pair) for pair in grid.T])
    assert ((expected > 0) & (expected <= 1)).all()
    assert is_kept(*grid, expected - 4e-15).all()
    assert not is_kept(*grid, expected + 4e-15).any()


def density(x: float, h: float, c: float) -> mpmath.mpf:
    """Return the density of four times a number of shape h and tilt 2 c, by its transform."""

    def log_cosh(root):
        return root + mpmath.log1p(mpmath.exp(-2 * root)) - mpmath.log(2)

    def mean_of(q):
        return h * (mpmath.tanh(mpmath.sqrt(q)) / mpmath.sqrt(q)).real

    with mpmath.workdps(30):
        h, c = mpmath.mpf(h), mpmath.mpf(c)
        q = mpmath.findroot(lambda q: mean_of(q) - x, (-2.4, 4 * c * c + 60), solver="anderson")
        step = 0.3 / mpmath.sqrt(-2 * mpmath.diff(mean_of, q))
        points = (mpmath.mpc(q, 2 * step * i) for i in range(-45, 46))
        terms = [
            mpmath.exp((p - c * c) * x / 2 - h * (log_cosh(mpmath.sqrt(p)) - log_cosh(c))).real
            for p in points
        ]
        return step * mpmath.fsum(terms) / (2 * mpmath.pi)


@pytest.fixture(scope="module")
def proposals():
    inputs = [pt.vector(name) for name in ("normal", "h", "c")]
    return pytensor.function(inputs, propose(*inputs, concentration_of(inputs[2])), mode="ONNX")


@pytest.mark.slow
@pytest.mark.parametrize(("h", "c"), [(64.3, 0.0), (100.0, 0.3), (500.0, 1.0), (1e4, 0.05)])
def test_large_numbers_are_accepted_by_their_density(proposals, h, c):
    """The density is the product of the density of accepted proposals and their derivative."""
    normal = np.linspace(-6.1, 6.1, 10)  # without 0, where the third derivative jumps
    step = 1e-2
    at = [normal + i * step for i in range(-3, 4)]
    given = np.concatenate(at)
    x, ratio = (y.reshape(7, -1) for y in proposals(given, np.full(70, h), np.full(70, c)))
    slope = np.array([-1, 9, -45, 0, 45, -9, 1]) @ x / (60 * step)
    accepted = ratio[3] * np.exp(-normal * normal / 2) / np.abs(slope)
    constant = accepted / np.array([float(density(y, h, c)) for y in x[3]])
    np.testing.assert_allclose(constant, constant[0], rtol=1e-11)


def test_the_density_of_large_numbers_is_below_the_bound(proposals):
    normal = np.linspace(-8.6, 8.6, 345)
    for c in (0, 0.2, 0.8, 2, 4, 9):
        for scale in (1, 1.5, 10, 1e4):
            h = scale * 64 / np.log2(1 + np.exp(-2 * c))
            _, ratio = proposals(normal, np.full(345, h), np.full(345, c))
            assert (ratio <= 1).all()
            weights = np.exp(-normal * normal / 2)
            assert ratio @ weights / weights.sum() > 0.86


def test_shapes_beyond_rounding_are_drawn(program):
    h = np.array([1e16, 1e20, 1e25, 1e300])
    drawn = program(state_of(1), 1_000, h, np.full(4, 2.0))
    for column, shape in zip(drawn.T, h, strict=True):
        mean, sd = moments(shape, 2.0)
        rounding = np.spacing(mean)
        assert np.abs(column - mean).max() < 6 * sd + 4 * rounding
        assert np.abs(column.mean() - mean) < sd / 8 + 4 * rounding


@pytest.mark.skipif(not NODE_MODULES, reason="ONNXRUNTIME_WEB_NODE_MODULES names no directory")
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_draws_in_webassembly_are_equal_in_every_bit(program):
    inputs = {"rng": state_of(1), "size": np.array(5), "h": H, "z": Z}
    _, [outputs] = run_in_web(str(NODE_MODULES), [(program.proto.SerializeToString(), inputs)])
    (drawn,) = outputs.values()
    np.testing.assert_array_equal(drawn, program(*inputs.values()))


def test_tilts_that_are_not_finite_end(program):
    drawn = program(state_of(1), 2, np.full(3, 0.7), np.array([np.nan, np.inf, 1e308]))
    assert np.isnan(drawn[:, 0]).all()
    assert (drawn[:, 1] == 0).all()
    assert ((drawn[:, 2] >= 0) & (drawn[:, 2] < 1e-300)).all()
    assert program(state_of(1), 0, np.ones(3), np.zeros(3)).shape == (0, 3)


def test_tiny_shapes_are_drawn(program):
    drawn = program(state_of(1), 50, np.array([1e-300, 1e-12]), np.array([0.0, 3.0]))
    assert np.isfinite(drawn).all()
    assert (drawn >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.0, -1.0, np.nan])
def test_shapes_that_are_not_positive_are_refused(h):
    rng, shape = pt.random.rng("rng"), pt.scalar("h")
    x = pm.PolyaGamma.rv_op.make_node(rng, (2,), shape, 0.0).outputs[1]
    draw = pytensor.function([rng, shape], x, mode="ONNX")
    with pytest.raises(ValueError, match="h <= 0"):
        draw(np.random.default_rng(1), h)
