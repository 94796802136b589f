import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.special

from pytensor_onnx import compile_onnx
from tests.conftest import compare_onnx_and_py
from tests.functions.special.accuracy import DTYPES, compile_definition

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_ends_and_poles_are_those_of_scipy(dtype):
    parameters = [
        *((0.5, 1, 2), (1, 2, 3), (2, 3, 1), (1, 1, 2), (1, 0.5, 2), (0, 2, 1), (2, 0, 0.5)),
        *((-2, 1, -1), (-2, 3, -3), (1, -1, -2), (-3, 2, -5), (-2, -1, 2.5), (1, 1, -3)),
    ]
    arguments = [0.0, 1.0, 0.5, -0.5, -1e25, nan]
    a, b, c, z = np.array([(*p, z) for p in parameters for z in arguments]).T.copy().astype(dtype)
    with np.errstate(all="ignore"):
        expected = scipy.special.hyp2f1(a, b, c, z).astype(dtype)
    # SciPy gives infinity here: log(1 + 1e25) / 1e25.
    expected[(a == 1) & (b == 1) & (c == 2) & (z < -1)] = np.log1p(1e25) / 1e25
    expected[np.isnan(z)] = nan
    found = compile_definition("Hyp2F1", dtype)(a, b, c, z)
    np.testing.assert_allclose(found, expected, rtol=1e-13 if dtype == "float64" else 1e-6)


def test_the_function_is_infinite_beyond_one_unless_it_is_a_polynomial():
    parameters = np.array([(0.5, 1, 2), (1.5, -3, 2), (2, 2, 2.5)]).T.copy()
    found = compile_definition("Hyp2F1", "float64")(*parameters, np.full(3, 1.5))
    assert found.tolist() == [inf, pytest.approx(scipy.special.hyp2f1(1.5, -3, 2, 1.5)), inf]


