"""States of random generators from the seed that is an input of a file."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


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
