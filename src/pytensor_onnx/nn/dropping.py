"""Dropout, which is nothing in a network that predicts."""

from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.activations import as_floats


def dropout(x: Any, rate: float, kept: Any = None) -> TensorVariable:
    """Drop some elements in training; leave no trace of it in prediction.

    Parameters
    ----------
    x
        Floats of any shape.
    rate
        The fraction of elements that are dropped, at least 0 and less than 1.
    kept
        In training, which elements stay: booleans of a shape that broadcasts against x, drawn with
        a probability of ``1 - rate``; from a generator of PyTensor's, which is then part of the
        state of a training step, or as an input, by whoever trains. None in prediction.

    Returns
    -------
    TensorVariable
        In prediction x itself. In training ``x / (1 - rate)`` where an element stays, else 0.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats, kept not one of booleans, or the rate out of range.

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
    array([2., 4., 6.])
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
