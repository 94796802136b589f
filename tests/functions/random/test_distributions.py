"""Draws have the requested distribution, compared with SciPy for fixed seeds."""

import itertools
from functools import cache

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.random.basic import ChoiceWithoutReplacement
from scipy import stats

from tests import coverage_recorder
from tests.conftest import PY, sweep_rest
from tests.functions.random.goodness import pvalue

N = 20_000
# A true distribution fails a test at this level for one seed in a thousand, and these passed.
LEVEL = 1e-3

CONTINUOUS = {
    "uniform": ((-2.0, 3.0), stats.uniform(-2, 5)),
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "halfnormal": ((1.0, 2.0), stats.halfnorm(1, 2)),
    "lognormal": ((0.5, 0.4), stats.lognorm(0.4, scale=np.exp(0.5))),
    "exponential": ((2.5,), stats.expon(scale=2.5)),
    "weibull": ((1.7,), stats.weibull_min(1.7)),
    "pareto": ((2.5, 3.0), stats.pareto(2.5, scale=3)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "logistic": ((1.0, 2.0), stats.logistic(1, 2)),
    "laplace": ((1.0, 2.0), stats.laplace(1, 2)),
    "cauchy": ((1.0, 2.0), stats.cauchy(1, 2)),
    "halfcauchy": ((1.0, 2.0), stats.halfcauchy(1, 2)),
    "triangular": ((-1.0, 0.5, 4.0), stats.triang(0.3, -1, 5)),
    "wald": ((1.5, 2.0), stats.invgauss(0.75, scale=2)),
    "truncexpon": ((1.5, 2.0, 3.0), stats.truncexpon(1.5, 2, 3)),
}
DISCRETE = {
    "bernoulli": ((0.3,), stats.bernoulli(0.3)),
    "integers": ((-3, 5), stats.randint(-3, 5)),
    "geometric": ((0.3,), stats.geom(0.3)),
}


def draw_all(cases, dtype, seed):
    """Return the draws of all distributions from one generator, whose parameters are inputs."""
    generator = pt.random.shared_rng(seed=seed)
    rng, inputs, values, draws = generator, [], [], []
    for name, (parameters, _) in cases.items():
        given = "int64" if name == "integers" else dtype
        symbols = [pt.scalar(dtype=given) for _ in parameters]
        kwargs = {} if name in DISCRETE else {"dtype": dtype}
        rng, x = getattr(rng, name)(*symbols, size=N, **kwargs)
        draws.append(x)
        inputs += symbols
        values += [np.asarray(value, given) for value in parameters]
    f = pytensor.function(inputs, draws, updates={generator: rng}, mode="ONNX")
    coverage_recorder.record_rewritten(draws)
    return dict(zip(cases, f(*values), strict=True))


@pytest.fixture(scope="module", params=["float64", "float32"])
def continuous(request):
    return request.param, draw_all(CONTINUOUS, request.param, seed=1)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws_have_the_distribution(continuous, name):
    dtype, draws = continuous
    x, expected = draws[name], CONTINUOUS[name][1]
    assert x.dtype == dtype
    assert stats.kstest(x.astype("float64"), expected.cdf).pvalue > LEVEL
    mean, variance = expected.stats()
    if np.isfinite(variance):
        assert abs(x.mean() - mean) < 4 * np.sqrt(variance / N)


@pytest.fixture(scope="module", params=["float64", "float32"])
def discrete(request):
    return draw_all(DISCRETE, request.param, seed=2)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_draws_have_the_distribution(discrete, name):
    x, expected = discrete[name], DISCRETE[name][1]
    assert x.dtype == "int64"
    assert_frequencies(x, expected.pmf)


def assert_frequencies(x, pmf):
    """Assert that integers come as often as their probabilities say, rare ones taken together."""
    values, counts = np.unique(x, return_counts=True)
    probabilities = pmf(values)
    common = probabilities * len(x) >= 10
    found = np.append(counts[common], counts[~common].sum())
    wanted = np.append(probabilities[common], 1 - probabilities[common].sum()) * len(x)
    kept = wanted > 1e-6
    assert found[~kept].sum() == 0
    assert stats.chisquare(found[kept], wanted[kept]).pvalue > LEVEL


def test_categories_have_their_probabilities():
    generator, p = pt.random.shared_rng(seed=3), pt.matrix("p")
    rng, x = generator.categorical(p, size=(N, 2))
    rng, y = rng.categorical(p[0])
    f = pytensor.function([p], [x, y], updates={generator: rng}, mode="ONNX")
    coverage_recorder.record_rewritten([x, y])
    probabilities = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.5, 0.0]])
    found, single = f(probabilities)
    assert found.shape == (N, 2)
    assert single.shape == ()
    for column, row in zip(found.T, probabilities, strict=True):
        assert_frequencies(column, row.__getitem__)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-(2**63), 2**63 - 1), (7, 7 + 3 * 2**61), (0, 2**32 + 3), (-5, -2)]
)
def test_integers_of_any_range(low, high):
    generator = pt.random.shared_rng(seed=4)
    symbols = pt.lscalars("low", "high")
    rng, x = generator.integers(*symbols, size=N)
    x = pytensor.function(symbols, x, updates={generator: rng}, mode="ONNX")(low, high)
    assert low <= x.min()
    assert x.max() < high
    fractions = (x.astype("float64") - low + 0.5) / (float(high) - low)
    if high - low > N:
        assert stats.kstest(fractions, "uniform").pvalue > LEVEL
    else:
        assert set(x) == set(range(low, high))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bool", "uint64"])
