"""Every distribution of PyMC has the same densities in mode ONNX."""

from collections.abc import Sequence

import pytest

pm = pytest.importorskip("pymc")

from tests.pymc.distributions import CASES, NO_DENSITY, UNSUPPORTED, Case  # noqa: E402
from tests.pymc.measuring import Graphs, largest_error, run  # noqa: E402

TOLERANCE = 1e-9
FAST = ("Normal", "Laplace", "Categorical", "Dirichlet", "Interpolated", "GaussianRandomWalk")
"""Distributions whose densities convert in little time."""


def check(cases: Sequence[Case], *, slopes_of_cdf: bool = True) -> None:
    graphs = [Graphs(case) for case in cases]
    if not slopes_of_cdf:
        for one in graphs:
            one.outputs = {
                key: y for key, y in one.outputs.items() if key[0] != "logcdf" or not key[1]
            }
    for one, (found, expected) in zip(graphs, run(graphs), strict=True):
        errors = {
            name: largest_error(a, b)
            for name, a, b in zip(one.outputs, found, expected, strict=True)
        }
        assert max(errors.values()) < TOLERANCE, (errors, found, expected)


def test_every_distribution_is_in_the_table() -> None:
    names = set(pm.distributions.__all__)
    assert names == CASES.keys() | NO_DENSITY.keys() | UNSUPPORTED.keys()


@pytest.mark.slow
def test_densities_of_quickly_converted_distributions() -> None:
    check([case for name in FAST for case in CASES[name]])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES.keys() - set(FAST)))
def test_densities(name: str) -> None:
    check(CASES[name], slopes_of_cdf=False)


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(CASES.keys() - set(FAST)))
def test_densities_and_gradients_of_cumulative_distributions(name: str) -> None:
    check(CASES[name])
