"""Random graphs with loops and branches agree with PyTensor; 500 of them in the slow test."""

import pytest

from tests.fuzz.strategy import cases_with_loops
from tests.fuzz.test_fuzz import (
    assert_no_failure,
    assert_none_fails_in_a_process_of_its_own,
)

FEW, MANY, CHUNK = 20, 500, 125


def test_random_graphs_with_loops_agree_with_pytensor():
    assert_no_failure(FEW, 0, cases_with_loops())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + MANY // CHUNK))
def test_many_random_graphs_with_loops_agree_with_pytensor(seed):
    assert_none_fails_in_a_process_of_its_own(CHUNK, "--loops", "--seed", str(seed))
