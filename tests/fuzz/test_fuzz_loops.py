"""Random graphs with loops and branches agree with PyTensor; 500 of them in the slow test."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.fuzz import loops
from tests.fuzz.comparison import Case, check, quiet
from tests.fuzz.operations import OPERATIONS
from tests.fuzz.strategy import build, steps

FEW, MANY, CHUNK = 20, 500, 125
POSITIONS = [
    position
    for position, operation in enumerate(OPERATIONS)
    if operation.__module__ == loops.__name__
]


@st.composite
def cases_with_loops(draw: st.DrawFn) -> Case:
    """Draw a graph whose last steps are loops or branches, or use those before."""
    numbers = st.lists(st.integers(0, 255), min_size=12, max_size=24)
    loop = st.tuples(st.sampled_from(POSITIONS), numbers)
    drawn = [
        *draw(steps())[:8],
        *draw(st.lists(loop, min_size=1, max_size=3)),
        *draw(steps())[:4],
        draw(loop),
    ]
    return build(drawn, draw(st.lists(st.integers(0, 255), max_size=8)))


def assert_agreement(graphs: int, seed: int) -> None:
    @seeded(seed)
    @settings(
        max_examples=graphs,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases_with_loops())
    def search(case: Case) -> None:
        if not case.outputs:
            return
        try:
            check(case)
        except Exception as error:
            error.add_note(case.code)
            raise

    with quiet():
        search()


def test_random_graphs_with_loops_agree_with_pytensor():
    assert_agreement(FEW, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + MANY // CHUNK))
def test_many_random_graphs_with_loops_agree_with_pytensor(seed):
    assert_agreement(CHUNK, seed)
