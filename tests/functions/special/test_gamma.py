"""The gamma function, its logarithm, and the derivatives of that."""

import math

import mpmath as mp
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.scalar import math as psm

from pytensor_onnx import compile_onnx
from pytensor_onnx.functions.special import gamma, psi
from tests.conftest import called, compare_onnx_and_py
from tests.functions.special.accuracy import (
    DTYPES,
    assert_values,
    cases,
    compile_definition,
)
from tests.operations.regions import (
    BOTH,
    FLOAT32,
    FLOAT64,
    Accuracy,
    Region,
    linear,
    logarithmic,
    tiny,
)

inf, nan = np.inf, np.nan


def exact_gammaln(x: mp.mpf) -> mp.mpf:
    if x < 0:
        return mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)
    return mp.loggamma(x)


def exact_psi(x: mp.mpf) -> mp.mpf:
    return mp.psi(0, 1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x) if x < 0 else mp.psi(0, x)


def exact_trigamma(x: mp.mpf) -> mp.mpf:
    return (mp.pi / mp.sinpi(x)) ** 2 - mp.psi(1, 1 - x) if x < 0 else mp.psi(1, x)


def trigamma(x: np.ndarray) -> np.ndarray:
    return scipy.special.polygamma(1, x)


def around(center: float, dtypes: tuple[str, ...] = BOTH) -> Region:
    """Draw from both sides of a point, on a logarithmic scale."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        distance = np.exp(rng.uniform(np.log(np.finfo(dtype).eps), np.log(0.1), size))
        return [center + distance * rng.choice([-1.0, 1.0], size)]

    return Region(f"next to {center:g}", draw, dtypes)


def poles(first: float, last: float, scale=None) -> Region:
    """Draw from both sides of the poles, which are left out."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        pole = np.round(-np.exp(rng.uniform(np.log(first), np.log(last), size)))
        distance = np.exp(rng.uniform(np.log(np.finfo(dtype).eps), np.log(0.5), size))
        x = (pole + distance * rng.choice([-1.0, 1.0], size)).astype(dtype)
        return [np.where(x == np.round(x), np.nextafter(x, x.dtype.type(0)), x)]

    return Region(f"next to poles, -{first:g} … -{last:g}", draw, scale=scale)


