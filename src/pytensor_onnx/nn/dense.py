"""Dense layers and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.activations import as_floats
from pytensor_onnx.nn.conv import shape_of


def linear(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> TensorVariable:
    """Multiply the last axis by a matrix and add a vector: ``input @ weight.T + bias``.

    Parameters
    ----------
    input
        Floats (..., I).
    weight
        Matrix (O, I), one row for each output feature, as other frameworks store it.
    bias
        Vector (O,), optional.

    Returns
    -------
    TensorVariable
        Array (..., O). For a matrix, the model has one ``Gemm``.

    Raises
    ------
    TypeError
        If the dtype of an array is not a float.
    ValueError
        If ranks or known sizes do not fit.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> from pytensor_onnx.nn import linear
    >>> x, w, b = pt.fmatrix("x"), pt.fmatrix("w"), pt.fvector("b")
    >>> [node.op_type for node in export_onnx([x, w, b], linear(x, w, b)).model.graph]
    ['Gemm']
    """
    x, matrix = pt.as_tensor(input), pt.as_tensor(weight)
    vectors = [] if bias is None else [pt.as_tensor(bias)]
    wanted = [("input", x, None), ("weight", matrix, 2), *(("bias", v, 1) for v in vectors)]
    for what, value, rank in wanted:
        if value.type.dtype not in ("float16", "float32", "float64"):
            raise TypeError(
                f"linear: {what} {value} must be an array of floats; it has dtype "
                f"{value.type.dtype}"
            )
        if value.type.ndim != rank and (rank is not None or value.type.ndim < 1):
            raise ValueError(
                f"linear: {what} {value} must have {rank or 'at least 1'} dimensions; it has "
                f"{value.type.ndim}"
            )
    (outputs, features), known = shape_of(matrix), x.type.shape[-1]
    if None not in (features, known) and features != known:
        raise ValueError(
            f"linear: the last axis of input has the size {known}, and weight takes {features}; "
            f"its shape is (outputs, inputs) = {(outputs, features)}"
        )
    for vector in vectors:
        (length,) = shape_of(vector)
        if None not in (length, outputs) and length != outputs:
            raise ValueError(f"linear: bias has {length} elements, the result {outputs} features")
    dtype = str(np.result_type(*(value.type.dtype for _, value, _ in wanted)))
    result = pt.cast(x, dtype) @ pt.cast(matrix, dtype).T
    for vector in vectors:
        result = result + pt.cast(vector, dtype)
    return result


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
