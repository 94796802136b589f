"""Dropout, the identity in prediction."""

from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.activations import as_floats


def dropout(x: Any, rate: float, kept: Any = None) -> TensorVariable:
    """Drop random elements in training; return x unchanged in prediction.

    Parameters
    ----------
    x
        Floats of any shape.
    rate
        The fraction of elements that are dropped, at least 0 and less than 1.
    kept
        Mask of the elements to keep in training: booleans that broadcast against x and are True
        with a probability of ``1 - rate``. Draw it from a PyTensor generator, which is then part of
        the state of a training step, or make it an input. None in prediction.

    Returns
    -------
    TensorVariable
        In prediction x itself. In training ``x / (1 - rate)`` for the kept elements, else 0.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats, kept is not boolean, or the rate is out of range.

    Examples
    --------
    >>> x = pt.vector("x")
    >>> dropout(x, 0.5) is x
    True
    >>> dropout(x, 0.5, [True, False]).eval({x: [1.0, 2.0]}, mode="ONNX")
    array([2., 0.])
    >>> rng = pt.random.shared_rng(seed=0)
    >>> next_rng, kept = rng.bernoulli(0.5, size=x.shape)
    >>> dropout(x, 0.5, kept.astype(bool)).eval({x: [1.0, 2.0, 3.0]}, mode="ONNX")
    array([0., 4., 6.])
    """
    x = as_floats(x, "dropout")
    if not 0 <= rate < 1:
        raise ValueError(f"rate={rate} must be at least 0 and less than 1")
    if kept is None:
        return x
    kept = pt.as_tensor(kept)
    if kept.type.dtype != "bool":
        raise TypeError(f"kept must be an array of booleans; got one of {kept.type.dtype}")
    scale = pt.constant(1 / (1 - rate), dtype=x.type.dtype)
    return pt.switch(kept, x * scale, pt.zeros_like(x))