def test_integers_of_any_dtype(dtype):
    generator = pt.random.shared_rng(seed=4)
    rng, x = generator.integers(0, 2, size=50, dtype=dtype)
    x = pytensor.function([], x, updates={generator: rng}, mode="ONNX")()
    assert x.dtype == dtype
    assert set(x) == {0, 1}


def test_permutations_are_as_likely_as_one_another():
    generator, n = pt.random.shared_rng(seed=5), pt.lscalar("n")
    rng, order = generator.permutation(n)
    rng, rows = rng.permutation(pt.arange(6).reshape((3, 2)), size=None)
    f = pytensor.function([n], [order, rows], updates={generator: rng}, mode="ONNX")
    coverage_recorder.record_rewritten([order, rows])
    found = [f(3) for _ in range(600)]
    for x, y in found:
        assert sorted(x) == [0, 1, 2]
        assert sorted(map(tuple, y)) == [(0, 1), (2, 3), (4, 5)]
    keys = [int(order @ [9, 3, 1]) for order, _ in found]
    assert stats.chisquare(np.unique(keys, return_counts=True)[1]).pvalue > LEVEL
    assert len(set(keys)) == 6
    assert f(0)[0].shape == (0,)


def test_parameters_broadcast_and_sizes_are_dynamic():
    generator = pt.random.shared_rng(seed=6)
    loc, n = pt.vector("loc"), pt.lscalar("n")
    scale = pt.constant(np.array([[1e-9], [1e-7]]))
    rng, x = generator.normal(loc, scale)
    rng, y = rng.uniform(loc, loc + 1, size=(n, loc.shape[0]))
    rng, z = rng.exponential(size=())
    rng, v = rng.normal(loc, 1e-9, size=(2, n, 3))
    f = pytensor.function([loc, n], [x, y, z, v], updates={generator: rng}, mode="ONNX")
    x, y, z, v = f([1.0, 2.0, 3.0], 4)
    assert [a.shape for a in (x, y, z, v)] == [(2, 3), (4, 3), (), (2, 4, 3)]
    np.testing.assert_allclose(x, [[1, 2, 3]] * 2, rtol=1e-6)
    np.testing.assert_array_equal(np.floor(y), [[1, 2, 3]] * 4)
    np.testing.assert_allclose(v[1], [[1, 2, 3]] * 4, rtol=1e-6)
    assert [a.shape for a in f([1.0, 2.0, 3.0], 0)] == [(2, 3), (0, 3), (), (2, 0, 3)]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("normal", (0.0, -1.0), "scale < 0"),
        ("exponential", (-1.0,), "scale < 0"),
        ("bernoulli", (1.5,), "p > 1"),
        ("bernoulli", (np.nan,), "p is NaN"),
        ("integers", (3, 3), "low >= high"),
        ("triangular", (0.0, 2.0, 1.0), "mode > right"),
        ("geometric", (0.0,), "p <= 0"),
    ],
)
def test_parameters_out_of_range_are_refused_as_by_numpy(name, parameters, message):
    generator = pt.random.shared_rng(seed=7)
    symbols = [pt.vector(dtype=np.asarray(p).dtype) for p in parameters]
    rng, x = getattr(generator, name)(*symbols)
    values = [[p] for p in parameters]
    with pytest.raises(ValueError, match=r"."):
        pytensor.function(symbols, x, updates={generator: rng}, mode=PY)(*values)
    f = pytensor.function(symbols, x, updates={generator: rng}, mode="ONNX")
    with pytest.raises(ValueError, match=message):
        f(*values)


