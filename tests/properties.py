"""Properties checked on drawn examples: a few in every run, many by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

FEW, MANY = 10, 400
RUNS = [FEW, pytest.param(MANY, marks=pytest.mark.sweep)]


def holds_for(**strategies: SearchStrategy) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a function that checks one drawn example."""

    def decorate(check: Callable[..., Any]) -> Callable[..., None]:
        @pytest.mark.parametrize("examples", RUNS)
        def test(examples: int) -> None:
            settings(max_examples=examples)(given(**strategies)(check))()

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return decorate
