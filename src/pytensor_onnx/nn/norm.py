"""Normalisations."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.nn.activations import as_floats
from pytensor_onnx.ops.networks import norm_ops
from pytensor_onnx.ops.networks.network_op import sizes_of
from pytensor_onnx.ops.networks.norm_ops import BatchNorm, BatchNormOfBatch


def batch_norm(
    x: Any, gamma: Any, beta: Any, mean: Any, var: Any, epsilon: float = 1e-5
) -> TensorVariable:
    """Normalise each channel by a given mean and variance, as a trained network does.

    Parameters
    ----------
    x
        Floats of shape ``(N, C, *S)``.
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
        ``BatchNormalization``, which is folded into a preceding convolution.

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
    return BatchNorm(epsilon=float(epsilon))(*_operands(x, gamma, beta, mean, var))


def _operands(x: Any, *vectors: Any) -> list[TensorVariable]:
    """Return an array and the parameters of its channels, as batch norms take them."""
    x = as_floats(x, "batch_norm")
    if x.type.ndim < 2:
        raise ValueError(f"batch_norm takes an array (N, C, ...); got {x.type.ndim} dimensions")
    size = x.type.shape[1]
    parameters = [
        channel_vector(value, name, size, x.type.dtype)
        for name, value in zip(("gamma", "beta", "mean", "var"), vectors, strict=True)
    ]
    return [x, *parameters]


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
        Floats of shape ``(N, C, *S)``.
    gamma, beta
        Scale and shift of each channel, of shape (C,).
    running_mean, running_var
        Running statistics for `batch_norm`, of shape (C,).
    momentum
        Weight of the batch in the new running statistics.
    epsilon
        Added to the variance.

    Returns
    -------
    y, new_running_mean, new_running_var : TensorVariable
        The result and ``(1 - momentum) * running + momentum * batch``. The variance of the batch is
        the mean of squared deviations, not the unbiased estimate.

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
    var = pt.sqr(x - norm_ops.along_channels(mean, x)).mean(axis=others)
    op = BatchNormOfBatch(epsilon=float(epsilon))
    y = op(*_operands(x, gamma, beta, mean, var))
    weight, rest = (np.asarray(value, dtype=dtype) for value in (momentum, 1 - momentum))
    running = [
        channel_vector(value, name, x.type.shape[1], dtype)
        for name, value in (("running_mean", running_mean), ("running_var", running_var))
    ]
    new_mean, new_var = (
        rest * old + weight * new for old, new in zip(running, (mean, var), strict=True)
    )
    return y, new_mean, new_var


def layer_norm(
    x: Any, gamma: Any = None, beta: Any = None, axis: int = -1, epsilon: float = 1e-5
) -> TensorVariable:
    """Normalise an array over its last axes, exported as one ``LayerNormalization``.

    Parameters
    ----------
    x
        Floats of any shape.
    gamma, beta
        Scale and shift, with the shape of the normalised axes; optional.
    axis
        The first normalised axis; all later axes are normalised as well.
    epsilon
        Added to the variance.

    Returns
    -------
    TensorVariable
        ``gamma * (x - mean) / sqrt(var + epsilon) + beta``, where the variance is the mean of
        squared deviations. In float64 it is exported as the operators of this formula, because
        attributes such as epsilon are float32 in ONNX.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats with this axis, or a parameter does not have these sizes.

    Examples
    --------
    >>> import numpy as np
    >>> layer_norm(np.array([[1.0, 3.0], [5.0, 5.0]]), epsilon=0.25).eval(mode="ONNX").round(6)
    array([[-0.894427,  0.894427],
           [ 0.      ,  0.      ]])
    """
    x = as_floats(x, "layer_norm")
    n_axes = count_axes(x, axis, "layer_norm")
    shift = [] if beta is None else [over_axes(beta, "beta", x, n_axes)]
    return norm_ops.LayerNorm(n_axes=n_axes, epsilon=float(epsilon))(
        x, scale_or_ones(gamma, x, n_axes), *shift
    )


def rms_norm(x: Any, gamma: Any = None, axis: int = -1, epsilon: float = 1e-5) -> TensorVariable:
    """Divide an array by its root mean square over the last axes.

    Parameters
    ----------
    x, gamma, axis, epsilon
        As for `layer_norm`.

    Returns
    -------
    TensorVariable
        ``gamma * x / sqrt(mean(x ** 2) + epsilon)``, exported as one ``RMSNormalization`` from
        opset 23 on, as the operators of this formula before.

    Raises
    ------
    TypeError, ValueError
        As for `layer_norm`.

    Examples
    --------
    >>> rms_norm([[3.0, 4.0]], epsilon=0.0).eval(mode="ONNX").round(6)
    array([[0.848528, 1.131371]])
    """
    x = as_floats(x, "rms_norm")
    n_axes = count_axes(x, axis, "rms_norm")
    op = norm_ops.RMSNorm(n_axes=n_axes, epsilon=float(epsilon))
    return op(x, scale_or_ones(gamma, x, n_axes))


