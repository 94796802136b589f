"""Choices that replace results of operators: rows of attention without scores, empty products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.scalar.basic import EQ, Cast, IsNan
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.special import Softmax
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.importing.registry.known_values import known
from pytensor_onnx.importing.registry.operator_imports import onnx_import
from pytensor_onnx.rewriting.engine.predicates import elementwise


@onnx_import("Where")
def where(condition: TensorVariable, x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Choose elements of two operands.

    Exports of this package replace products over an axis of size zero by zeros, since ONNX Runtime
    leaves them as they are. PyTensor's products need no such choice.

    Rows of a softmax without finite scores are NaN, and attention replaces them by zeros. Their
    scores become zeros too, so that their gradients are zeros and not NaN.
    """
    value = known(x)
    if value is None:
        return pt.switch(condition, x, y)
    if not value.any() and _says_that_a_product_is_empty(condition, y):
        return y
    shares = y.owner.inputs[0] if elementwise(y, Cast) else y
    op = getattr(shares.owner, "op", None)
    if not isinstance(op, Softmax):
        return pt.switch(condition, x, y)
    (scores,) = shares.owner.inputs
    if elementwise(condition, IsNan) and condition.owner.inputs[0] in (y, shares):
        top = pt.max(scores, axis=op.axis, keepdims=True)
        condition = pt.isnan(top) | pt.isinf(top)
    elif not _is_one_for_rows(condition, scores, op.axis):
        return pt.switch(condition, x, y)
    shares = op(pt.switch(condition, pt.zeros_like(scores), scores))
    return pt.switch(condition, x, shares.astype(y.type.dtype))


def _is_one_for_rows(condition: TensorVariable, y: TensorVariable, axis: Any) -> bool:
    """Return whether a condition broadcasts along axes, and has no axis that others lack."""
    if condition.type.ndim > y.type.ndim:
        return False
    sizes = [1] * (y.type.ndim - condition.type.ndim) + list(condition.type.shape)
    is_alike = all(size in (1, n) for size, n in zip(sizes, y.type.shape, strict=True))
    return is_alike and all(sizes[a] == 1 for a in np.atleast_1d(axis))


def _says_that_a_product_is_empty(condition: TensorVariable, y: TensorVariable) -> bool:
    """Return whether a condition compares the inner size of a product of matrices with zero."""
    condition = _without_axes(condition)
    core = getattr(getattr(y.owner, "op", None), "core_op", getattr(y.owner, "op", None))
    is_product = isinstance(core, Dot) or type(core).__name__ == "Matmul"
    if not is_product or not elementwise(condition, EQ):
        return False
    size, zero = map(_without_axes, condition.owner.inputs)
    value = known(zero)
    if value is None or value.size != 1 or value.any():
        return False
    left, right = y.owner.inputs
    inner = [v.shape[v.type.ndim + axis] for v, axis in ((left, -1), (right, -2))]
    return any(equal_computations([size], [wanted]) for wanted in inner)


def _without_axes(variable: Any) -> Variable:
    """Return the array under axes of size one that are added to it."""
    while variable.owner is not None and len(variable.owner.inputs) == 1:
        if not isinstance(variable.owner.op, DimShuffle | MakeVector):
            break
        if isinstance(variable.owner.op, DimShuffle) and variable.owner.op.drop:
            break
        (variable,) = variable.owner.inputs
    return variable