def test_values_at_one_are_those_of_the_formula_of_gauss():
    rows = [(1, -0.5, 1), (0.5, -0.5, 1.25), (2, 0.5, 4), (1.5, -2.5, 1), (-1, -2.5, -2.5)]
    a, b, c = np.array(rows, "f8").T.copy()
    with mp.workdps(30):
        expected = [float(mp.hyp2f1(*row, 1)) for row in rows]
    assert expected[0] == expected[-1] == 0
    found = compile_definition("Hyp2F1", "float64")(a, b, c, np.ones(len(rows)))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_polynomials_beyond_one_are_accurate_where_a_sum_hardly_cancels():
    rows = [
        (-28, -2.3139420968490683, 5.464259582795741, 4.546987073308195),
        (-23, 8.017678996016642, 7.550505083590669, 1.2219684059965479),
        (-43, 8.524670293164164, 7.199191321366556, 1.2688787155403034),
        (-37, 6.854489617001207, 2.5967589887319886, 1.1912144294939688),
    ]
    with mp.workdps(60):
        expected = [float(mp.hyp2f1(*map(mp.mpf, row))) for row in rows]
    found = compile_definition("Hyp2F1", "float64")(*np.array(rows, "f8").T.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_values_next_to_roots_are_accurate():
    rows = [
        (4.564651, 3.36893, -4.409725, -2.09022),
        (-4.32198, 4.249327, -1.318488, 0.648502),
        (-12, 3.25, 2.5, 0.0625),
        (-3, -5.4, 2.8, 2.6),
    ]
    with mp.workdps(40):
        rows = [
            (a, b, c, float(mp.findroot(lambda x, p=(a, b, c): mp.hyp2f1(*p, x), z)))
            for a, b, c, z in rows
        ]
        expected = [float(mp.hyp2f1(*map(mp.mpf, row))) for row in rows]
    found = compile_definition("Hyp2F1", "float64")(*np.array(rows, "f8").T.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_polynomials_of_negative_c_reach_the_largest_numbers():
    a, b, c = -np.array([1.0, 1, 2, 2, 2, 5]), 0.5, -2.5
    z = -np.array([1e160, 1e307, 1e120, 1e152, 1e160, 1e55])
    found = compile_definition("Hyp2F1", "float64")(*np.broadcast_arrays(a, b, c, z))
    np.testing.assert_allclose(found, scipy.special.hyp2f1(a, b, c, z), rtol=1e-13)


def test_polynomials_beyond_one_with_equal_parameters_are_powers():
    n = np.array([1.0, 3, 1, 3])
    b = np.array([0.5, 0.5, 2, 10])
    found = compile_definition("Hyp2F1", "float64")(-n, b, b, np.full(4, 2.0))
    np.testing.assert_array_equal(found, -np.ones(4))


def test_terms_that_grow_again_next_to_a_zero_of_the_third_parameter_count():
    rows = [(1, 1, -4 - 1e-10, 1e-5), (2.5, 0.5, -3 + 1e-12, -1e-4), (0.5, 3, -6 - 1e-9, 1e-3)]
    with mp.workdps(40):
        expected = [float(mp.hyp2f1(*map(mp.mpf, row))) for row in rows]
    found = compile_definition("Hyp2F1", "float64")(*np.array(rows, "f8").T.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.slow
def test_a_number_has_the_value_of_an_array_of_it():
    rows = [(0.5, 1.3, 2.1, -30), (1, 2, 3.5, 0.7), (-3, 0.2, -1.0001, 0.4), (1.5, 2.5, 0.2, 0.1)]
    numbers = pt.scalars("a", "b", "c", "z")
    single = compile_onnx(numbers, pt.hyp2f1(*numbers), verify=False)
    found = [single(*np.array(row, "f8")) for row in rows]
    expected = compile_definition("Hyp2F1", "float64")(*np.array(rows, "f8").T.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_values_far_below_zero_are_accurate_next_to_integers_poles_and_roots():
    rows = [
        # Both c - a and c - b end a series.
        (4.5, 3.5, 0.5, -7315480.634284453),
        (3.0, 2.0, 1.0, -1126696.05934254),
        # The difference b - a is nearly an integer.
        (3.723799004674289, 4.718562889633327, -3.2791527807323906, -4302723.0235220585),
        (3.880246325605537, -1.1181490677003492, -1.1179625284772214, -788.3050549228248),
        # The difference c - a is nearly a pole of gamma.
        (0.6987536271476689, 0.6901967963679256, -3.3807693514133175, -447.1735078894498),
        # Terms cancel by a factor of 100 to 400.
        (-3.526885491942685, -3.021670774014785, -4.562604870548373, -404088.6454352972),
        (-2.0185477937723153, -2.3593450767345203, -4.671388845381166, -108923.88131999412),
    ]
    with mp.workdps(60):
        expected = [float(mp.hyp2f1(*map(mp.mpf, row))) for row in rows]
    found = compile_definition("Hyp2F1", "float64")(*np.array(rows, "f8").T.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_what_cancels_too_much_is_nan():
    rows = [(60.3, -60.5, 2, 0.5), (1, 2, -7.5, -10), (-2000, 1, 3.5, 0.5), (30, 40, 2, 0.5)]
    found = compile_definition("Hyp2F1", "float64")(*np.array(rows, "f8").T.copy())
    assert np.isnan(found).tolist() == [True, True, True, False]


@pytest.mark.slow
def test_gradients():
    a, b, c, z = inputs = pt.vectors("a", "b", "c", "z")
    value = pt.hyp2f1(a, b, c, z)
    by_z = pt.grad(value.sum(), z)
    outputs = [value, *pt.grad(value.sum(), [a, b, c]), by_z, pt.grad(by_z.sum(), z)]
    points = [np.array(x) for x in ([0.5, 1, 2], [1.5, 2, 0.5], [2.5, 3, 1], [-0.4, 0.3, 0.6])]
    compare_onnx_and_py(inputs, outputs, points, rtol=1e-9)


@pytest.mark.slow
def test_shapes_and_dtypes():
    run = compile_definition("Hyp2F1", "float32")
    assert run(*np.zeros((4, 0), "f4")).shape == (0,)
    a, z, s = pt.col("a", dtype="int64"), pt.row("z", dtype="float32"), pt.scalar("s")
    values = [np.array([[1], [3]]), np.full((1, 2), 0.5, "f4"), np.array(0.25)]
    outputs = [pt.hyp2f1(a, 2, 3, z), pt.hyp2f1(s, s, s, s)]
    compare_onnx_and_py([a, z, s], outputs, values, rtol=1e-6)