def instance_norm(x: Any, gamma: Any, beta: Any, epsilon: float = 1e-5) -> TensorVariable:
    """Normalise each channel of each element of a batch, exported as ``InstanceNormalization``.

    Parameters
    ----------
    x
        Floats of shape ``(N, C, *S)`` with one spatial axis at least.
    gamma, beta
        Scale and shift of each channel, of shape (C,).
    epsilon
        Added to the variance.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats with channels and a spatial axis, or a parameter is not a
        vector of its length.

    Examples
    --------
    >>> instance_norm([[[1.0, 3.0]]], [1.0], [2.0], epsilon=0.0).eval(mode="ONNX")
    array([[[1., 3.]]])
    """
    x = as_floats(x, "instance_norm")
    check_rank(x, "instance_norm", 3)
    return norm_ops.InstanceNorm(epsilon=float(epsilon))(
        x, *(channel_vector(v, n, x.type.shape[1], x.type.dtype) for n, v in named(gamma, beta))
    )


def group_norm(x: Any, groups: int, gamma: Any, beta: Any, epsilon: float = 1e-5) -> TensorVariable:
    """Normalise groups of channels of each element of a batch.

    Parameters
    ----------
    x
        Floats of shape ``(N, C, *S)``.
    groups
        Number of groups, which divides the number of channels.
    gamma, beta
        Scale and shift of each channel, of shape (C,).
    epsilon
        Added to the variance.

    Returns
    -------
    TensorVariable
        Array of the same shape, exported as one ``GroupNormalization`` for the target
        ``"portable"`` from opset 21 on. ONNX Runtime's is inaccurate for a large mean: for it, and
        before opset 21, groups become the channels of an ``InstanceNormalization``.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats with channels, a parameter does not have one element for
        each channel, or the number of groups does not divide the number of channels.

    Examples
    --------
    >>> group_norm([[1.0, 3.0, 5.0, 9.0]], 2, [1.0] * 4, [0.0] * 4, 0.0).eval(mode="ONNX")
    array([[-1.,  1., -1.,  1.]])
    """
    x = as_floats(x, "group_norm")
    check_rank(x, "group_norm", 2)
    channels = x.type.shape[1]
    if groups < 1 or (channels is not None and channels % groups):
        raise ValueError(f"{channels} channels cannot be divided into {groups} groups")
    return norm_ops.GroupNorm(groups=int(groups), epsilon=float(epsilon))(
        x, *(channel_vector(v, n, channels, x.type.dtype) for n, v in named(gamma, beta))
    )


def named(gamma: Any, beta: Any) -> list[tuple[str, Any]]:
    """Return the two parameters with their names."""
    return [("gamma", gamma), ("beta", beta)]


def check_rank(x: TensorVariable, name: str, least: int) -> None:
    """Raise if an array has fewer axes than a norm needs."""
    if x.type.ndim < least:
        axes = ["batch", "channels", "*spatial"][:least]
        raise ValueError(f"{name} takes an array ({', '.join(axes)}); got {x.type.ndim} dimensions")


def count_axes(x: TensorVariable, axis: int, name: str) -> int:
    """Return the number of axes from one on, for an axis counted from either end."""
    rank = x.type.ndim
    if not -rank <= axis < rank:
        raise ValueError(f"{name} along axis {axis} of an array of {rank} dimensions")
    return rank - axis % rank


def scale_or_ones(gamma: Any, x: TensorVariable, n_axes: int) -> TensorVariable:
    """Return a scale for the last axes, ones where none is given."""
    if gamma is not None:
        return over_axes(gamma, "gamma", x, n_axes)
    sizes = sizes_of(x, x.type.ndim - n_axes)
    if all(isinstance(size, int) for size in sizes):
        return pt.constant(np.ones(sizes, x.type.dtype))
    return pt.ones(sizes, dtype=x.type.dtype)


def over_axes(value: Any, name: str, x: TensorVariable, n_axes: int) -> TensorVariable:
    """Return a parameter of the shape of the last axes, in the dtype of the array."""
    parameter = pt.as_tensor(value)
    own, wanted = parameter.type.shape, x.type.shape[x.type.ndim - n_axes :]
    if len(own) != n_axes or any(
        None not in pair and len(set(pair)) > 1 for pair in zip(own, wanted, strict=True)
    ):
        raise ValueError(f"{name} has the shape {own}; it must have that of the axes, {wanted}")
    return parameter.astype(x.type.dtype)


def channel_vector(value: Any, name: str, size: int | None, dtype: str) -> TensorVariable:
    """Return a parameter with one number for each channel."""
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
