"""Activation functions of networks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.builder import Builder
from pytensor_onnx.nn.base import NetworkOp
from pytensor_onnx.passes.exact import accept_absolute_error


class Sigmoid(NetworkOp):
    """The logistic function, whose absolute error matters and not the relative one of its tail."""

    __props__ = ()

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Use the scalar operation."""
        return [pt.sigmoid(x)]

    def emit(self, onnx: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator; in float32 an absolute error of 2e-7 is good enough."""
        y = onnx.Sigmoid(x)
        if y.dtype == ir.DataType.FLOAT:
            accept_absolute_error(y.producer())
        return y

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Multiply by ``y * (1 - y)``."""
        (y,), (gradient,) = outputs, output_grads
        return [gradient * (y * (np.asarray(1, y.type.dtype) - y))]


def sigmoid(x: Any) -> TensorVariable:
    """Apply the logistic function as networks use it, exported as one ``Sigmoid``.

    `pytensor.tensor.sigmoid` has the same values, but is exported with an accurate left tail: the
    operator of ONNX Runtime has an absolute error of 2e-7 in float32, and is 0 from about -17 on.

    Parameters
    ----------
    x
        Floats of any shape.

    Examples
    --------
    >>> sigmoid([0.0, 30.0]).eval(mode="ONNX")
    array([0.5, 1. ])
    """
    return Sigmoid()(as_floats(x, "sigmoid"))


def silu(x: Any) -> TensorVariable:
    """Return ``x * sigmoid(x)``, also known as swish, exported as ``Sigmoid`` and ``Mul``.

    Parameters
    ----------
    x
        Floats of any shape. In float32 the error in ONNX Runtime is up to ``2e-7 * |x|``.

    Examples
    --------
    >>> silu([0.0, 50.0]).eval(mode="ONNX")
    array([ 0., 50.])
    """
    x = as_floats(x, "silu")
    return x * Sigmoid()(x)


def swish(x: Any, beta: float = 1.0) -> TensorVariable:
    """Return ``x * sigmoid(beta * x)``; see `silu`.

    Parameters
    ----------
    x
        Floats of any shape.
    beta
        Steepness of the gate.
    """
    x = as_floats(x, "swish")
    return x * Sigmoid()(np.asarray(beta, x.type.dtype) * x if beta != 1 else x)


def as_floats(x: Any, name: str) -> TensorVariable:
    """Return a tensor of floats.

    Raises
    ------
    TypeError
        If it is not one.
    """
    x = pt.as_tensor(x)
    if x.type.dtype not in ("float16", "float32", "float64"):
        raise TypeError(f"{name} takes an array of floats; got one of {x.type.dtype}")
    return x
