"""The linear layer of networks."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor import TensorLike
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.conv_arguments import shape_of


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
