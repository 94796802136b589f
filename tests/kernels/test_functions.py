"""Elementary functions of regions: errors, special values, and equal bits for all vectors."""

from contextlib import contextmanager

import mpmath
import numpy as np
import pytest
from onnx import TensorProto, helper

from pytensor_onnx import native
from pytensor_onnx.graph.traversal import STANDARD_DOMAIN
from pytensor_onnx.kernels import regions
from tests.kernels.conftest import SPECIAL, assert_same_bits, model_of, open_session


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


def log1mexp(x):
    return mpmath.log(-mpmath.expm1(x))


# Each function with the bound of its error in ulp.
FUNCTIONS = {
    "Exp": (mpmath.exp, 1),
    "Log": (mpmath.log, 1),
    "Tanh": (mpmath.tanh, 1),
    "Sin": (mpmath.sin, 1),
    "Cos": (mpmath.cos, 1),
    "Tan": (mpmath.tan, 2),
    "Asin": (mpmath.asin, 1),
    "Acos": (mpmath.acos, 1),
    "Atan": (mpmath.atan, 1),
    "Sinh": (mpmath.sinh, 1),
    "Cosh": (mpmath.cosh, 1),
    "Log1p_float64": (mpmath.log1p, 1),
    "Expm1_float64": (mpmath.expm1, 1),
    "Sigmoid_float64": (logistic, 1),
    "Softplus_float64": (softplus, 1),
    "Log1mexp_float64": (log1mexp, 1),
    "Exp2_float64": (lambda x: mpmath.power(2, x), 1),
    "Log2_float64": (lambda x: mpmath.log(x, 2), 1),
    "Log10_float64": (mpmath.log10, 1),
    "Asinh": (mpmath.asinh, 1),
    "Acosh": (mpmath.acosh, 1),
    "Atanh": (mpmath.atanh, 1),
}
LOGARITHMS = ("Log", "Log2_float64", "Log10_float64")
ANGLES = ("Sin", "Cos", "Tan")
OF_SHARES = ("Asin", "Acos", "Atanh")
ROUNDED_ONCE = (*ANGLES, *OF_SHARES, "Atan", "Sinh", "Cosh", "Asinh", "Acosh")
KINDS = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}


def run_in_region(name, *arrays):
    domain = STANDARD_DOMAIN if "_" in name else ""
    feed = dict(zip("ab", arrays, strict=False))
    node = helper.make_node(name, [*feed], ["out"], domain=domain)
    model = model_of([node], feed, {"out": KINDS[arrays[0].dtype.name]})
    if domain:
        # The region takes the place of the body, which has only to be valid.
        body = [helper.make_node("Identity", ["x"], ["y"])]
        opsets = [helper.make_opsetid("", 21)]
        model.functions.append(helper.make_function(domain, name, ["x"], ["y"], body, opsets))
        model.opset_import.append(helper.make_opsetid(domain, 1))
    fused = regions.fuse(model.SerializeToString()).model
    assert fused is not None
    return open_session(fused, with_library=True).run(None, feed)[0]


@pytest.fixture(autouse=True)
def regions_of_one_node(monkeypatch):
    monkeypatch.setattr(regions, "FEWEST_NODES", 1)


def arguments(name, share=1):
    rng = np.random.default_rng(0)
    n = 30 * share
    parts = [rng.uniform(-1, 1, 3 * n), rng.normal(scale=8, size=3 * n), rng.uniform(-700, 700, n)]
    parts += [rng.choice([-1, 1], 3 * n) * 10.0 ** rng.uniform(-300, 0, 3 * n)]
    x = np.concatenate([*parts, 10.0 ** rng.uniform(-300, 300, n)])
    if name in (*LOGARITHMS, "Log1p_float64"):
        least = 0 if name in LOGARITHMS else -1
        x = np.abs(x) + least * (np.arange(len(x)) % 2) * np.minimum(1, np.abs(x)) * 1.5
        x = x[x > least]
        return np.concatenate([x, 1 + rng.normal(scale=1e-4, size=n)])
    if name in OF_SHARES:
        near = rng.choice([-1, 1], 4 * n) * (1 - 10.0 ** rng.uniform(-16, 0, 4 * n))
        x = np.concatenate([x[np.abs(x) <= 1], near, [0.5, -0.5]])
        return x[np.abs(x) < 1] if name == "Atanh" else np.append(x, [1.0, -1.0])
    if name == "Acosh":
        return np.concatenate([1 + np.abs(x), 1 + 10.0 ** rng.uniform(-16, 0, 4 * n)])
    if name == "Asinh":
        return np.append(x, [1e308, -1e308, 5e-324])
    if name == "Log1mexp_float64":
        return -np.abs(x[np.abs(x) < 700])
    if name in ("Sinh", "Cosh"):
        return np.concatenate([x[np.abs(x) < 700], [710.4, -710.4, 5e-324]])
    if name in ANGLES:
        # Next to multiples of pi/2, where turns are subtracted in another way, and subnormal.
        quarters = rng.integers(-(2**20), 2**20, 2 * n) * (np.pi / 2)
        bounds = [2.0**20, -(2.0**20), 2.0**20 - 2.0**-33, 6381956970095103 * 2.0**797, 5e-324]
        return np.concatenate([x, quarters, rng.uniform(-4, 4, 3 * n) * 2.0**20, bounds])
    return x[x < 700]


