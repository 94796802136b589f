"""PyMC's step methods draw the same in mode ONNX as in Python."""

from collections.abc import Callable

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import pytensor_onnx  # noqa: E402, F401  (registers the mode)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::FutureWarning")]
MODES = ("ONNX", "FAST_COMPILE")
QUIET = {"progressbar": False, "compute_convergence_checks": False, "random_seed": 3}


def real() -> None:
    pm.Normal("y", pm.Normal("x", 0, 2), pm.HalfNormal("s"), observed=[1.0, 2.0, 0.5])


def binary() -> None:
    pm.Normal("y", pm.Bernoulli("x", 0.3, shape=3).sum(), 1, observed=1.7)


def categories() -> None:
    pm.Normal("y", pm.Categorical("x", [0.2, 0.3, 0.5], shape=2), 1, observed=[1.7, 0.0])


def count() -> None:
    pm.Normal("y", pm.Poisson("x", 3), 1, observed=2.2)


@pytest.mark.parametrize(
    ("define", "method"),
    [
        (count, "Metropolis"),
        (real, "Slice"),
        (real, "NUTS"),
        (binary, "BinaryGibbsMetropolis"),
        (categories, "CategoricalGibbsMetropolis"),
        *(
            pytest.param(define, method, marks=pytest.mark.sweep)
            for define, method in [
                (real, "Metropolis"),
                (real, "DEMetropolis"),
                (real, "DEMetropolisZ"),
                (real, "HamiltonianMC"),
                (binary, "BinaryMetropolis"),
            ]
        ),
    ],
)
def test_step_methods_draw_the_same(define: Callable[[], None], method: str) -> None:
    with pm.Model() as model:
        define()
        drawn = []
        for mode in MODES:
            kwargs = {"compile_kwargs": {"mode": mode}}
            step = getattr(pm, method)(model.value_vars, **kwargs)
            chains = 4 if method == "DEMetropolis" else 1
            options = {"draws": 30, "tune": 30, "chains": chains, "cores": 1}
            drawn.append(pm.sample(**options, step=step, **kwargs, **QUIET).posterior)
    found, expected = drawn
    assert len(np.unique(expected["x"])) > 1
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)


def test_sequential_monte_carlo_draws_the_same() -> None:
    with pm.Model():
        real()
        found, expected = (
            pm.sample_smc(50, chains=1, compile_kwargs={"mode": mode}, **QUIET).posterior
            for mode in MODES
        )
    np.testing.assert_allclose(found["x"], expected["x"], rtol=1e-6)
