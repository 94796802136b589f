import mpmath as mp
import numpy as np
import pytest
import scipy.special
from pytensor.scalar import math as psm

from tests.functions.special.accuracy import (
    DTYPES,
    PRECISION,
    assert_values,
    compile_definition,
    errors_in_ulp,
)
from tests.operations.regions import (
    BOTH,
    FLOAT32,
    FLOAT64,
    SMALLEST,
    Accuracy,
    Region,
    linear,
    logarithmic,
    tiny,
)

inf, nan = np.inf, np.nan


def exact_log_erfcinv(w: mp.mpf) -> mp.mpf:
    """Solve ``-log(erfc(y)) = w`` by Newton's method, for ``w`` above one."""
    y = mp.sqrt(w - mp.log(mp.pi * w) / 2) if w > 3 else mp.mpf(1)
    for _ in range(100):
        if y > 1e5:
            log, slope = -y * y - mp.log(y * mp.sqrt(mp.pi)) - 1 / (2 * y * y), 2 * y + 1 / y
        else:
            log, slope = mp.log(mp.erfc(y)), 2 * mp.exp(-y * y) / mp.erfc(y) / mp.sqrt(mp.pi)
        step = (-log - w) / slope
        y -= step
        if abs(step) < y * mp.mpf(2) ** -100:
            return y
    raise ArithmeticError(w)


def exact_erfcinv(q: mp.mpf) -> mp.mpf:
    if q > mp.mpf("0.3"):
        return -exact_erfcinv(2 - q) if q > mp.mpf("1.7") else mp.erfinv(1 - q)
    return exact_log_erfcinv(-mp.log(q))


def exact_ndtri_exp(x: mp.mpf) -> mp.mpf:
    if x < -2:
        return -mp.sqrt(2) * exact_log_erfcinv(-x - mp.log(2))
    return mp.sqrt(2) * exact_erfcinv(-2 * mp.expm1(x))


def below_one(smallest: float, dtypes: tuple[str, ...]) -> Region:
    """Numbers that differ from one by so little or more."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [1 - np.exp(rng.uniform(np.log(smallest), np.log(0.1), size))]

    return Region(f"1 - {smallest:g} … 0.9", draw, dtypes)


def around_median() -> Region:
    """The floating-point numbers around -log(2)."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        root = np.array(-np.log(2), dtype)
        return [root + rng.integers(-20, 21, size) * np.spacing(root)]

    return Region("next to -log(2)", draw)


CASES = [
    Accuracy(
        psm.Erfinv,
        mp.erfinv,
        [
            linear(-0.5, 0.5),
            linear(0.5, 0.9999),
            linear(-0.9999, -0.5),
            below_one(1.2e-16, FLOAT64),
            below_one(6e-8, FLOAT32),
            tiny(),
        ],
        scipy.special.erfinv,
    ),
    Accuracy(
        psm.Erfcinv,
        exact_erfcinv,
        [
            linear(0.5, 1.5),
            linear(1e-6, 0.5),
            linear(1.5, 1.9999),
            logarithmic(0, 0.1),
            logarithmic(1e-18, 0.1),
        ],
        scipy.special.erfcinv,
    ),
    Accuracy(
        psm.NdtriExp,
        exact_ndtri_exp,
        [
            linear(-6.5, -0.01),
            linear(-1, -0.5),
            around_median(),
            linear(-110, -6),
            linear(-2000, -110),
            logarithmic(100, sign=-1),
            logarithmic(0, 0.01, sign=-1),
        ],
        scipy.special.ndtri_exp,
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfinv_at_the_ends_of_its_domain(dtype):
    values = {1.0: inf, -1.0: -inf, 1.5: nan, -1.5: nan, inf: nan, -inf: nan, nan: nan, 0.0: 0.0}
    assert_values("Erfinv", dtype, values)
    assert_values("Erfinv", dtype, {-0.0: -0.0})


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfcinv_at_the_ends_of_its_domain(dtype):
    values = {0.0: inf, 2.0: -inf, 1.0: 0.0, -0.5: nan, 2.5: nan, inf: nan, -inf: nan, nan: nan}
    assert_values("Erfcinv", dtype, values)
    assert_values("Erfcinv", dtype, {-0.0: inf})


@pytest.mark.parametrize("dtype", DTYPES)
def test_ndtri_exp_at_the_ends_of_its_domain(dtype):
    values = {0.0: inf, 1e-5: nan, 1000.0: nan, inf: nan, -inf: -inf, nan: nan}
    assert_values("NdtriExp", dtype, values)
    assert_values("NdtriExp", dtype, dict.fromkeys([10.0**n for n in range(38)], nan))
    assert_values("NdtriExp", dtype, {-0.0: inf})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "inverse"), [("Erf", "Erfinv"), ("Erfc", "Erfcinv")])
def test_inverses_come_back(name, inverse, dtype):
    y = np.linspace(-2, 2, 101).astype(dtype)
    there, back = compile_definition(name, dtype), compile_definition(inverse, dtype)
    # An ulp of the value of the function is as many of the argument.
    slope = 2 / np.sqrt(np.pi) * np.exp(-y * y)
    room = 4 * np.spacing(np.abs(there(y))) / slope + 4 * np.spacing(np.abs(y))
    assert np.all(np.abs(back(there(y)) - y) <= room)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", BOTH)
def test_the_tail_of_erfcinv_has_no_seams(dtype):
    q = np.exp(np.linspace(np.log(SMALLEST[dtype]), np.log(2 / 3), 2000)).astype(dtype)
    with mp.workprec(PRECISION):
        exact = [exact_erfcinv(mp.mpf(float(value))) for value in q]
    assert errors_in_ulp(compile_definition("Erfcinv", dtype)(q), exact).max() < 3