def errors_in_ulp(found, exact):
    """Return the errors in units of the last place of the exact numbers."""
    places = [np.spacing(np.abs(found.dtype.type(e))) for e in exact]
    return [
        float(abs(e - mpmath.mpf(float(f))) / mpmath.mpf(float(place)))
        for e, f, place in zip(exact, found, places, strict=True)
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_below_the_bound(name):
    check_errors(name, arguments(name), FUNCTIONS[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_of_many_numbers_are_below_the_bound(name):
    check_errors(name, arguments(name, share=300), FUNCTIONS[name][1])


def check_errors(name, x, bound):
    exactly = FUNCTIONS[name][0]
    found = run_in_region(name, x)
    with mpmath.workprec(1200):
        assert max(errors_in_ulp(found, [exactly(mpmath.mpf(float(v))) for v in x])) < bound


@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_float32_results_are_rounded_once(name):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(scale=10, size=200), 10.0 ** rng.uniform(-45, 38, 100)])
    x = np.concatenate([x, rng.uniform(-1, 1, 100)]).astype("float32")
    x = x[np.abs(x) <= (1 if name in OF_SHARES else 88 if name in ("Sinh", "Cosh") else np.inf)]
    x = 1 + np.abs(x) if name == "Acosh" else x
    found = run_in_region(name, x)
    with mpmath.workprec(400):
        exact = [FUNCTIONS[name][0](mpmath.mpf(float(v))) for v in x]
        assert max(errors_in_ulp(found, exact)) < 0.501


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "name",
    [*LOGARITHMS, "Exp", "Exp2_float64", "Expm1_float64", "Log1p_float64", "Tanh", *ROUNDED_ONCE],
)
def test_special_values_are_those_of_numpy(name, dtype):
    names = {"Asinh": "arcsinh", "Acosh": "arccosh", "Atanh": "arctanh"}
    function = getattr(np, names.get(name, name.removesuffix("_float64").lower()))
    name = name.replace("float64", dtype)
    with np.errstate(all="ignore"):
        x = np.array([*SPECIAL, 1e10, -1e10, 711.0, -711.0], dtype)
        expected = function(x)
    found = run_in_region(name, x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    rest = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[rest]), np.signbit(expected[rest]))
    np.testing.assert_array_max_ulp(found[rest], expected[rest], 1)


@pytest.mark.parametrize("name", ANGLES)
def test_functions_of_files_are_the_operators(name):
    x = np.linspace(-9, 9, 50)
    assert_same_bits(run_in_region(f"{name}_float64", x), run_in_region(name, x))


# Powers.

ROOTS = [0.5, -0.5, 1.5, -1.5, -1.0, 2.0, 3.0]
BASES = [*SPECIAL, 2.0, -2.0, 4.0, 1 - 2.0**-53, 1 + 2.0**-52, -1e-310, 5e-324, 2.0**53, -1e300]
EXPONENTS = [*SPECIAL, *ROOTS, 2.0**53, 2.0**53 - 1, 1 - 2.0**53, 1e300, -1e300, 2.0**66, 1e-310]


