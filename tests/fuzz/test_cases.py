"""A graph is called with other sizes where its types leave them open."""

import numpy as np
import pytest

from tests.fuzz.cases import Case
from tests.fuzz.graphs import Graph


@pytest.mark.parametrize(
    ("resized", "shapes"), [("larger", [(4, 2), (4, 1), (2,)]), ("empty", [(0, 2), (0, 1), (2,)])]
)
def test_equal_open_sizes_change_alike(resized, shapes):
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None, 2))", np.ones((3, 2)))
    graph.add_leaf("v1", "pt.tensor('v1', shape=(None, None))", np.ones((3, 1)))
    graph.add_leaf("v2", "pt.tensor('v2', shape=(2,))", np.ones(2))
    case = Case(graph, [], [], resized)
    assert [v.shape for v in case.resized_values()] == shapes


def test_a_size_that_is_fixed_elsewhere_is_not_emptied():
    graph = Graph()
    graph.add_leaf("v0", "pt.tensor('v0', shape=(None, None))", np.ones((3, 4)))
    graph.add_leaf("v1", "pytensor.shared(np.ones(3), shape=(None,))", np.ones(3))
    assert Case(graph, [], [], "empty").resized_values()[0].shape == (3, 0)
