import numpy as np
import pytest
import scipy.special

from tests.functions.special.accuracy import DTYPES, compile_definition

inf, nan = np.inf, np.nan


@pytest.mark.parametrize(("dtype", "last"), [("float64", 713.98), ("float32", 91.9)])
@pytest.mark.parametrize("name", ["I0", "I1"])
def test_they_overflow_where_their_values_do(name, dtype, last):
    near, beyond = compile_definition(name, dtype)(np.array([last, last + 0.02], dtype))
    assert near < np.finfo(dtype).max
    assert beyond == inf


@pytest.mark.parametrize("dtype", DTYPES)
def test_scaled_functions_are_finite_far_away(dtype):
    for name, reference in (("I0e", scipy.special.i0e), ("I1e", scipy.special.i1e)):
        x = np.array([0.0, -0.0, 1e30, -1e30, inf, -inf, nan], dtype)
        found = compile_definition(name, dtype)(x)
        np.testing.assert_allclose(found, reference(x), rtol=4 * np.finfo(dtype).eps)
        # Odd, also where SciPy's is not: at -0.0.
        expected = np.signbit(x[:4]) & (name == "I1e")
        np.testing.assert_array_equal(np.signbit(found[:4]), expected)
