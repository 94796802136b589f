"""Functions of complex numbers, by region against NumPy's in more digits, and at all limits."""

from itertools import product

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from tests.conftest import PY, compare_onnx_and_py

FUNCTIONS = {
    **{name: getattr(pt, name) for name in ("exp", "exp2", "expm1", "log", "log1p", "log2")},
    **{name: getattr(pt, name) for name in ("log10", "sqrt", "reciprocal", "sign", "abs")},
    **{name: getattr(pt, name) for name in ("sinh", "cosh", "tanh", "sin", "cos", "tan")},
    **{f"arc{name}": getattr(pt, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
    **{f"arc{name}": getattr(pt, f"arc{name}") for name in ("sin", "cos", "tan")},
    "square": pt.sqr,
}
LIMITS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, np.inf, -np.inf, np.nan)
WIDER = {"complex128": "clongdouble", "complex64": "complex128"}


@pytest.fixture(scope="module", params=["complex128", "complex64"])
def computed(request):
    """A dtype and the function that computes all functions in one session."""
    z = pt.vector("z", dtype=request.param)
    f = pytensor.function([z], [f(z) for f in FUNCTIONS.values()], mode="ONNX")

    def by_name(values):
        return dict(zip(FUNCTIONS, f(values.astype(request.param)), strict=True))

    return request.param, by_name


def regions():
    """Return numbers of all magnitudes, and those near branch points and zeros."""
    rng = np.random.default_rng(0)
    unit = rng.normal(size=(400, 2)).view("complex128")[:, 0]
    sizes = 10.0 ** rng.uniform(-3, 1.3, (400, 2))
    near = np.array([1, -1, 1j, -1j, np.pi, np.pi / 2 * 1j, 3 * np.pi * 1j])
    return np.concatenate(
        [
            unit.real * sizes[:, 0] + 1j * unit.imag * sizes[:, 1],
            (near[:, None] + 1e-6 * unit[:40]).ravel(),
            unit * 10.0 ** rng.uniform(-30, -3, 400),
        ]
    )


def test_errors_are_a_few_units_of_the_absolute_value(computed):
    dtype, by_name = computed
    values = regions().astype(dtype)
    wide = values.astype(WIDER[dtype])
    eps = np.finfo(dtype).eps
    for name, found in by_name(values).items():
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(wide)
        if name == "log1p":
            # That of NumPy adds one to small numbers.
            expected = np.where(abs(wide) < 1e-3, wide * (1 - wide / 2 + wide**2 / 3), expected)
        tolerance = 32 if name == "exp2" else 4
        far = abs(wide) > 1e-3 if name in ("log1p", "square") else slice(None)
        error = abs(found - expected)[far] / abs(expected)[far]
        assert error.max() < tolerance * eps, name


def test_far_from_the_origin(computed):
    dtype, by_name = computed
    rng = np.random.default_rng(1)
    top = 300 if dtype == "complex128" else 37
    angles = np.exp(1j * rng.uniform(-3, 3, 300))
    values = (10.0 ** rng.uniform(3, top, 300) * angles).astype(dtype)
    found = by_name(values)
    for name in (*(n for n in FUNCTIONS if n[:3] in ("log", "arc", "abs")), "sqrt", "reciprocal"):
        expected = getattr(np, name)(values.astype(WIDER[dtype]))
        assert (abs(found[name] - expected) <= 4 * np.finfo(dtype).eps * abs(expected)).all(), name


def test_exponentials_that_are_finite_beside_an_overflow(computed):
    dtype, by_name = computed
    values = np.array([1.0, -1.0]) * (709.9 if dtype == "complex128" else 88.8) + 0.785j
    for name in ("exp", "sinh", "cosh"):
        expected = getattr(np, name)(values.astype(dtype).astype(WIDER[dtype]))
        np.testing.assert_allclose(by_name(values)[name], expected.astype(dtype), rtol=1e-5)
        assert np.isfinite(expected.astype(dtype)).all()


def test_limits_and_sides_of_branch_cuts_are_those_of_numpy(computed):
    dtype, by_name = computed
    values = np.array([complex(*pair) for pair in product(LIMITS, LIMITS)]).astype(dtype)
    for name, found in by_name(values).items():
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(values)
        for part in (np.real, np.imag):
            a, b = part(found), part(expected)
            # The C standard leaves open the sign of a number beside a NaN, and of 1 / infinity.
            is_open = np.isnan(expected) | (np.isinf(values.real) & ~np.isfinite(values.imag))
            a, b = np.where(is_open, abs(a), a), np.where(is_open, abs(b), b)
            np.testing.assert_allclose(a, b, rtol=4 * np.finfo(dtype).eps, err_msg=name)
            zeros = (b == 0) & ~is_open
            np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]), name)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_arithmetic_at_limits(dtype):
    z, w, x = pt.matrix("z", dtype=dtype), pt.matrix("w", dtype=dtype), pt.matrix("x", dtype="int8")
    results = [z + w, z - w, z * w, z / w, x + z, x - z, x * z, x / z, z / x, -z, z.conj(), z - x]
    results += [z + 1, 1 - z, 2.0 * z, 1j * z, -1 * z, z / 2, 1 / z, z * z * w]
    values = np.array([complex(*pair) for pair in product(LIMITS, LIMITS)]).astype(dtype)
    real = np.array([[0, 1, -1]], "int8").repeat(100, 0).T.copy()
    whole = np.broadcast_to(values, (3, 100)).copy()
    other = np.random.default_rng(0).permuted(whole, axis=1)
    compare_onnx_and_py(
        [z, w, x], results, [whole, other, real], rtol=4 * np.finfo(dtype).eps, signed_zeros=True
    )


