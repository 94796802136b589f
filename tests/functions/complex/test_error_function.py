"""The error function of complex numbers, against mpmath and at limits against SciPy."""

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special

SIZES = (1e-200, 1e-3, 0.1, 1.0, 4.0, 6.5, 10.0)


@pytest.mark.few(1)
@pytest.mark.parametrize(("dtype", "tolerance"), [("complex128", 1e-13), ("complex64", 2e-7)])
def test_errors_by_region(dtype, tolerance):
    z = pt.vector("z", dtype=dtype)
    sizes = SIZES if dtype == "complex128" else SIZES[1:-2]
    unit = np.random.default_rng(0).normal(size=(len(sizes), 20, 2)).view("complex128")[..., 0]
    values = (unit * np.array(sizes)[:, None]).ravel().astype(dtype)
    found = pytensor.function([z], pt.erf(z), mode="ONNX")(values)
    assert found.dtype == dtype
    wanted = np.array([complex(mpmath.erf(mpmath.mpc(complex(value)))) for value in values])
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=0)


@pytest.mark.slow
def test_limits():
    z = pt.zvector("z")
    parts = np.array([0.0, -0.0, 1.0, -3.0, 30.0])
    finite = (parts[:, None] + 0j).view("float64").reshape(-1, 2)
    values = np.concatenate([finite.view("complex128")[:, 0], 1j * parts, parts + 0.5j])
    limits = [complex(x, y) for x in (np.inf, -np.inf) for y in (0.0, 2.0, -3.0)]
    unknown = [complex(np.nan, 0), complex(np.nan, 1), complex(1, np.nan)]
    values = np.concatenate([values, limits, unknown])
    found = pytensor.function([z], pt.erf(z), mode="ONNX")(values)
    np.testing.assert_allclose(found, scipy.special.erf(values), rtol=1e-13, atol=0)
