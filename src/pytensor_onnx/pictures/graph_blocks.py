"""Group the nodes of a large graph into blocks, which repeat or lie between narrow cuts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_LONGEST_PERIOD = 96
_WIDEST_CUT = 12
_REPETITIONS = 40
"""Most kinds of repeated blocks that are looked for."""

HEAVY = frozenset((
    "Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "Attention", "MultiHeadAttention",
    "LSTM", "GRU", "RNN", "Loop", "Scan", "If", "Gather", "MaxPool", "AveragePool",
    "GlobalAveragePool", "Resize", "Softmax", "TopK", "NonMaxSuppression", "Concat",
    "LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
    "RMSNormalization", "QLinearConv", "ConvInteger", "MatMulInteger", "QLinearMatMul",
))  # fmt: skip
"""Operators by which a block is known; the others follow one of these."""


@dataclass(frozen=True)
class Block:
    """Nodes in one box.

    Attributes
    ----------
    nodes
        Their numbers, those of all repetitions.
    times
        Number of repetitions.
    parts
        Nodes of one repetition, part by part.
    """

    nodes: tuple[int, ...]
    times: int
    parts: tuple[tuple[int, ...], ...]


def blocks_of(names: Sequence[str], before: Sequence[Sequence[int]], most: int = 32) -> list[Block]:
    """Group nodes into blocks that follow each other, so that edges lead from block to block.

    Parameters
    ----------
    names
        The operator of each node.
    before
        For each node those whose results it takes.
    most
        Most blocks.

    Examples
    --------
    >>> layer = ["MatMul", "Add", "Relu"]
    >>> found = blocks_of([*(4 * layer), "Softmax"], [[], *([i] for i in range(12))])
    >>> [(block.times, len(block.nodes)) for block in found]
    [(4, 12), (1, 1)]
    """
    if not names:
        return []
    order = _compact_order(before)
    widths = _widths(order, before)
    segments = _segments(widths, max(2, len(order) // 24))
    atoms = _with_followers([tuple(order[a:b]) for a, b in segments], names)
    blocks = _repeated([Block(atom, 1, (atom,)) for atom in atoms], names)
    width_after = {order[place]: width for place, width in enumerate(widths[:-1])}
    return _merged(blocks, width_after, len(order), most)


def _compact_order(before: Sequence[Sequence[int]]) -> list[int]:
    """Return an order in which each node comes shortly before the first one that needs it."""
    done = [False] * len(before)
    is_used = [False] * len(before)
    for nodes in before:
        for node in nodes:
            is_used[node] = True
    order: list[int] = []
    for last in (i for i, used in enumerate(is_used) if not used):
        stack: list[tuple[int, Iterator[int]]] = [(last, iter(before[last]))]
        done[last] = True
        while stack:
            node, rest = stack[-1]
            following = next((i for i in rest if not done[i]), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                done[following] = True
                stack.append((following, iter(before[following])))
    return order


def _widths(order: Sequence[int], before: Sequence[Sequence[int]]) -> list[int]:
    """Return for each place in the order the number of nodes up to it that later ones need."""
    place = {node: i for i, node in enumerate(order)}
    last = [0] * len(order)
    for node, needed in enumerate(before):
        for other in needed:
            last[place[other]] = max(last[place[other]], place[node])
    change = [0] * (len(order) + 1)
    for start, stop in enumerate(last):
        if stop > start:
            change[start] += 1
            change[stop] -= 1
    return [int(width) for width in np.cumsum(change)]


def _segments(widths: Sequence[int], largest: int) -> list[tuple[int, int]]:
    """Cut at all places that one value passes, and long parts at wider places, too."""
    found = [(0, len(widths) - 1)]
    for width in range(1, _WIDEST_CUT):
        finer: list[tuple[int, int]] = []
        for start, stop in found:
            is_whole = width > 1 and stop - start <= largest
            places = () if is_whole else range(start, stop - 1)
            ends = [place + 1 for place in places if widths[place] <= width]
            finer += pairwise([start, *ends, stop])
        found = finer
    return found


def _with_followers(
    segments: Sequence[tuple[int, ...]], names: Sequence[str]
) -> list[tuple[int, ...]]:
    """Append activations and other small parts to the part before them."""
    found: list[tuple[int, ...]] = []
    for segment in segments:
        is_light = len(segment) <= 3 and not any(names[i] in HEAVY for i in segment)
        if found and is_light:
            found[-1] += segment
        else:
            found.append(segment)
    return found


def _repeated(blocks: list[Block], names: Sequence[str]) -> list[Block]:
    """Collapse equal blocks, or sequences of them, that follow each other."""
    kinds: dict[object, int] = {}
    keys = [kinds.setdefault(tuple(names[i] for i in b.nodes), len(kinds)) for b in blocks]
    for _ in range(_REPETITIONS):
        start, period, times = _best_repetition(np.array(keys))
        if times < 2:
            break
        stop = start + period * times
        nodes = tuple(i for block in blocks[start:stop] for i in block.nodes)
        parts = tuple(block.nodes for block in blocks[start : start + period])
        kind = kinds.setdefault((times, tuple(keys[start : start + period])), len(kinds))
        blocks[start:stop], keys[start:stop] = [Block(nodes, times, parts)], [kind]
    return blocks


def _best_repetition(keys: np.ndarray) -> tuple[int, int, int]:
    """Return start, period and number of the repetitions that save most; the number may be 0."""
    best, saved = (0, 0, 0), 0
    for period in range(1, min(_LONGEST_PERIOD, len(keys) // 2) + 1):
        equal = np.concatenate([[False], keys[:-period] == keys[period:], [False]])
        starts, stops = np.flatnonzero(np.diff(equal)).reshape(-1, 2).T
        if not len(starts):
            continue
        run = int(np.argmax(stops - starts))
        again = int(stops[run] - starts[run]) // period
        if again * period > saved:
            # What precedes the repetitions may match their end: the last phase has whole blocks.
            start = int(stops[run]) - again * period
            best, saved = (start, period, again + 1), again * period
    return best


def _merged(
    blocks: list[Block], width_after: Mapping[int, int], total: int, most: int
) -> list[Block]:
    """Join neighbours to blocks about as long as the longest that repeats, at wide cuts first."""
    units = [len(block.nodes) // block.times for block in blocks if block.times > 1]
    size = max([3, total // most, *units])
    blocks = _joined_at_cuts(blocks, width_after, size, with_repeated=False)
    while len(blocks) > most:
        size *= 2
        blocks = _joined_at_cuts(blocks, width_after, size, with_repeated=size > total // 4)
    return blocks


def _joined_at_cuts(
    blocks: list[Block], width_after: Mapping[int, int], size: int, with_repeated: bool
) -> list[Block]:
    for width in range(_WIDEST_CUT + 1, 0, -1):
        joined: list[Block] = []
        for block in blocks:
            last = joined[-1] if joined else None
            if (
                last is not None
                and width_after[last.nodes[-1]] >= width
                and (with_repeated or last.times == block.times == 1)
                and len(last.nodes) + len(block.nodes) <= size
            ):
                nodes = last.nodes + block.nodes
                joined[-1] = Block(nodes, 1, (nodes,))
            else:
                joined.append(block)
        blocks = joined
    return blocks