def test_parameters_that_are_fine_leave_no_check():
    generator = pt.random.shared_rng(seed=8)
    rng, x = generator.normal(0, 2, size=3)
    rng, y = rng.bernoulli(0.5, size=3)
    rng, z = rng.integers(2, 9, size=3)
    f = pytensor.function([], [x, y, z], updates={generator: rng}, mode="ONNX")
    assert "CheckAndRaise" not in str([node.op for node in f.maker.fgraph.toposort()])


def test_half_precision_is_drawn_in_single_precision():
    generator = pt.random.shared_rng(seed=9)
    rng, x = generator.normal(0, 1, size=N, dtype="float16")
    x = pytensor.function([], x, updates={generator: rng}, mode="ONNX")()
    assert x.dtype == "float16"
    assert stats.kstest(x.astype("float64"), "norm").pvalue > LEVEL


# One of 40 cases fails at this level for one seed in 250, and these passed.
LEVEL_COMPOUNDS = 1e-4
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
            assert found > LEVEL_COMPOUNDS, (name, case, found)


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


LEVEL_VECTORS = 1e-4
COV = np.array([[2.0, 0.6, 0.3], [0.6, 1.0, 0.2], [0.3, 0.2, 0.5]])
MEAN = np.array([1.0, -2.0, 30.0])
ALPHAS = np.array([[1e-3, 0.5, 3.0], [2.0, 1e4, 7.0]])
P = np.array([0.1, 0.2, 0.0, 0.45, 0.25])


def function(symbols, generator, rng, draws):
    coverage_recorder.record_rewritten(draws)
    return pytensor.function(symbols, draws, updates={generator: rng}, mode="ONNX")


@pytest.mark.parametrize(
    "method", ["cholesky", *(pytest.param(m, marks=pytest.mark.slow) for m in ("svd", "eigh"))]
)
def test_normal_vectors_have_the_covariance(method):
    generator, mean, cov = pt.random.shared_rng(seed=1), pt.dvector("mean"), pt.dmatrix("cov")
    rng, x = generator.multivariate_normal(mean, cov, size=N, method=method)
    # A batch takes a matrix for each mean.
    rng, y = rng.multivariate_normal(mean * pt.ones((2, 1)), pt.stack([cov, cov]), method=method)
    x, y = function([mean, cov], generator, rng, [x, y])(MEAN, COV)
    assert y.shape == (2, 3)
    white = np.linalg.solve(np.linalg.cholesky(COV), (x - MEAN).T)
    assert all(stats.kstest(row, "norm").pvalue > LEVEL_VECTORS for row in white)
    errors = np.cov(white) - np.eye(3)
    assert np.abs(errors).max() < 5 * np.sqrt(2 / N)


def test_shares_and_counts_have_the_distribution():
    generator, alphas = pt.random.shared_rng(seed=2), pt.dmatrix("alphas")
    n, p = pt.lvector("n"), pt.dvector("p")
    rng, shares = generator.dirichlet(alphas, size=(N, 2))
    rng, counts = rng.multinomial(n, p, size=(N, 3))
    rng, few = rng.multinomial(n[0], p)
    f = function([alphas, n, p], generator, rng, [shares, counts, few])
    trials = np.array([10, 0, 10**9])
    shares, counts, few = f(ALPHAS, trials, P)
    np.testing.assert_allclose(shares.sum(axis=-1), 1, rtol=1e-14)
    for row, column in itertools.product(range(2), range(3)):
        a = ALPHAS[row, column]
        beta = stats.beta(a, ALPHAS[row].sum() - a)
        assert pvalue(shares[:, row, column], beta) > LEVEL_VECTORS, (row, column)
    assert counts.dtype == "int64"
    assert few.sum() == 10
    assert (counts.sum(axis=-1) == trials).all()
    for row, column in itertools.product(range(3), range(5)):
        binomial = stats.binom(trials[row], P[column])
        assert pvalue(counts[:, row, column], binomial) > LEVEL_VECTORS, (row, column)
    expected = -np.sqrt(0.1 * 0.2 / (0.9 * 0.8))
    assert abs(np.corrcoef(counts[:, 0, 0], counts[:, 0, 1])[0, 1] - expected) < 0.03
    with pytest.raises(ValueError, match="alpha < 0"):
        f(-ALPHAS, trials, P)
    with pytest.raises(ValueError, match="n < 0"):
        f(ALPHAS, -trials, P)
    with pytest.raises(ValueError, match=r"pvals\[:-1\]. > 1"):
        f(ALPHAS, trials, np.array([0.5, 0.6, 0.0, 0.0, 0.0]))