def test_quotients_do_not_overflow():
    z, w = pt.zvector("z"), pt.zvector("w")
    values = np.array([1e300 + 2e300j, 3e-300 - 1e-300j, 8e307 + 8e307j])
    f = pytensor.function([z, w], [z / w, abs(z)], mode="ONNX")
    quotients, sizes = f(values, values * (1 + 1e-3j))
    np.testing.assert_allclose(quotients, 1 / (1 + 1e-3j), rtol=1e-15)
    np.testing.assert_allclose(sizes, np.abs(values), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_powers(dtype):
    z, w, x = pt.vector("z", dtype=dtype), pt.vector("w", dtype=dtype), pt.vector("x", dtype="int8")
    rng = np.random.default_rng(0)
    bases = rng.normal(size=(80, 2)).view("complex128")[:, 0].astype(dtype)
    exponents = 3 * rng.normal(size=(80, 2)).view("complex128")[:, 0].astype(dtype)
    exponents[:40] = np.round(exponents[:40].real)
    bases[::9], exponents[::5] = 0, exponents[::5].real
    whole = rng.integers(-99, 100, 80).astype("int8")
    f = pytensor.function([z, w, x], [z**w, z**x, z**2, z**3, z**-1, 2.0**w, z**0.5], mode="ONNX")
    eps = np.finfo(dtype).eps
    with np.errstate(all="ignore"):
        wide, exact = bases.astype(WIDER[dtype]), exponents.astype(WIDER[dtype])
        expected = [wide**exact, wide**whole, wide**2, wide**3, wide**-1, 2.0**exact, wide**0.5]
        near = [bases**exponents, bases ** whole.astype(dtype)]
    found = f(bases, exponents, whole)
    for a, b, rtol in zip(found, expected, [64, 400, 4, 4, 64, 64, 64], strict=True):
        fits = np.isfinite(b.astype(dtype)) & (abs(b) > np.finfo(dtype).tiny)
        assert (abs(a - b) <= rtol * eps * abs(b))[fits].all()
    for a, b in zip(found, near, strict=False):
        np.testing.assert_array_equal(np.isnan(a)[bases == 0], np.isnan(b)[bases == 0])
        np.testing.assert_array_equal(
            a[(bases == 0) & ~np.isnan(a)], b[(bases == 0) & ~np.isnan(b)]
        )


def test_files_are_verified_and_call_each_function_once():
    z = pt.zvector("z")
    program = export_onnx([z], pt.exp(z) + pt.exp(2 * z))
    assert "equal to PyTensor" in str(program.verification)
    names = [function.name for function in program.model.functions.values()]
    of_exp = [name for name in names if name.startswith("ComplexExp")]
    assert [name.endswith("_in_blocks") for name in sorted(of_exp)] == [False, True]


def test_order_is_by_the_real_part_first():
    x, y = pt.zvector("x"), pt.zvector("y")
    numbers = [complex(a, b) for a, b in product((1.0, 2.0, -np.inf, np.nan), repeat=2)]
    left, right = map(np.array, zip(*product(numbers, numbers), strict=True))
    results = [pt.maximum(x, y), pt.minimum(x, y), x < y, x <= y, x > y, x >= y]
    f = pytensor.function([x, y], results, mode="ONNX")
    functions = (np.maximum, np.minimum, np.less, np.less_equal, np.greater, np.greater_equal)
    with np.errstate(all="ignore"):
        for found, function in zip(f(left, right), functions, strict=True):
            np.testing.assert_array_equal(found, function(left, right), err_msg=function.__name__)


def test_order_of_complex_and_real_numbers():
    z, x = pt.vector("z", dtype="complex64"), pt.dvector("x")
    results = [pt.maximum(z, x), z < x, pt.fill(z, x[0]), pt.eye(2, dtype="complex64")]
    values = [np.array([1 + 1j, 2j, 1]).astype("complex64"), np.array([1.0, 0.0, 2.0])]
    compare_onnx_and_py([z, x], results, values)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_logarithm_of_one_less_an_exponential(dtype):
    z = pt.vector("z", dtype=dtype)
    f = pytensor.function([z], pt.log1mexp(z), mode="ONNX")
    rng = np.random.default_rng(0)
    unit = rng.normal(size=(5, 40, 2)).view("complex128")[..., 0]
    values = (unit * np.array([1e-9, 1e-3, 1.0, 10.0, 30.0])[:, None]).ravel().astype(dtype)
    with mpmath.workdps(80):
        wanted = [mpmath.log(1 - mpmath.exp(mpmath.mpc(complex(value)))) for value in values]
    wanted = np.array([complex(value) for value in wanted])
    error = abs(f(values) - wanted) / abs(wanted)
    assert error.max() < 8 * np.finfo(dtype).eps
    limits = np.array([complex(*pair) for pair in product(LIMITS, LIMITS)]).astype(dtype)
    reference = pytensor.function([z], pt.log1mexp(z), mode=PY)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(f(limits), reference(limits), rtol=8 * np.finfo(dtype).eps)
