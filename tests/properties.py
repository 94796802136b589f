"""Properties checked on drawn examples: a few in every run, many in the slow one."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

FEW, MANY = 10, 150


def holds_for(**strategies: SearchStrategy) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a function that checks one drawn example."""

    def decorate(check: Callable[..., Any]) -> Callable[..., None]:
        @pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
        def test(examples: int) -> None:
            settings(max_examples=examples)(given(**strategies)(check))()

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return decorate
