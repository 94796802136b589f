"""Backward errors of factorisations and solvers on all classes of matrices and sizes."""

import pytest

from tests.functions.linalg.accuracy import MEASURED, SIZES

pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
ROWS = [pytest.param(m, name, id=f"{m.name}-{name}") for m in MEASURED for name in m.classes]

ELSEWHERE = {"Schur", "Eig", "QZ", "Eigh", "SVD"}
"""Operations whose own modules compare the errors for small matrices with those of LAPACK."""


def marks(measured):
    if measured.name in ELSEWHERE:
        return pytest.mark.sweep
    # Iterations take seconds to convert.
    return pytest.mark.slow if measured.largest < SIZES[-1] else ()


FIRST = [pytest.param(m, id=m.name, marks=marks(m)) for m in MEASURED]


def assert_as_small_as_lapacks(measured, name, n):
    ours, lapacks = measured.measure(name, n)
    assert ours <= measured.bound(lapacks, n), (
        f"error {ours:.2g} of order {n}, LAPACK's {lapacks:.2g}"
    )


@pytest.mark.parametrize("measured", FIRST)
@pytest.mark.few(2)
def test_errors_of_small_matrices_are_lapacks(measured):
    for name in measured.classes:
        for n in (0, 3, 10):
            assert_as_small_as_lapacks(measured, name, n)


@pytest.mark.sweep
@pytest.mark.parametrize(("measured", "name"), ROWS)
def test_errors_of_all_sizes_are_lapacks(measured, name):
    for n in SIZES[: SIZES.index(measured.largest) + 1]:
        assert_as_small_as_lapacks(measured, name, n)
