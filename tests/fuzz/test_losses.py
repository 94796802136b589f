"""Losses at extreme arguments are compared where the graph as written or as rewritten has them."""

import numpy as np
import pytest

from tests.fuzz.cases import Case
from tests.fuzz.graphs import Graph
from tests.fuzz.quietness import quiet
from tests.fuzz.references import Disagreement, Reference

LOGITS = np.array([-1000.0, 0.5, 1000.0])


def reference(loss):
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(3,))", LOGITS)
    assert graph.add(loss, is_loss=True)
    return Reference(Case(graph, graph.ends, []), [LOGITS])


def test_a_gradient_that_is_not_finite_as_written_is_compared_with_the_rewritten_one():
    sigmoid = np.array([0.0, 1 / (1 + np.exp(-0.5)), 1.0])
    with quiet():
        gradient = reference("pt.grad(-pt.log1p(-pt.sigmoid(v0)).sum(), v0)")
        gradient.compare(lambda _: [sigmoid], "")
        for wrong in (np.where(LOGITS == 1000, np.nan, sigmoid), sigmoid + 1e-6):
            with pytest.raises(Disagreement):
                gradient.compare(lambda _, wrong=wrong: [wrong], "")


def test_values_that_neither_has_are_not_compared():
    with quiet():
        loss = reference("pt.exp(v0) - pt.exp(v0 + 1)")
        expected = [0.0, np.exp(0.5) - np.exp(1.5), 0.0]
        for unknown in (np.nan, 1.0, 7.0):
            loss.compare(lambda _, u=unknown: [np.where(LOGITS == 1000, u, expected)], "")
        with pytest.raises(Disagreement):
            loss.compare(lambda _: [np.where(LOGITS == 0.5, np.nan, expected)], "")
