"""Gamma and psi of complex numbers, against mpmath by region and at limits against SciPy."""

from itertools import product

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special

RNG = np.random.default_rng(0)
INNER = np.array([1e-30, 1e-8, 0.1, 0.7, 1.5, 3.0, 9.0, 9.999, 10.001, 25.0, 40.0])


@pytest.fixture(scope="module", params=["complex128", "complex64"])
def computed(request):
    """A dtype and the function that computes gamma and psi."""
    z = pt.vector("z", dtype=request.param)
    f = pytensor.function([z], [pt.gamma(z), pt.psi(z)], mode="ONNX")
    return request.param, lambda values: f(np.asarray(values, request.param))


def circles(radii, count=24):
    """Return numbers of all angles."""
    angles = np.exp(1j * RNG.uniform(-np.pi, np.pi, (len(radii), count)))
    return (radii[:, None] * angles).ravel()


def beside_the_real_axis():
    x = np.concatenate([RNG.uniform(-20, 20, 60), np.arange(-20, 21)])
    return x + 1j * RNG.choice([-1, 1], x.size) * 10.0 ** RNG.uniform(-12, 0, x.size)


def exact(function, values):
    with mpmath.workdps(40):
        return np.array([complex(function(mpmath.mpc(complex(value)))) for value in values])


@pytest.mark.few(3)
@pytest.mark.parametrize("values", [circles(INNER), beside_the_real_axis()], ids=["plane", "axis"])
def test_gamma_is_accurate(computed, values):
    dtype, f = computed
    values = values.astype(dtype)
    found, wanted = f(values)[0], exact(mpmath.gamma, values)
    largest, least = np.finfo(dtype).max, np.finfo(dtype).tiny
    fits = (abs(wanted) < largest) & (abs(wanted) > least)
    tolerance = 1e-13 if dtype == "complex128" else 1e-7
    assert found.dtype == dtype
    assert (abs(found - wanted)[fits] <= tolerance * abs(wanted)[fits]).all()


@pytest.mark.parametrize("values", [circles(INNER), beside_the_real_axis()], ids=["plane", "axis"])
def test_psi_is_accurate_beside_one(computed, values):
    dtype, f = computed
    values = values.astype(dtype)
    found, wanted = f(values)[1], exact(mpmath.digamma, values)
    tolerance = 1e-14 if dtype == "complex128" else 1e-7
    assert found.dtype == dtype
    size = np.maximum(abs(wanted), 1.0)
    assert (abs(found - wanted) <= tolerance * size).all()


def test_gamma_far_from_zero_has_the_error_of_its_exponent():
    z = pt.zvector("z")
    values = circles(np.array([60.0, 100.0, 150.0, 400.0, 1000.0]), 60)
    found = pytensor.function([z], pt.gamma(z), mode="ONNX")(values)
    wanted = exact(mpmath.gamma, values)
    assert (abs(found[abs(wanted) < 1e-320]) < 1e-300).all()
    fits = (abs(wanted) > 1e-300) & np.isfinite(wanted)
    values, found, wanted = values[fits], found[fits], wanted[fits]
    assert values.size > 100
    size = abs(values * np.log(values))
    assert (abs(found - wanted) <= 5e-16 * size * abs(wanted)).all()


@pytest.mark.slow
def test_real_numbers_have_the_results_of_the_real_functions():
    z, x = pt.zvector("z"), pt.vector("x")
    results = [pt.gamma(z), pt.gamma(x), pt.psi(z), pt.psi(x)]
    values = np.concatenate([np.arange(1.0, 19.0), RNG.uniform(-9, 9, 20), [1e-308, -1e-300]])
    gamma, real_gamma, psi, real_psi = pytensor.function([z, x], results, mode="ONNX")(
        values, values
    )
    np.testing.assert_array_equal(gamma, real_gamma)
    np.testing.assert_array_equal(psi, real_psi)


def test_limits_are_those_of_scipy(computed):
    dtype, f = computed
    x = (0.0, -0.0, 1.0, -1.0, -2.5, -7.0, np.inf, -np.inf, np.nan)
    y = (0.0, -0.0, 1.0, -1.0, 30.0, -30.0, np.inf, -np.inf, np.nan)
    values = np.array([complex(*pair) for pair in product(x, y)]).astype(dtype)
    rtol = 1e-13 if dtype == "complex128" else 1e-5
    with np.errstate(all="ignore"):
        for function, found in zip(
            (scipy.special.gamma, scipy.special.psi), f(values), strict=True
        ):
            wanted = function(values)
            np.testing.assert_array_equal(np.isnan(found.real), np.isnan(wanted.real))
            np.testing.assert_array_equal(np.isnan(found.imag), np.isnan(wanted.imag))
            np.testing.assert_allclose(found.real, wanted.real, rtol=rtol)
            atol = 1e-13 if dtype == "complex128" else 1e-6
            np.testing.assert_allclose(found.imag, wanted.imag, rtol=rtol, atol=atol)


def test_gamma_overflows_and_vanishes():
    z = pt.zvector("z")
    values = [200 + 1j, 400 + 1j, 200.0, 1 + 1000j, -200.5 + 1j, -1e308 + 1j, 200 + 1000j]
    infinite = complex(np.inf, -np.inf)
    found = pytensor.function([z], pt.gamma(z), mode="ONNX")(values)
    np.testing.assert_array_equal(found[:6], [infinite, infinite, np.inf, 0, 0, 0])
    np.testing.assert_allclose(found[6], exact(mpmath.gamma, values[6:])[0], rtol=1e-12)


def test_conjugates_of_arguments_give_conjugates(computed):
    _, f = computed
    values = circles(INNER)
    for found, mirrored in zip(f(values), f(values.conj()), strict=True):
        np.testing.assert_array_equal(found, mirrored.conj())
