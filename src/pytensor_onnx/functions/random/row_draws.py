"""Draw numbers that depend on the key of a row, and not on the place of the row in a table.

A row has the key of a seed and of the row; the numbers of a row are those of its first counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.ops.random.draws import Draw, DrawsOfRows, Threefry
from pytensor_onnx.ops.random.sampler_ops import KeyedSampler, Sampler

_COUNTERS = 2**32
"""Block numbers of counters of samplers, which follow those of words."""

_SAMPLERS = 0x9E3779B97F4A7C15
"""Second word of the keys of samplers."""


@dataclass(frozen=True)
class RowState:
    """The state of a generator of each row.

    Attributes
    ----------
    seed, keys
        The seed, 0-d, and the keys of the rows, a vector, both uint64.
    stream
        Number of the generator.
    draws
        Number of draws of each row, the size of the first axis.
    axis
        Axis of the rows in the drawn array, after the first.
    used
        Number of blocks that draws before have used in each row.
    """

    seed: V
    keys: V
    stream: int
    draws: int
    axis: int
    used: int = 0

    @property
    def type(self) -> Any:
        """Raise, as a loop takes the state of one generator.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError("its sampler is a loop over one generator")

    def drawn(self, op: Draw, shape: Sequence[V]) -> tuple[RowState, V]:
        """Return the next state, and an Op's draws of a shape."""
        others = self._others(shape)
        n = reduce(lambda a, b: a * b, others, 1)
        count = int(op.words(n))
        words, after = self._words(count, self.stream)
        numbers = DrawsOfRows(op, n)(words)
        return after, self._placed(numbers, others)

    def sampled(
        self, op: Sampler, shape: Sequence[V], parameters: Sequence[V]
    ) -> tuple[RowState, V]:
        """Return the next state, and the numbers of a sampler for parameters of a shape."""
        others = self._others(shape)
        count = reduce(lambda a, b: a * b, others, 1)
        words, after = self._words(count, _COUNTERS + self.stream)
        counters = self._placed(words, others)
        shape = [counters.shape[i] for i in range(len(shape))]
        flat = [pt.broadcast_to(x.astype("float64"), shape).flatten() for x in parameters]
        key = pt.stack([self.seed, pt.constant(np.uint64(_SAMPLERS))])
        numbers = KeyedSampler(op)(key, counters.flatten(), *flat)
        return after, pt.reshape(numbers, shape, ndim=len(shape))

    def _words(self, count: int, number: int) -> tuple[V, RowState]:
        """Return a number of words of each row, as a matrix, and the next state."""
        blocks = -(-count // 2)
        places = pt.constant(np.arange(self.used, self.used + blocks, dtype="uint64"))
        pair = Threefry()(
            self.seed, self.keys[:, None], places[None, :], pt.constant(np.uint64(number))
        )
        both = pt.stack(list(pair), axis=-1)
        words = pt.reshape(both, (self.keys.shape[0], 2 * blocks))[:, :count]
        return words, replace(self, used=self.used + blocks)

    def _others(self, shape: Sequence[V]) -> list[int]:
        """Return the sizes of the axes without the rows.

        Raises
        ------
        ValueError
            If one is unknown.
        """
        others = [n for i, n in enumerate(shape) if i not in (0, self.axis)]
        if not all(isinstance(n, pt.TensorConstant) for n in others):
            raise ValueError("the size of an axis other than that of the rows is not known")
        return [self.draws, *(int(n.data) for n in others)]

    def _placed(self, numbers: V, others: Sequence[int]) -> V:
        """Return numbers of rows, a matrix, in a shape with the axis of the rows in its place."""
        shaped = pt.reshape(numbers, (self.keys.shape[0], *others), ndim=1 + len(others))
        return pt.moveaxis(shaped, 0, self.axis)