def test_batches_of_orders_are_as_likely_as_one_another():
    generator = pt.random.shared_rng(seed=3)
    row, rows = pt.dvector("row"), pt.dmatrix("rows")
    rng, x = generator.permutation(row)
    rng, y = rng.choice(row, size=2, replace=False)
    batch = vectorize_graph([rng, x, y], {row: rows})
    f = function([rows], generator, batch[0], batch[1:])
    orders, pairs = f(np.tile([4.0, 5.0, 6.0], (6000, 1)))
    assert (np.sort(orders, axis=1) == [4, 5, 6]).all()
    for found in (orders @ [100, 10, 1], pairs @ [10, 1]):
        counts = np.unique(found, return_counts=True)[1]
        assert len(counts) == 6
        assert stats.chisquare(counts).pvalue > LEVEL_VECTORS


def test_choices_without_replacement_follow_their_probabilities():
    generator, p = pt.random.shared_rng(seed=4), pt.dvector("p")
    matrix = pt.dmatrix("matrix")
    rng, x = generator.choice(matrix, size=(2, 2), replace=False, p=p)
    rng, y = rng.choice(matrix.shape[0], size=3, replace=False)
    rows = pt.dmatrix("rows")
    op = ChoiceWithoutReplacement(signature="(a),(a),(1)->(s)", dtype="float64")
    rng, pairs = op.make_node(rng, None, rows, rows, np.array([2])).outputs
    f = function([matrix, p, rows], generator, rng, [x, y, pairs])
    values = np.arange(10.0).reshape(5, 2)
    weights = np.array([0.1, 0.2, 0.0, 0.4, 0.3])
    small = np.array([0.2, 0.5, 0.3])
    x, y, pairs = f(values, weights, np.tile(small, (N, 1)))
    assert x.shape == (2, 2, 2)
    assert sorted(x[..., 0].ravel()) == [0, 2, 6, 8]
    assert len(set(y)) == 3
    assert set(y) <= set(range(5))
    for i, j in itertools.permutations(range(3), 2):
        expected = small[i] * small[j] / (1 - small[i])
        share = ((pairs[:, 0] == small[i]) & (pairs[:, 1] == small[j])).mean()
        assert abs(share - expected) < 5 * np.sqrt(expected / N)
    with pytest.raises(ValueError, match="Fewer non-zero entries"):
        f(values, np.array([0.5, 0.5, 0.0, 0.0, 0.0]), np.tile(small, (N, 1)))
    with pytest.raises(ValueError, match="larger sample than population"):
        f(values[:2], np.array([0.5, 0.5]), np.tile(small, (N, 1)))


def test_choices_with_replacement_are_categories():
    generator, a, p = pt.random.shared_rng(seed=5), pt.dvector("a"), pt.dvector("p")
    rng, x = generator.choice(a, size=N, p=p)
    rng, y = rng.choice(a, size=N)
    x, y = function([a, p], generator, rng, [x, y])([3.0, 5.0, 8.0], [0.2, 0.5, 0.3])
    for found, shares in ((x, [0.2, 0.5, 0.3]), (y, [1 / 3] * 3)):
        counts = [(found == value).sum() for value in (3.0, 5.0, 8.0)]
        assert stats.chisquare(counts, np.array(shares) * N).pvalue > LEVEL_VECTORS


def test_errors_are_those_of_pytensor():
    rng, n = pt.random.rng("rng"), pt.lscalar("n")
    x = rng.choice(pt.arange(3), size=(n,), replace=False)[1]
    for mode in (PY, "ONNX"):
        f = pytensor.function([rng, n], x, mode=mode)
        with pytest.raises(ValueError, match="larger sample than population"):
            f(np.random.default_rng(1), 4)