def random_powers(share=1):
    """Draw bases and exponents whose powers are numbers, many of them extreme ones."""
    rng = np.random.default_rng(0)
    n = 100 * share
    sizes = [rng.uniform(-1, 1, n), rng.uniform(-1022, 1024, n), 0.6 * rng.uniform(-1, 1, n)]
    sizes += [rng.uniform(-1, 1, n) * 2.0 ** -rng.integers(1, 50, n)]
    x = np.concatenate([2.0**size for size in sizes])
    results = np.concatenate([rng.uniform(-3, 3, n), *(rng.uniform(-1070, 1023, n),) * 3])
    y = results / np.where(x == 1, 1, np.log2(x))
    y[::7] = np.array(ROOTS)[np.arange(len(y[::7])) % len(ROOTS)]
    with np.errstate(all="ignore"):
        power = np.power(x, y)
    is_finite = (power > 0) & (power < np.inf)
    return x[is_finite], y[is_finite]


def check_powers(x, y):
    with mpmath.workprec(300):
        exact = [mpmath.mpf(float(a)) ** mpmath.mpf(float(b)) for a, b in zip(x, y, strict=True)]
        errors = np.array(errors_in_ulp(run_in_region("Pow", x, y), exact))
    is_root = np.isin(y, ROOTS)
    assert errors[~is_root].max() < 1
    assert errors[is_root].max() < 1.8


def test_errors_of_powers_are_below_1_ulp():
    check_powers(*random_powers())


@pytest.mark.slow
def test_errors_of_many_powers_are_below_1_ulp():
    check_powers(*random_powers(share=400))


@pytest.mark.parametrize("dtype", KINDS)
def test_powers_of_special_values_are_those_of_c(dtype):
    with np.errstate(all="ignore"):
        x, y = (np.ravel(a).astype(dtype) for a in np.meshgrid(BASES, EXPONENTS))
        expected = np.power(x, y)
    found = run_in_region("Pow", x, y)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    rest = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[rest]), np.signbit(expected[rest]))
    np.testing.assert_array_max_ulp(found[rest], expected[rest], 1)


def test_powers_that_are_numbers_are_exact():
    pairs = [(b, e) for b in range(-40, 41) for e in range(1, 60) if abs(b**e) < 2**53]
    pairs += [(2.0, e) for e in range(-1074, 1024)]
    pairs += [(float(b * b), e) for b in range(1, 200) for e in (0.5, 1.5)]
    pairs += [(4.0**k, e) for k in range(-100, 100) for e in (-0.5, -1.5)]
    pairs += [(float(b**4), 0.25) for b in range(1, 200)]
    x, y = np.array(pairs, "float64").T
    with mpmath.workprec(200):
        exact = [mpmath.mpf(a) ** mpmath.mpf(b) for a, b in pairs]
    np.testing.assert_array_equal(run_in_region("Pow", x, y), [float(e) for e in exact])


# Bits.


@contextmanager
def narrow_vectors():
    """Let regions that are planned within use the vectors that all processors have."""
    native.handle().pytensor_onnx_use_narrow_vectors(1)
    try:
        yield
    finally:
        native.handle().pytensor_onnx_use_narrow_vectors(0)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", [*FUNCTIONS, "Pow"])
def test_bits_depend_neither_on_vectors_nor_on_places(name, dtype):
    """Numbers alone, in the rest after the last vector, and in vectors of two widths."""
    name = name.replace("float64", dtype)
    rng = np.random.default_rng(2)
    given = [np.concatenate([rng.normal(scale=5, size=193), [1e7, np.nan, np.inf, 0, -1e300]])]
    if name == "Pow":
        given[0][::2] = np.abs(given[0][::2])
        given.append(rng.choice([*ROOTS, 0.7, -3.3, 4.0], len(given[0])))
    with np.errstate(all="ignore"):
        given = [x.astype(dtype) for x in given]
    whole = run_in_region(name, *given)
    with narrow_vectors():
        assert_same_bits(run_in_region(name, *given), whole)
    for start, stop in ((3, 198), (190, 191), (191, 198), (100, 165), (197, 198)):
        feed = {key: x[start:stop] for key, x in zip("ab", given, strict=False)}
        assert_same_bits(run_in_region(name, *feed.values()), whole[start:stop])


@pytest.mark.parametrize("dtype", KINDS)
def test_bits_of_powers_do_not_depend_on_what_is_a_number(dtype):
    x = np.abs(np.random.default_rng(3).normal(scale=5, size=70)).astype(dtype)
    for number in (0.5, -1.5, 3.0, 0.7):
        y = np.full_like(x, number)
        assert_same_bits(run_in_region("Pow", x, y[:1]), run_in_region("Pow", x, y))
        assert_same_bits(run_in_region("Pow", y[:1], x), run_in_region("Pow", y, x))
