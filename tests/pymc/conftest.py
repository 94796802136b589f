"""References in double precision for all tests of PyMC."""

from collections.abc import Iterator

import pytest
from pytensor.scalar.basic import autocast_float, autocast_int


@pytest.fixture(autouse=True, scope="module")
def numbers_in_double(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have PyTensor make float64 and int64 constants of Python numbers.

    It makes float32 ones of 2.0, and PyMC's own log-densities are off by 1e-8; ours are not
    (`test_numbers`).
    """
    if request.module.__name__.endswith("test_numbers"):
        yield
        return
    before = autocast_float.dtypes, autocast_int.dtypes
    autocast_float.dtypes, autocast_int.dtypes = ("float64",), ("int64",)
    yield
    autocast_float.dtypes, autocast_int.dtypes = before
