"""Place the boxes of a directed graph in layers, from top to bottom, with few crossings of edges.

Layers are longest paths, their order follows the barycentres of neighbours, and an edge over
several layers passes a point in each of them: the method of Sugiyama, Tagawa and Toda (1981). The
horizontal places minimise the squared distances from neighbours without changing the order, which
the pool of adjacent violators solves exactly for one layer at a time.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 12
"""Passes over all layers, down and up in turns: crossings hardly fall after ten."""

_SPACE, _POINT = 26.0, 10.0
_LEAST_GAP, _MOST_GAP = 24.0, 70.0
_STRAIGHT = 8.0
"""Weight of a neighbour between two points of long edges, which should run straight."""


@dataclass
class Cell:
    """A place in a layer: of a box, or of the point where a long edge passes the layer.

    Attributes
    ----------
    width, height
        Size, the space for labels below included.
    x, y
        Centre, and upper border.
    """

    width: float
    height: float
    is_point: bool = False
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    above: list[Cell] = field(default_factory=list, repr=False)
    below: list[Cell] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Layout:
    """Places of all boxes.

    Attributes
    ----------
    cells
        The place of each box.
    routes
        For each edge the points that it passes between its two boxes, from top to bottom.
    bottoms
        Lower border of each layer.
    width, height
        Size of the whole.
    """

    cells: list[Cell]
    routes: list[list[Cell]]
    bottoms: list[float]
    width: float
    height: float


def arrange(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int, int]]) -> Layout:
    """Place boxes in layers, so that each edge leads downwards.

    Parameters
    ----------
    sizes
        Width and height of each box.
    edges
        Pairs of boxes, without cycles, and the value of the first that the edge brings: the edges
        of one value share the points that they pass.

    Examples
    --------
    >>> found = arrange([(80, 20), (80, 20), (80, 20)], [(0, 1, 0), (1, 2, 0), (0, 2, 0)])
    >>> [cell.layer for cell in found.cells], [len(route) for route in found.routes]
    ([0, 1, 2], [0, 0, 1])
    """
    cells = [Cell(width, height) for width, height in sizes]
    _assign_layers(cells, edges)
    trunks: dict[tuple[int, int], list[Cell]] = {}
    routes = [
        _connect(cells[start], cells[stop], trunks.setdefault((start, value), []))
        for start, stop, value in edges
    ]
    layers: list[list[Cell]] = [[] for _ in range(1 + max((c.layer for c in cells), default=-1))]
    for cell in _from_the_top(cells):
        layers[cell.layer].append(cell)
    layers = _ordered(layers)
    _place_horizontally(layers)
    left = min((c.x - c.width / 2 for layer in layers for c in layer), default=0.0)
    right = max((c.x + c.width / 2 for layer in layers for c in layer), default=0.0)
    bottoms, top = [], 0.0
    for layer in layers:
        # Edges that lead far to the side need room to bend.
        reach = max((abs(c.x - d.x) for c in layer for d in c.below), default=0.0)
        bottom = top + max(cell.height for cell in layer)
        for cell in layer:
            cell.y = top
        bottoms.append(bottom)
        top = bottom + min(_MOST_GAP, _LEAST_GAP + reach / 12)
    for cell in (c for layer in layers for c in layer):
        cell.x -= left
    return Layout(cells, routes, bottoms, right - left, bottoms[-1] if bottoms else 0.0)


def _assign_layers(cells: Sequence[Cell], edges: Iterable[tuple[int, int, int]]) -> None:
    """Put each box below those before it, and boxes with nothing before close to the next."""
    after: list[list[int]] = [[] for _ in cells]
    waiting = [0] * len(cells)
    for start, stop, _ in edges:
        after[start].append(stop)
        waiting[stop] += 1
    first = [i for i, count in enumerate(waiting) if not count]
    order = list(first)
    for i in order:
        for j in after[i]:
            cells[j].layer = max(cells[j].layer, cells[i].layer + 1)
            waiting[j] -= 1
            if not waiting[j]:
                order.append(j)
    if len(order) < len(cells):
        raise ValueError("the edges have a cycle")
    for i in first:
        if after[i]:
            cells[i].layer = min(cells[j].layer for j in after[i]) - 1


def _connect(start: Cell, stop: Cell, trunk: list[Cell]) -> list[Cell]:
    """Connect two boxes by points in the layers between them, those of the trunk first."""
    while start.layer + len(trunk) + 1 < stop.layer:
        layer = start.layer + len(trunk) + 1
        _join(trunk[-1] if trunk else start, point := Cell(_POINT, 0.0, True, layer))
        trunk.append(point)
    route = trunk[: stop.layer - start.layer - 1]
    _join(route[-1] if route else start, stop)
    return route


def _join(upper: Cell, lower: Cell) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _from_the_top(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells in depth-first order, which keeps neighbours together."""
    found: dict[int, Cell] = {}
    stack = [cell for cell in reversed(cells) if not cell.above]
    while stack:
        cell = stack.pop()
        if id(cell) not in found:
            found[id(cell)] = cell
            stack.extend(reversed(cell.below))
    return list(found.values())


