"""Draws by inversion in loops and by rejection have the distribution, at extremes too."""

from functools import cache

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from tests import coverage_recorder
from tests.conftest import PY, sweep_rest
from tests.functions.random.goodness import pvalue

# One of 40 cases fails at this level for one seed in 250, and these passed.
LEVEL = 1e-4
GRIDS = {
    "gamma": (
        lambda shape, scale: stats.gamma(shape, scale=scale),
        [(1e-3, 2.0), (0.3, 0.5), (1.0, 1.0), (2.5, 3.0), (1e6, 1.0)],
    ),
    "invgamma": (
        lambda shape, scale: stats.invgamma(shape, scale=scale),
        [(0.5, 2.0), (3.0, 0.1), (1e6, 1.0)],
    ),
    "gengamma": (
        lambda alpha, p, scale: stats.gengamma(alpha / p, p, scale=scale),
        [(2.0, 3.0, 1.5), (0.1, 0.5, 1.0), (30.0, 2.0, 0.1)],
    ),
    "beta": (
        stats.beta,
        [(1e-3, 1e-3), (0.1, 3.0), (1.0, 1.0), (2.0, 3.0), (1e6, 2e6)],
    ),
    "t": (stats.t, [(0.1, 1.0, 2.0), (1.0, 0.0, 1.0), (3.0, -1.0, 0.5), (1e6, 0.0, 1.0)]),
    "poisson": (
        stats.poisson,
        [(1e-3,), (0.5,), (9.99,), (10.0,), (30.0,), (1e3,), (1e6,), (1e9,)],
    ),
    "binomial": (
        stats.binom,
        [
            *((0, 0.5), (1, 0.3), (20, 0.5), (25, 0.4), (40, 0.9), (1000, 0.5), (1000, 1.0)),
            *((10**6, 1e-6), (10**9, 1e-9), (10**9, 0.3), (10**9, 1 - 1e-8), (10**9, 1e-7)),
        ],
    ),
    "negative_binomial": (stats.nbinom, [(0.1, 0.5), (3.0, 0.2), (1e3, 0.01), (5.0, 1.0)]),
    "betabinom": (stats.betabinom, [(10, 0.5, 0.5), (1000, 2.0, 3.0), (5, 1e-2, 0.1)]),
    "hypergeometric": (
        lambda good, bad, sample: stats.hypergeom(good + bad, good, sample),
        [
            *((10, 20, 5), (10, 20, 25), (20, 10, 15), (15, 7, 22), (3, 0, 2)),
            *((1000, 500, 300), (10**9, 10**6, 10**5), (10**9, 10**9, 10**6)),
        ],
    ),
    "vonmises": (
        lambda mu, kappa: stats.vonmises(kappa, mu) if kappa else stats.uniform(-np.pi, 2 * np.pi),
        [(0.0, 0.0), (0.0, 0.5), (0.0, 4.0), (0.1, 1e3), (0.5, 1e6), (0.5, 1e12)],
    ),
}
GRID_VALUES = {
    name: [np.asarray(column) for column in zip(*cases, strict=True)]
    for name, (_, cases) in GRIDS.items()
}
REAL = {"gamma", "invgamma", "gengamma", "beta", "t", "vonmises"}
KEYWORDS = {"gamma": ("shape", "scale")}
"""The second parameter of `gamma` is a rate if it has no name."""


@cache
def drawing(mode, dtype="float64"):
    """Return a function that draws from all distributions, whose size and parameters are inputs."""
    generator, count = pt.random.shared_rng(seed=1), pt.lscalar("count")
    rng, inputs, draws = generator, [], []
    for name, values in GRID_VALUES.items():
        symbols = [pt.vector(dtype=x.dtype if x.dtype.kind == "i" else dtype) for x in values]
        named = dict(zip(KEYWORDS.get(name, ()), symbols, strict=False))
        kwargs = {"dtype": dtype} if name in REAL else {}
        size = (count, symbols[0].shape[0])
        rng, x = getattr(rng, name)(*(() if named else symbols), **named, size=size, **kwargs)
        draws.append(x)
        inputs += symbols
    coverage_recorder.record_rewritten(draws)
    updates = {generator: rng}
    return pytensor.function([count, *inputs], draws, updates=updates, mode=mode)


def values_of_all(dtype="float64", **changed):
    columns = [x for name, grid in GRID_VALUES.items() for x in changed.get(name, grid)]
    return [x.astype(dtype) if x.dtype.kind == "f" else x for x in columns]


