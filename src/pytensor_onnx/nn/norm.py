"""Normalisation of arrays by their mean and variance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.builder import Builder
from pytensor_onnx.inference import dtype_of
from pytensor_onnx.nn.activations import as_floats
from pytensor_onnx.nn.base import NetworkOp


class BatchNorm(NetworkOp):
    """Each channel of an array (N, C, *S), normalised by a mean and a variance that are given."""

    __props__ = ("epsilon",)
    epsilon: float

    def build_inner_graph(
        self,
        x: TensorVariable,
        gamma: TensorVariable,
        beta: TensorVariable,
        mean: TensorVariable,
        var: TensorVariable,
    ) -> list[Variable]:
        """Subtract the mean, divide by the deviation, scale and shift."""
        mean, scale = (_channels(v, x) for v in (mean, gamma / self._deviation(var)))
        return [(x - mean) * scale + _channels(beta, x)]

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        output_grads: Sequence[Variable],
    ) -> list[Variable]:
        """Sum over all axes but that of the channels, each sum once."""
        x, gamma, _, mean, var = inputs
        (gradient,) = output_grads
        inverse = 1 / self._deviation(var)
        others = [axis for axis in range(x.type.ndim) if axis != 1]
        total = gradient.sum(axis=others)
        along_x = (gradient * (x - _channels(mean, x))).sum(axis=others) * inverse
        scale = gamma * inverse
        half = np.asarray(0.5, dtype=x.type.dtype)
        return [
            gradient * _channels(scale, x),
            along_x,
            total,
            -total * scale,
            -half * along_x * scale * inverse,
        ]

    def emit(self, onnx: Builder, *inputs: ir.Value) -> ir.Value:
        """Emit the operator; what its attribute cannot hold of epsilon goes to the variance."""
        x, gamma, beta, mean, var = inputs
        if is_float32(self.epsilon, dtype_of(x)):
            return onnx.BatchNormalization(x, gamma, beta, mean, var, epsilon=self.epsilon)
        if var.const_value is None:
            var = onnx.Add(var, self.epsilon)
        else:
            var = onnx.constant(var.const_value.numpy() + self.epsilon)
        return onnx.BatchNormalization(x, gamma, beta, mean, var, epsilon=0.0)

    def _deviation(self, var: TensorVariable) -> TensorVariable:
        return pt.sqrt(var + np.asarray(self.epsilon, dtype=var.type.dtype))


def batch_norm(
    x: Any, gamma: Any, beta: Any, mean: Any, var: Any, epsilon: float = 1e-5
) -> TensorVariable:
    """Normalise each channel by a given mean and variance, as a trained network does.

    Parameters
    ----------
    x
        Floats of shape (N, C, *S).
    gamma, beta
        Scale and shift of each channel, of shape (C,).
    mean, var
        Running mean and variance of each channel, of shape (C,).
    epsilon
        Added to the variance.

    Returns
    -------
    TensorVariable
        ``gamma * (x - mean) / sqrt(var + epsilon) + beta``, exported as one
        ``BatchNormalization``, which goes into the weights of a convolution before it.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats with channels, or a parameter is not a vector of its length.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> y = batch_norm(x, [1.0], [0.0], [2.0], [4.0], epsilon=0.0)
    >>> y.eval({x: np.array([[6.0]])}, mode="ONNX")
    array([[2.]])
    """
    x = as_floats(x, "batch_norm")
    if x.type.ndim < 2:
        raise ValueError(f"batch_norm takes an array (N, C, ...); got {x.type.ndim} dimensions")
    size = x.type.shape[1]
    parameters = [
        _vector(value, name, size, x.type.dtype)
        for name, value in (("gamma", gamma), ("beta", beta), ("mean", mean), ("var", var))
    ]
    return BatchNorm(epsilon=float(epsilon))(x, *parameters)


def batch_norm_train(
    x: Any,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Normalise each channel by its mean and variance over the batch, as in training.

    Parameters
    ----------
    x
        Floats of shape (N, C, *S).
    gamma, beta
        Scale and shift of each channel, of shape (C,).
    running_mean, running_var
        What `batch_norm` will use in their stead, of shape (C,).
    momentum
        How much of the batch goes into the running statistics.
    epsilon
        Added to the variance.

    Returns
    -------
    y, new_running_mean, new_running_var : TensorVariable
        The result and ``(1 - momentum) * running + momentum * batch``. The variance of the batch is
        the mean of squares, not the unbiased estimate.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> x = pt.matrix("x")
    >>> y, mean, var = batch_norm_train(x, [1.0], [0.0], [0.0], [1.0], epsilon=0.0)
    >>> value = {x: np.array([[1.0], [3.0]])}
    >>> y.eval(value, mode="ONNX").ravel(), mean.eval(value, mode="ONNX")
    (array([-1.,  1.]), array([0.2]))
    """
    x = as_floats(x, "batch_norm_train")
    dtype = x.type.dtype
    others = [axis for axis in range(x.type.ndim) if axis != 1]
    mean = x.mean(axis=others)
    var = pt.sqr(x - _channels(mean, x)).mean(axis=others)
    y = batch_norm(x, gamma, beta, mean, var, epsilon)
    weight, rest = (np.asarray(value, dtype=dtype) for value in (momentum, 1 - momentum))
    running = [
        _vector(value, name, x.type.shape[1], dtype)
        for name, value in (("running_mean", running_mean), ("running_var", running_var))
    ]
    new_mean, new_var = (
        rest * old + weight * new for old, new in zip(running, (mean, var), strict=True)
    )
    return y, new_mean, new_var


def _vector(value: Any, name: str, size: int | None, dtype: str) -> TensorVariable:
    vector = pt.as_tensor(value)
    if vector.type.ndim != 1:
        raise ValueError(
            f"{name} must be a vector with a number for each channel; got {vector.type.ndim} "
            "dimensions"
        )
    length = vector.type.shape[0]
    if None not in (size, length) and size != length:
        raise ValueError(f"{name} has {length} numbers, but there are {size} channels")
    return vector.astype(dtype)


def _channels(vector: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return a vector over the channels in a shape that broadcasts against an array (N, C, *S)."""
    return vector.dimshuffle("x", 0, *["x"] * (x.type.ndim - 2))


def is_float32(number: float, dtype: ir.DataType) -> bool:
    """Return whether a float32 attribute holds a number as well as an array of a dtype does."""
    return dtype != ir.DataType.DOUBLE or float(np.float32(number)) == number