def _ordered(layers: list[list[Cell]]) -> list[list[Cell]]:
    """Order each layer by the barycentres of neighbours; return the order of fewest crossings."""
    best, fewest = layers, _crossings(layers)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        layers = [list(layer) for layer in layers]
        place = {id(c): float(i) for layer in layers for i, c in enumerate(layer)}
        for layer in layers if downwards else reversed(layers):
            keys = {}
            for cell in layer:
                near = cell.above if downwards else cell.below
                known = [place[id(c)] for c in near] or [place[id(cell)]]
                keys[id(cell)] = sum(known) / len(known)
            layer.sort(key=lambda cell: keys[id(cell)])
            place.update((id(cell), float(i)) for i, cell in enumerate(layer))
        count = _crossings(layers)
        if count < fewest:
            best, fewest = layers, count
    return best


def _crossings(layers: Sequence[Sequence[Cell]]) -> int:
    """Return the number of pairs of edges that cross."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {id(cell): i for i, cell in enumerate(lower)}
        ends: list[int] = []
        for cell in upper:
            own = sorted(place[id(c)] for c in cell.below)
            total += sum(len(ends) - bisect_right(ends, end) for end in own)
            for end in own:
                insort(ends, end)
    return total


def _place_horizontally(layers: Sequence[Sequence[Cell]]) -> None:
    for layer in layers:
        _settle(layer, [0.0] * len(layer), [1.0] * len(layer))
    for sweep in range(2 * SWEEPS):
        downwards = sweep % 2 == 0
        for layer in layers[1:] if downwards else reversed(layers[:-1]):
            wanted, weights = [], []
            for cell in layer:
                # The last sweeps take the neighbours of both sides, to straighten the edges.
                sides = cell.above if downwards else cell.below
                near = [*cell.above, *cell.below] if sweep >= SWEEPS else sides
                pulls = [_STRAIGHT if c.is_point and cell.is_point else 1.0 for c in near]
                total = sum(pulls)
                pulled = zip(pulls, near, strict=True)
                wanted.append(sum(p * c.x for p, c in pulled) / total if near else cell.x)
                weights.append(total if near else 0.1)
            _settle(layer, wanted, weights)


def _settle(layer: Sequence[Cell], wanted: Sequence[float], weights: Sequence[float]) -> None:
    """Place the cells of a layer next to where they want to be, in order and apart.

    Subtracting the least distances leaves a monotone regression, whose solution are weighted means
    of runs of cells.
    """
    offsets, offset = [], 0.0
    for before, cell in zip([None, *layer], layer, strict=False):
        if before is not None:
            space = _POINT if before.is_point or cell.is_point else _SPACE
            offset += (before.width + cell.width) / 2 + space
        offsets.append(offset)
    runs: list[tuple[float, float, int]] = []
    for want, weight, shift in zip(wanted, weights, offsets, strict=True):
        mean, total, count = want - shift, weight, 1
        while runs and runs[-1][0] > mean:
            other, mass, length = runs.pop()
            mean = (mean * total + other * mass) / (total + mass)
            total, count = total + mass, count + length
        runs.append((mean, total, count))
    places = (mean for mean, _, count in runs for _ in range(count))
    for cell, place, shift in zip(layer, places, offsets, strict=True):
        cell.x = place + shift