def draw_grids(dtype, count):
    """Return the draws of all distributions, a column for each case."""
    drawn = drawing("ONNX", dtype)(count, *values_of_all(dtype))
    return dict(zip(GRIDS, drawn, strict=True))


def assert_all_fit(draws, dtype):
    for name, (distribution, cases) in GRIDS.items():
        for x, case in zip(draws[name].T, cases, strict=True):
            parameters = [np.dtype(dtype).type(v) if isinstance(v, float) else v for v in case]
            found = pvalue(x, distribution(*map(float, parameters)))
            assert found > LEVEL, (name, case, found)


@pytest.mark.slow
def test_draws_have_the_distribution():
    draws = draw_grids("float64", 4000)
    assert_all_fit(draws, "float64")
    assert draws["binomial"].dtype == draws["poisson"].dtype == "int64"
    assert (draws["binomial"][:, 0] == 0).all()
    assert (draws["negative_binomial"][:, 3] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", sweep_rest(["float64", "float32"], ["float64"]))
def test_many_draws_have_the_distribution(dtype):
    assert_all_fit(draw_grids(dtype, 100_000), dtype)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("gamma", (-1.0, 1.0), "shape < 0"),
        ("gamma", (1.0, -1.0), "scale < 0"),
        ("beta", (0.0, 1.0), "alpha <= 0"),
        ("t", (1.0, 0.0, -1.0), "scale < 0"),
        ("poisson", (-1.0,), "lam < 0"),
        ("poisson", (np.nan,), "lam contains NaNs"),
        ("poisson", (1e19,), "lam value too large"),
        ("binomial", (-1, 0.5), "n < 0"),
        ("binomial", (1, np.nan), "p contains NaNs"),
        ("negative_binomial", (1.0, 0.0), "p <= 0"),
        ("betabinom", (1, 1.0, 0.0), "beta <= 0"),
        ("hypergeometric", (5, 3, 9), "ngood . nbad < nsample"),
        ("hypergeometric", (5, -3, 1), "nbad < 0"),
        ("vonmises", (0.0, -1.0), "kappa < 0"),
    ],
)
@pytest.mark.few(3)
def test_parameters_out_of_range_are_refused(name, parameters, message):
    values = values_of_all(**{name: [np.array([p]) for p in parameters]})
    with pytest.raises(ValueError, match=r"."):
        drawing(PY)(2, *values)
    with pytest.raises(ValueError, match=message):
        drawing("ONNX")(2, *values)


def test_shapes_are_those_of_sizes_and_parameters():
    shapes = [(3, len(cases)) for _, cases in GRIDS.values()]
    assert [x.shape for x in drawing("ONNX")(3, *values_of_all())] == shapes
    assert all(x.size == 0 for x in drawing("ONNX")(0, *values_of_all()))


@pytest.mark.slow
def test_parameters_broadcast_and_give_the_shape():
    generator, n = pt.random.shared_rng(seed=3), pt.lscalar("n")
    mean, p = pt.dvector("mean"), pt.dscalar("p")
    rng, x = generator.poisson(mean[:, None] + pt.zeros((1, n)))
    rng, y = rng.binomial(n, p)
    f = pytensor.function([n, mean, p], [x, y], updates={generator: rng}, mode="ONNX")
    x, y = f(3, [1e6, 0.0], 1.0)
    assert x.shape == (2, 3)
    assert (np.abs(x - [[1e6], [0.0]]) < 1e4).all()
    assert y.shape == ()
    assert y == 3


def test_checks_of_known_conditions_keep_their_messages():
    rng = pytensor.shared(np.random.default_rng(0), name="rng")
    _, draw = pt.random.normal(0, -1, size=(3,), rng=rng, return_next_rng=True)
    function = pytensor.function([], draw, mode="ONNX")
    with pytest.raises(ValueError, match="scale < 0"):
        function()


def test_hypergeometric_numbers_of_narrow_integers_do_not_overflow():
    rng = pytensor.shared(np.random.default_rng(0), name="rng")
    good, bad, sample = (pt.constant(np.int8(n)) for n in (100, 50, 20))
    _, draw = pt.random.hypergeometric(
        good, bad, sample, size=(1000,), rng=rng, return_next_rng=True
    )
    drawn = pytensor.function([], draw, mode="ONNX")()
    assert abs(drawn.mean() - 20 * 100 / 150) < 0.3
