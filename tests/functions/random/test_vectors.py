"""Vectors, matrices and orders have the distribution, and batches of them."""

import itertools

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.random.basic import ChoiceWithoutReplacement
from scipy import stats

from tests import coverage_recorder
from tests.conftest import PY
from tests.functions.random.goodness import pvalue

N = 20_000
LEVEL = 1e-4
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
    assert all(stats.kstest(row, "norm").pvalue > LEVEL for row in white)
    errors = np.cov(white) - np.eye(3)
    assert np.abs(errors).max() < 5 * np.sqrt(2 / N)


@pytest.mark.slow
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
        assert pvalue(shares[:, row, column], beta) > LEVEL, (row, column)
    assert counts.dtype == "int64"
    assert few.sum() == 10
    assert (counts.sum(axis=-1) == trials).all()
    for row, column in itertools.product(range(3), range(5)):
        binomial = stats.binom(trials[row], P[column])
        assert pvalue(counts[:, row, column], binomial) > LEVEL, (row, column)
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
        assert stats.chisquare(counts).pvalue > LEVEL


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
        assert stats.chisquare(counts, np.array(shares) * N).pvalue > LEVEL


def test_errors_are_those_of_pytensor():
    rng, n = pt.random.rng("rng"), pt.lscalar("n")
    x = rng.choice(pt.arange(3), size=(n,), replace=False)[1]
    for mode in (PY, "ONNX"):
        f = pytensor.function([rng, n], x, mode=mode)
        with pytest.raises(ValueError, match="larger sample than population"):
            f(np.random.default_rng(1), 4)
