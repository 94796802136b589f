"""Rotary position embedding: pairs of features are turned by an angle that grows with position."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.tensor.type import integer_dtypes
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.rotary_ops import RotaryEmbedding


def rotary_embedding(
    x: Any, cos: Any, sin: Any, positions: Any = None, *, interleaved: bool = False
) -> TensorVariable:
    """Turn pairs of features by angles that depend on the position.

    A pair (a, b) becomes (a cos - b sin, b cos + a sin), so that the product of a query and a key
    depends on the distance between their positions. Exported as one ``RotaryEmbedding`` from opset
    23 on, else as elementary operators.

    Parameters
    ----------
    x
        Floats of shape (batch, heads, length, size).
    cos, sin
        Cosine and sine of the angles: of shape (positions, pairs) with the positions given, else
        (length, pairs) or (batch, length, pairs). `rotary_tables` makes such. Where there are fewer
        pairs than in x, its last features stay as they are.
    positions
        Integers of shape (batch, length): the row of the tables for each element of x.
    interleaved
        Whether neighbours make a pair, or the first feature of one half and of the other.

    Raises
    ------
    TypeError, ValueError
        If dtypes, ranks or known sizes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor_onnx
    >>> cos, sin = rotary_tables(2, 2)
    >>> x = np.ones((1, 1, 2, 2))
    >>> rotary_embedding(x, cos, sin).eval(mode="ONNX").round(4)
    array([[[[ 1.    ,  1.    ],
             [-0.3012,  1.3818]]]])
    """
    x, cos, sin = (pt.as_tensor(v) for v in (x, cos, sin))
    dtypes = [v.type.dtype for v in (x, cos, sin)]
    if len({*dtypes}) > 1 or not dtypes[0].startswith("float"):
        raise TypeError(f"rotary_embedding takes floats of one dtype; got {dtypes}")
    ranks = [v.type.ndim for v in (x, cos, sin)]
    if ranks not in ([4, 2, 2], [4, 3, 3]) or (positions is not None and ranks[1] != 2):
        raise ValueError(
            "rotary_embedding takes x of rank 4 and tables of rank 2, or of rank 3 without "
            f"positions; got {ranks}"
        )
    half, size = cos.type.shape[-1], x.type.shape[3]
    if half is None and size is not None:
        half = size // 2
    if half is None or (size is not None and 2 * half > size):
        raise ValueError(
            f"rotary_embedding needs a known number of pairs, at most half of the size of x; got "
            f"tables of width {half} for a size of {size}"
        )
    op = RotaryEmbedding(interleaved=bool(interleaved), half=half)
    if positions is None:
        return op(x, *(table[None] if ranks[1] == 2 else table for table in (cos, sin)))
    ids = pt.as_tensor(positions)
    if ids.type.ndim != 2 or ids.type.dtype not in integer_dtypes:
        raise TypeError(f"rotary_embedding takes positions as a matrix of integers; got {ids.type}")
    return op(x, cos, sin, ids)


def rotary_tables(
    length: int, size: int, *, base: float = 10000.0, dtype: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine of the angle of each position p and pair i: p / base**(2 i / size).

    Parameters
    ----------
    length
        Number of positions.
    size
        Number of features that are turned, an even number.
    base
        How fast the angles become smaller from pair to pair.
    dtype
        ``floatX`` unless given.

    Examples
    --------
    >>> cos, sin = rotary_tables(3, 4)
    >>> cos.shape, cos[0].tolist()
    ((3, 2), [1.0, 1.0])
    """
    angles = np.outer(np.arange(length), base ** (-np.arange(0, size, 2) / size))
    wanted = dtype or config.floatX
    return np.cos(angles).astype(wanted), np.sin(angles).astype(wanted)
