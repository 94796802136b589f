"""Error bounds of the catalogue's functions, and the references that they are measured with."""

import mpmath as mp
import numpy as np
import pytest

from pytensor_onnx.catalogue.distribution_table import CONTINUOUS, DISCRETE, Distribution
from pytensor_onnx.catalogue.library import DTYPES, entries
from scripts.exact_distributions import CONTINUOUS as EXACT, DISCRETE as EXACT_OF_INTEGERS
from scripts.measure_catalogue import (
    REASONS,
    WANTED,
    cases,
    errors_of,
    larger_errors,
    read_errors,
    rounded_up,
    settled,
)


def parameters(of: Distribution, i: int) -> list[mp.mpf]:
    """Return a set of parameters of the test vectors."""
    return [mp.mpf(float(np.float32(p.values[i]))) for p in of.parameters]


def test_all_functions_but_draws_have_bounds() -> None:
    for entry in entries():
        if entry.kind == "random" or entry.family == "states":
            continue
        for dtype in DTYPES:
            assert entry.largest_error(dtype), (entry.name, dtype)


def test_larger_errors_have_reasons() -> None:
    assert {entry.subject for entry, _ in larger_errors()} == set(REASONS)
    finite = (np.isfinite(errors.get(d, 0.0)) for errors in read_errors().values() for d in WANTED)
    assert all(finite)


@pytest.mark.few(12)
@pytest.mark.parametrize("of", CONTINUOUS, ids=lambda of: of.name)
def test_references_have_the_slope_of_their_density(of: Distribution) -> None:
    exact = EXACT[of.name]
    for i in range(3):
        given = parameters(of, i)
        for row in of.values:
            x = mp.mpf(float(np.float32(row[i])))
            with mp.workdps(25):
                density = exact.density(x, *given)
                for tail, sign in ((exact.lower, 1), (exact.upper, -1)):
                    slope = sign * mp.diff(lambda t, tail=tail: tail(t, *given), x)  # noqa: B023
                    assert abs(slope / density - 1) < 1e-18
                assert abs(exact.lower(x, *given) + exact.upper(x, *given) - 1) < 1e-22


@pytest.mark.parametrize("of", DISCRETE, ids=lambda of: of.name)
def test_references_have_the_steps_of_their_probability(of: Distribution) -> None:
    exact = EXACT_OF_INTEGERS[of.name]
    for i in range(3):
        given = parameters(of, i)
        least, last = exact.bounds(*given)
        for x in (least, least + 1):
            below = exact.lower(x - 1, *given) if x > least else 0
            assert abs(exact.lower(x, *given) - below - exact.density(x, *given)) < 1e-13
            if x < last:
                assert abs(exact.upper(x, *given) + exact.lower(x, *given) - 1) < 1e-13


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "name",
    [
        "ParetoLogCdf",
        "HalfLogisticLogCdf",
        "SkewStudentTLogCdf",
        "StudentTLogSurvival",
        "TruncatedNormalCdf",
        "LogitNormalLogProbGrad",
        "SkewNormalLogProbGrad",
        "GeneralizedExtremeValueLogProbGrad",
        "VonMisesLogSurvival",
        "GammaLogSurvival",
        "InverseGammaIcdf",
        "PoissonLogSurvival",
        "DiscreteWeibullLogProb",
        "KumaraswamyVariance",
        "MvNormalLogProb",
        "GARCH11LogProb",
        "SimplexLogDet",
        "CholeskyCovForward",
        "Eigh",
        "BatchSVD",
    ],
)
def test_functions_hold_their_bounds(name: str) -> None:
    made = list(cases([name]))
    for dtype in DTYPES:
        found = max(errors_of(case, dtype).max() for case in made)
        # Other processors round some of the runtime's sums differently.
        assert found <= 3 * read_errors()[name][dtype] + np.finfo(dtype).eps


def test_references_settle_on_results_that_are_no_difference_of_equal_numbers() -> None:
    with mp.workdps(200):
        exact = mp.expm1(mp.mpf("1e-70"))
    assert abs(settled(lambda x: mp.exp(x) - 1, mp.mpf("1e-70")) / exact - 1) < 1e-19
    assert settled(lambda x: x - x, mp.mpf(2)) == 0
    assert rounded_up(1.01e-7) == 1.1e-7