def halfway(center: float, scale=None) -> Region:
    """Draw around the point between two poles, where the cotangent vanishes."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        return [center + rng.uniform(-0.06, 0.06, size)]

    return Region(f"next to {center:g}", draw, scale=scale)


def small(power: int) -> Region:
    """Draw numbers of both signs whose reciprocals to a power do not overflow."""

    def draw(rng: np.random.Generator, size: int, dtype: str) -> list[np.ndarray]:
        lowest = float(np.finfo(dtype).max) ** (-1 / power) * 1.001
        x = np.exp(rng.uniform(np.log(lowest), np.log(1e-3), size))
        return [x * rng.choice([-1.0, 1.0], size)]

    return Region("small … ±0.001", draw)


# Between the poles the reflected function and what it is subtracted from have this size.
def scale_of_gammaln(x: mp.mpf) -> mp.mpf:
    return mp.loggamma(1 - x)


def scale_of_psi(x: mp.mpf) -> mp.mpf:
    return mp.psi(0, 1 - x)


CASES = [
    Accuracy(
        psm.GammaLn,
        exact_gammaln,
        [
            linear(0.01, 3),
            around(1),
            around(2),
            linear(2.49, 2.51),
            linear(3, 20),
            logarithmic(20, 2.5e305, FLOAT64),
            logarithmic(20, 4e36, FLOAT32),
            linear(-2.2, -0.01),
            poles(2, 1e5, scale_of_gammaln),
            tiny(),
        ],
        scipy.special.gammaln,
    ),
    Accuracy(
        psm.Psi,
        exact_psi,
        [
            linear(0.01, 3),
            around(1.4616321449683622),
            linear(2.49, 2.51),
            linear(3, 20),
            logarithmic(20),
            linear(-0.99, -0.01),
            around(-0.5040830082644554),
            halfway(-1.5, scale_of_psi),
            poles(1, 1e5, scale_of_psi),
            small(1),
        ],
        scipy.special.psi,
    ),
    Accuracy(
        psm.Gamma,
        mp.gamma,
        [
            linear(0.01, 3),
            linear(3, 20),
            linear(20, 171.6, FLOAT64),
            linear(20, 35, FLOAT32),
            linear(-0.999, -0.01),
            poles(1, 20),
            linear(-169.9, -20.1, FLOAT64),
            linear(-33.9, -20.1, FLOAT32),
            small(1),
        ],
        scipy.special.gamma,
    ),
    Accuracy(
        psm.TriGamma,
        exact_trigamma,
        [
            linear(0.01, 3),
            linear(3, 20),
            logarithmic(20),
            linear(-0.999, -0.01),
            poles(1, 1e5),
            small(2),
        ],
        trigamma,
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_zeros_poles_infinities_and_nan(dtype):
    for name, values in {
        "GammaLn": {0.0: inf, -1.0: inf, -7.0: inf, inf: inf, -inf: -inf, nan: nan},
        "Psi": {0.0: -inf, -1.0: nan, -7.0: nan, inf: inf, -inf: nan, nan: nan},
        "Gamma": {0.0: inf, -1.0: nan, -7.0: nan, inf: inf, -inf: nan, nan: nan},
        "TriGamma": {0.0: inf, -1.0: inf, -7.0: inf, inf: 0.0, -inf: inf, nan: nan},
    }.items():
        points = np.array([*values], dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(cases()[name].scipy(points), [*values.values()])
        assert_values(name, dtype, values)
        # Without negative numbers other nodes run.
        assert_values(name, dtype, {x: y for x, y in values.items() if not x < 0})
    for name, value in {"GammaLn": inf, "Psi": inf, "Gamma": -inf, "TriGamma": inf}.items():
        assert_values(name, dtype, {-0.0: value})


@pytest.mark.parametrize("name", ["GammaLn", "Gamma"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_they_overflow_where_their_values_do(name, dtype):
    last, beyond = {
        ("GammaLn", "float64"): (2.5e305, 2.6e305),
        ("GammaLn", "float32"): (4e36, 4.1e36),
        ("Gamma", "float64"): (171.62, 171.63),
        ("Gamma", "float32"): (35.04, 35.05),
    }[name, dtype]
    finite, infinite = compile_definition(name, dtype)(np.array([last, beyond], dtype))
    assert np.isfinite(finite)
    assert infinite == inf


def test_values_at_the_ends_of_float64():
    largest, smallest = np.finfo("float64").max, np.finfo("float64").smallest_subnormal
    with np.errstate(all="ignore"):
        poles = scipy.special.gammaln(-largest), scipy.special.psi(-smallest)
    assert poles == (inf, inf)
    assert_values("GammaLn", "float64", {-largest: inf, largest: inf})
    assert_values("Psi", "float64", {-smallest: inf, smallest: -inf, -1e-309: inf, -1e-20: 1e20})
    # SciPy's logarithm is infinite here.
    found = compile_definition("GammaLn", "float64")(np.array([-smallest, smallest]))
    np.testing.assert_allclose(found, np.full(2, -np.log(smallest)), rtol=1e-15)


def test_gamma_of_integers_is_exact():
    x = np.arange(1.0, 18.0)
    exact = [float(math.factorial(int(n) - 1)) for n in x]
    np.testing.assert_array_equal(compile_definition("Gamma", "float64")(x), exact)
    assert_values("GammaLn", "float64", {1.0: 0.0, 2.0: 0.0})


def test_gamma_next_to_zero_is_the_reciprocal_of_subnormal_numbers_too():
    x = np.array([-5.7e-309, -1.1e-308, 5.7e-309, 1.1e-308]) * (1 + np.arange(1, 41)[:, None] / 97)
    np.testing.assert_array_max_ulp(
        compile_definition("Gamma", "float64")(x.ravel()), 1 / x.ravel(), 2
    )


def test_gamma_fades_through_the_subnormal_numbers_to_zero():
    x = -np.array([170.5, 174.5, 175.5, 190.5, 191.5, 1e6 + 0.5])
    found = compile_definition("Gamma", "float64")(x)
    with mp.workprec(100):
        exact = [float(mp.gamma(mp.mpf(v))) for v in x]
    np.testing.assert_allclose(found, exact, rtol=9e-16, atol=1e-323)


def next_to_roots(name: str) -> np.ndarray:
    """Return numbers around negative roots, the closer the closer the root is to a pole."""
    exact = cases()[name].exact
    found = []
    rng = np.random.default_rng(0)
    for pole in range(-13, -2):
        for left, right in ((pole + 1e-10, pole + 0.5), (pole + 0.5, pole + 1 - 1e-10)):
            if exact(mp.mpf(left)) * exact(mp.mpf(right)) < 0:
                root = float(mp.findroot(exact, (left, right), solver="anderson", tol=1e-20))
                width = 0.01 * abs(root - round(root))
                found.append(root + width * rng.uniform(-1, 1, 20))
    return np.concatenate(found)


@pytest.mark.parametrize(("name", "share"), [("GammaLn", 0.7), ("Psi", 0.7)])
def test_errors_next_to_negative_roots_are_smaller_than_those_of_scipy(name, share):
    x = next_to_roots(name)
    with mp.workprec(140):
        exact = [cases()[name].exact(mp.mpf(v)) for v in x]
        ours, theirs = (
            [float(abs(mp.mpf(float(v)) - t)) for v, t in zip(run(x), exact, strict=True)]
            for run in (compile_definition(name, "float64"), cases()[name].scipy)
        )
    assert np.mean(ours) <= share * np.mean(theirs)
    assert max(ours) <= share * max(theirs)


@pytest.mark.parametrize("around", [-2.457, -2.7477, -3.1436, -3.9553])
def test_errors_of_gammaln_next_to_each_root_are_smaller_than_those_of_scipy(around):
    root = float(mp.findroot(exact_gammaln, around))
    x = root + 1e-3 * np.random.default_rng(0).uniform(-1, 1, 300)
    with mp.workprec(140):
        exact = [exact_gammaln(mp.mpf(v)) for v in x]
        ours, theirs = (
            max(float(abs(mp.mpf(float(v)) - t)) for v, t in zip(run(x), exact, strict=True))
            for run in (compile_definition("GammaLn", "float64"), scipy.special.gammaln)
        )
    assert ours < theirs


@pytest.mark.parametrize(("name", "module"), [("GammaLn", gamma), ("Psi", psi)])
def test_fitted_functions_meet_at_their_seams_exactly(name, module):
    seam, value = module._SEAM
    assert_values(name, "float64", {seam: value})


FUNCTIONS = (pt.gammaln, pt.psi, pt.gamma, pt.tri_gamma)


@pytest.mark.each_value
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_every_rank_and_empty_arrays(function, shape):
    x = pt.tensor("x", shape=(None,) * len(shape))
    value = np.random.default_rng(0).uniform(-3, 20, shape)
    compare_onnx_and_py([x], function(x), [value])


def test_integers_are_cast_as_by_pytensor():
    x, small = pt.vector("x", dtype="int64"), pt.vector("small", dtype="int8")
    values = [np.array([0, 1, 2, 5, 30]), np.array([1, 3, 5], "int8")]
    outputs = [f(v) for f in FUNCTIONS for v in (x, small)]
    compare_onnx_and_py([x, small], outputs, values, rtol=1e-3)


def test_gradients_run_in_functions_and_loops():
    x = pt.vector("x")
    value = np.array([-1.3, 0.2, 1.0, 1.5, 4.0, 30.0])
    gradients = [pt.grad(f(x).sum(), x) for f in FUNCTIONS[:3]]
    second = pt.grad(gradients[0].sum(), x)
    inner = called(lambda v: pt.gammaln(v) * pt.psi(v), x)
    steps = pytensor.scan(
        lambda v: pt.gammaln(pt.abs(v)), outputs_info=[x], n_steps=2, return_updates=False
    )
    compare_onnx_and_py([x], [*gradients, second, inner, steps], [value])


def test_negative_numbers_alone_pay_for_reflection():
    x = pt.vector("x", shape=(3,))
    run = compile_onnx([x], pt.gammaln(x), verify=False)
    [function] = run.model.functions.values()
    [choice] = [node for node in function if node.op_type == "If"]
    inside = [n.op_type for n in choice.attributes["then_branch"].as_graph()]
    assert "Gather" in inside
    assert "Gather" not in [node.op_type for node in function]
