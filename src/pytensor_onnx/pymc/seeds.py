"""States of random generators from the seed that is an input of a file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.encoded import Decode

SEED = "seed"
"""Name of the input of a file that draws."""


def state_of_seed(seed: TensorVariable, stream: TensorVariable | int) -> TensorVariable:
    """Return the state of a generator whose key is the seed and the number of a stream.

    Parameters
    ----------
    seed
        int64, 0-d.
    stream
        Number of the stream.

    Examples
    --------
    >>> state_of_seed(pt.constant(2**32 + 5), 3).eval(mode="FAST_COMPILE")
    array([4294967301,          3,          0], dtype=uint64)
    """
    stream = pt.as_tensor(stream).astype("uint64")
    return pt.stack([seed.astype("uint64"), stream, pt.constant(np.uint64(0))])


def seeded(
    outputs: Sequence[Variable], seed: TensorVariable, number: TensorVariable | int, count: int
) -> list[Variable]:
    """Replace the generators of a graph by streams of a seed.

    Parameters
    ----------
    outputs
        The graphs.
    seed
        int64, 0-d.
    number
        Number of the first stream of the first generator.
    count
        Number of streams that each generator has.
    """
    generators = [v for v in graph_inputs(outputs) if isinstance(v.type, RandomType)]
    streams = {
        generator: Decode(generator.type)(state_of_seed(seed, number + i * count))
        for i, generator in enumerate(dict.fromkeys(generators))
    }
    return list(clone_replace(list(outputs), streams)) if streams else list(outputs)
