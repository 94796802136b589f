"""Random graphs agree with PyTensor: a few in every run, thousands in the slow one."""

import os

import pytest

from tests.fuzz.run import find_failures

FEW, MANY, CHUNK = 50, 2000, 250


def assert_no_failure(graphs: int, seed: int) -> None:
    failures = find_failures(graphs, seed)
    assert not failures, "\n".join(map(str, failures))


def test_random_graphs_agree_with_pytensor():
    assert_no_failure(FEW, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + MANY // CHUNK))
def test_many_random_graphs_agree_with_pytensor(seed):
    assert_no_failure(CHUNK, seed=int(os.environ.get("FUZZ_SEED", "0")) * 1000 + seed)
