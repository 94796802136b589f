import mpmath as mp
import numpy as np
import pytest
from pytensor.scalar import basic as ps

from tests.functions.special.accuracy import (
    DTYPES,
    assert_values,
    compile_definition,
)
from tests.functions.special.regions import FLOAT32, FLOAT64, Case, linear, tiny

inf, nan = np.inf, np.nan


CASES = [
    Case(
        ps.Sinh,
        mp.sinh,
        [
            linear(-1, 1),
            linear(1, 4),
            linear(-40, 40),
            linear(700, 710.47, FLOAT64),
            linear(80, 89.41, FLOAT32),
            tiny(),
        ],
    ),
    Case(
        ps.Cosh,
        mp.cosh,
        [
            linear(-1, 1),
            linear(1, 4),
            linear(-40, 40),
            linear(700, 710.47, FLOAT64),
            linear(80, 89.41, FLOAT32),
            tiny(),
        ],
    ),
    Case(ps.Tanh, mp.tanh, [linear(-0.55, 0.55), linear(0.55, 2), linear(-20, 20), tiny()]),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Sinh", "Tanh"])
@pytest.mark.parametrize("sign", [1, -1])
def test_tiny_numbers_and_zeros_come_back(name, dtype, sign):
    info = np.finfo(dtype)
    last = float(info.smallest_subnormal)
    # Half of the last subnormal number is zero.
    is_halved = name == "Tanh" and dtype == "float64"
    assert_values(name, dtype, {sign * last: sign * (0.0 if is_halved else last)})
    for number in [0.0, info.tiny, info.eps / 8]:
        assert_values(name, dtype, {sign * float(number): sign * float(number)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_infinities_and_nan(dtype):
    assert_values("Sinh", dtype, {inf: inf, -inf: -inf, nan: nan})
    assert_values("Cosh", dtype, {0.0: 1.0, inf: inf, -inf: inf, nan: nan})
    assert_values("Tanh", dtype, {inf: 1.0, 50.0: 1.0, -50.0: -1.0, -inf: -1.0, nan: nan})


@pytest.mark.parametrize(("dtype", "last"), [("float64", 710.4758), ("float32", 89.4159)])
@pytest.mark.parametrize("name", ["Sinh", "Cosh"])
def test_overflow_comes_no_earlier_than_the_largest_number(name, dtype, last):
    run = compile_definition(name, dtype)
    assert np.isfinite(run(np.array([last], dtype)))
    assert np.isinf(run(np.array([last + 1e-3], dtype)))
