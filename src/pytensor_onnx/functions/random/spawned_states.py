"""Compute the states of spawned generators from blocks of the parent's stream."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pytensor_onnx.functions.random.streams import block, keys


def spawned(state: Variable, count: int) -> list[Variable]:
    """Return the next state, and states whose keys are blocks of streams of the first.

    Threefry permutes the blocks of a key, so that all keys from one state differ.
    """
    after, key, counters = keys(state, pt.constant(np.int64(count)))
    x, y = block(key, counters, 1)
    states = pt.specify_shape(pt.stack([x, y, pt.zeros_like(x)], axis=1), (count, 3))
    return [after, *(states[i] for i in range(count))]
