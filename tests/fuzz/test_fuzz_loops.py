"""Random graphs with loops and branches agree with PyTensor; 500 of them in the slow test."""

import pytest

from tests.fuzz.test_fuzz import assert_none_fails

FEW, MANY, CHUNK = 4, 500, 125


def test_random_graphs_with_loops_agree_with_pytensor():
    assert_none_fails(FEW, "--loops", "--seed", "0")


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1, 1 + MANY // CHUNK))
def test_many_random_graphs_with_loops_agree_with_pytensor(seed):
    assert_none_fails(CHUNK, "--loops", "--seed", str(seed))
