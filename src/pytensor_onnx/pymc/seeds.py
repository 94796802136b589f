"""States of random generators from the seed that is an input of a file."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


def state_of_seed(seed: TensorVariable, stream: TensorVariable | int) -> TensorVariable:
    """Return the state of a generator whose key is the seed, at the start of a stream.

    Parameters
    ----------
    seed
        int64, 0-d.
    stream
        Number of the stream, below 2**32: the high word of the counter. A stream has 2**32 blocks.

    Examples
    --------
    >>> state_of_seed(pt.constant(2**32 + 5), 3).eval(mode="FAST_COMPILE")
    array([5, 1, 0, 3], dtype=uint32)
    """
    words = seed.astype("uint64")
    low, high = words.astype("uint32"), (words // np.uint64(2**32)).astype("uint32")
    zero = pt.constant(np.uint32(0))
    return pt.stack([low, high, zero, pt.as_tensor(stream).astype("uint32")])
