"""Boxes stand in layers, apart from each other, and edges lead downwards."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pytensor_onnx.pictures.layered_layout import arrange


@st.composite
def graphs(draw):
    count = draw(st.integers(0, 12))
    sizes = [(draw(st.integers(10, 200)), draw(st.integers(10, 50))) for _ in range(count)]
    pairs = [(i, j) for j in range(count) for i in range(j)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return sizes, [(i, j, 0) for i, j in chosen]


@given(graphs())
def test_boxes_are_apart_and_edges_lead_downwards(graph):
    sizes, edges = graph
    found = arrange(sizes, edges)
    for start, stop, _ in edges:
        assert found.bottoms[found.cells[start].layer] < found.cells[stop].y
    for layer in {cell.layer for cell in found.cells}:
        cells = sorted((c for c in found.cells if c.layer == layer), key=lambda c: c.x)
        for left, right in pairwise(cells):
            assert left.x + left.width / 2 < right.x - right.width / 2
    for cell in found.cells:
        assert cell.x - cell.width / 2 >= -1e-6
        assert cell.x + cell.width / 2 <= found.width + 1e-6
        assert cell.y + cell.height <= found.height + 1e-6


def test_a_crossing_that_can_be_avoided_is_avoided():
    found = arrange([(40, 20)] * 4, [(0, 3, 0), (1, 2, 0)])
    upper, lower = found.cells[:2], found.cells[2:]
    assert np.sign(upper[0].x - upper[1].x) == np.sign(lower[1].x - lower[0].x)


def test_edges_of_one_value_share_their_points():
    edges = [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 4, 0), (0, 3, 0), (0, 4, 0)]
    routes = arrange([(40, 20)] * 5, edges).routes
    assert [len(route) for route in routes] == [0, 0, 0, 0, 2, 3]
    assert routes[5][:2] == routes[4]


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        arrange([(40, 20)] * 2, [(0, 1, 0), (1, 0, 0)])
