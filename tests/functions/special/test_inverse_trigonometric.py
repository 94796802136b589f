import itertools

import numpy as np
import pytest

from tests.functions.special.accuracy import (
    DTYPES,
    assert_accurate,
    assert_values,
    compile_definition,
)

inf, nan, pi = np.inf, np.nan, np.pi


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["ArcSin", "ArcCos", "ArcTan", "ArcTan2"])
def test_errors_are_within_four_ulp(name, dtype):
    assert_accurate(name, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["ArcSin", "ArcTan"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    for tiny in [0.0, info.smallest_subnormal, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(tiny): sign * float(tiny)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_the_domain(dtype):
    assert_values("ArcSin", dtype, {1.0: pi / 2, -1.0: -pi / 2, 1.1: nan, inf: nan, nan: nan})
    assert_values("ArcCos", dtype, {1.0: 0.0, 0.0: pi / 2, -1.0: pi, -1.1: nan, inf: nan, nan: nan})
    assert_values("ArcTan", dtype, {inf: pi / 2, -inf: -pi / 2, 1.0: pi / 4, nan: nan})


@pytest.mark.parametrize("dtype", DTYPES)
def test_arctan2_heeds_the_signs_of_zeros_and_infinities(dtype):
    info = np.finfo(dtype)
    special = [0.0, 1.0, inf, info.max, info.tiny, info.smallest_subnormal, nan]
    signed = [sign * x for x, sign in itertools.product(special, [1, -1])]
    y, x = np.array(list(itertools.product(signed, signed)), dtype).T
    found, expected = compile_definition("ArcTan2", dtype)(y, x), np.arctan2(y, x)
    np.testing.assert_array_max_ulp(found, expected, 1)
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[real], np.signbit(expected)[real])
