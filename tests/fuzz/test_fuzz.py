"""Random graphs agree with PyTensor: a few in every run, thousands in the slow one."""

import os

import pytest
from hypothesis.strategies import SearchStrategy

from tests.fuzz.comparison import Case
from tests.fuzz.run import find_failures
from tests.fuzz.strategy import cases

FEW, MANY, CHUNK = 50, 2000, 250


def assert_no_failure(graphs: int, seed: int, strategy: SearchStrategy[Case]) -> None:
    failures = find_failures(graphs, seed, strategy)
    assert not failures, "\n".join(map(str, failures))


def test_random_graphs_agree_with_pytensor():
    assert_no_failure(FEW, 0, cases())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + MANY // CHUNK))
def test_many_random_graphs_agree_with_pytensor(seed):
    assert_no_failure(CHUNK, int(os.environ.get("FUZZ_SEED", "0")) * 1000 + seed, cases())
