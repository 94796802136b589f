"""Pólya-Gamma numbers of whole shapes have their distribution."""

from types import SimpleNamespace

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.random import state_of
from tests.functions.random.goodness import pvalue

pm = pytest.importorskip("pymc")

H = np.array([1.0, 1, 1, 1, 1, 1, 2, 7, 40])
Z = np.array([0.0, -0.7, 3.1, 3.2, 30, 1e4, 0, -4, 1.5])
FREQUENCIES = np.linspace(1e-4, 1, 6_001)


def characteristic(w: np.ndarray, h: float, z: float) -> np.ndarray:
    """Return E[exp(i w x)]: the transform of Polson, Scott and Windle (2013), equation 3."""
    root = np.sqrt(z * z / 4 - 0.5j * w)
    # Logarithms of hyperbolic cosines, which overflow.
    logs = [x + np.log1p(np.exp(-2 * x)) for x in (np.abs(z) / 2, root)]
    return np.exp(h * (logs[0] - logs[1]))


def moments(h: float, z: float) -> tuple[float, float]:
    """Return mean and standard deviation."""
    z = abs(z)
    if z == 0:
        return h / 4, np.sqrt(h / 24)
    t = np.tanh(z / 2)
    return h * t / (2 * z), np.sqrt(h / (4 * z**3) * (2 * t - z * (1 - t * t)))


def distribution(h: float, z: float) -> SimpleNamespace:
    """Return the distribution function, by the inversion of J. Gil-Pelaez (1951)."""
    mean, sd = moments(h, z)
    # Of standardised numbers, with frequencies close together near zero.
    largest = max(40.0, (80 / h) ** 2 * 2 * sd)
    w = largest * FREQUENCIES**2
    phi = np.exp(-1j * w * mean / sd) * characteristic(w / sd, h, z)

    def cdf(x: np.ndarray) -> np.ndarray:
        at = np.linspace((0 - mean) / sd, 12, 1501)
        values = [np.trapezoid((np.exp(-1j * w * y) * phi).imag / w, w) for y in at]
        return np.interp((x - mean) / sd, at, 0.5 - np.array(values) / np.pi)

    return SimpleNamespace(cdf=cdf)


@pytest.fixture(scope="module")
def program():
    rng, h, z = pt.random.rng("rng"), pt.vector("h"), pt.vector("z")
    size = pt.lscalar("size")
    op = pm.PolyaGamma.rv_op
    _, x = op.make_node(rng, (size, h.shape[0]), h, z).outputs
    return export_onnx([rng, size, h, z], x, verify=False)


def test_moments_are_those_of_the_distribution(program):
    n = 4000
    drawn = program(state_of(1), n, H, Z)
    for column, h, z in zip(drawn.T, H, Z, strict=True):
        mean, sd = moments(h, z)
        assert abs(column.mean() - mean) < 4 * sd / np.sqrt(n)
        excess = np.mean((column - mean) ** 4) / sd**4 - 1
        assert abs(column.var() / sd**2 - 1) < 4 * np.sqrt(excess / n)
        # The Laplace transform, at which small numbers have much weight.
        s = 4 / mean
        weights = np.exp(-s * column)
        expected = characteristic(1j * s, h, z).real
        assert abs(weights.mean() - expected) < 4 * weights.std() / np.sqrt(n)


@pytest.mark.slow
def test_draws_have_the_distribution(program):
    drawn = program(state_of(2), 100_000, H, Z)
    for column, h, z in zip(drawn.T, H, Z, strict=True):
        assert pvalue(column, distribution(h, z)) > 1e-3, (h, z)


def test_tilts_that_are_not_finite_end(program):
    drawn = program(state_of(1), 2, np.ones(3), np.array([np.nan, np.inf, 1e308]))
    assert np.isnan(drawn[:, 0]).all()
    assert (drawn[:, 1] == 0).all()
    assert ((drawn[:, 2] >= 0) & (drawn[:, 2] < 1e-300)).all()
    assert program(state_of(1), 0, np.ones(3), np.zeros(3)).shape == (0, 3)


@pytest.mark.parametrize("h", [0.0, -1.0, 1.5, np.nan])
def test_shapes_that_are_not_whole_are_refused(h):
    rng, shape = pt.random.rng("rng"), pt.scalar("h")
    x = pm.PolyaGamma.rv_op.make_node(rng, (2,), shape, 0.0).outputs[1]
    draw = pytensor.function([rng, shape], x, mode="ONNX")
    with pytest.raises(ValueError, match="not a positive integer"):
        draw(np.random.default_rng(1), h)
