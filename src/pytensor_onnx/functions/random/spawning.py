"""States of new generators from the blocks of one."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pytensor_onnx.ops.draws import RandomBits


def spawned(state: Variable, count: int) -> list[Variable]:
    """Return the next state, and states whose keys are the blocks of the first.

    Threefry permutes the blocks of a key, so that all keys from one state differ.
    """
    after, bits = RandomBits()(state, pt.constant(np.int64(count)))
    half = np.uint64(2**32)
    words = [bits // half, bits & (half - np.uint64(1))]
    zeros = pt.zeros((count, 2), "uint32")
    keys = pt.stack(words, axis=1).astype("uint32")
    states = pt.specify_shape(pt.concatenate([keys, zeros], axis=1), (count, 4))
    return [after, *(states[i] for i in range(count))]
