"""References in double precision for all tests of PyMC."""

from collections.abc import Iterator

import pytest

from tests.conftest import numbers_in_double


@pytest.fixture(autouse=True, scope="module")
def _numbers_in_double(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.module.__name__.endswith("test_numbers"):
        yield
        return
    with numbers_in_double():
        yield
