"""Activation functions of neural networks.

Each is exported as the ONNX operator of its name if the target has a kernel for the dtype,
otherwise as its formula: in float64, ONNX Runtime has few of them. In float32 the errors of ONNX
Runtime are up to 4e-7 times the largest of 1, ``|x|`` and the result, so that small values in a
tail may have no correct digit.
"""

from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.networks.activation_ops import Activation, PRelu, Relu, Sigmoid, Silu, like

SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def relu(x: Any) -> TensorVariable:
    """Return the maximum of x and 0, NaN for NaN, exported as ``Relu``.

    The gradient at zero is zero.

    Examples
    --------
    >>> relu([-1.0, 2.0]).eval(mode="ONNX")
    array([0., 2.])
    """
    return Relu()(as_floats(x, "relu"))


def leaky_relu(x: Any, alpha: float = 0.01) -> TensorVariable:
    """Return x, multiplied by alpha where it is negative, exported as ``LeakyRelu``.

    Examples
    --------
    >>> leaky_relu([-1.0, 2.0], alpha=0.5).eval(mode="ONNX")
    array([-0.5,  2. ])
    """
    return _activation("LeakyRelu", x, alpha=alpha)


def prelu(x: Any, slope: Any) -> TensorVariable:
    """Return x, multiplied by a slope where it is negative, exported as ``PRelu``.

    Parameters
    ----------
    x
        Floats of shape (N, C, ...), or of any shape for a single slope.
    slope
        A number, or a vector with one number for each channel.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats, or the slope does not fit it.

    Examples
    --------
    >>> prelu([[-1.0, -1.0]], [0.5, 2.0]).eval(mode="ONNX")
    array([[-0.5, -2. ]])
    """
    x = as_floats(x, "prelu")
    slope = pt.as_tensor(slope).astype(x.type.dtype)
    if slope.type.ndim > 1 or (slope.type.ndim == 1 and x.type.ndim < 2):
        raise ValueError(
            "prelu takes one slope, or a vector of one for each channel of an array (N, C, ...); "
            f"got slopes of {slope.type.ndim} and an array of {x.type.ndim} dimensions"
        )
    if slope.type.ndim == 1:
        slope = pt.shape_padright(slope, x.type.ndim - 2)
    return PRelu()(x, slope)


def elu(x: Any, alpha: float = 1.0) -> TensorVariable:
    """Return x, and ``alpha * (exp(x) - 1)`` where it is negative, exported as ``Elu``.

    Examples
    --------
    >>> elu([-50.0, 2.0]).eval(mode="ONNX")
    array([-1.,  2.])
    """
    return _activation("Elu", x, alpha=alpha)


def selu(x: Any) -> TensorVariable:
    """Return `elu` with the constants of self-normalising networks, exported as ``Selu``.

    Examples
    --------
    >>> selu([0.0, 1.0]).eval(mode="ONNX").round(6)
    array([0.      , 1.050701])
    """
    return _activation("Selu", x, alpha=SELU_ALPHA, gamma=SELU_GAMMA)


def celu(x: Any, alpha: float = 1.0) -> TensorVariable:
    """Return x, and ``alpha * (exp(x / alpha) - 1)`` where it is negative, exported as ``Celu``.

    Examples
    --------
    >>> celu([-100.0, 2.0], alpha=2.0).eval(mode="ONNX")
    array([-2.,  2.])
    """
    return _activation("Celu", x, alpha=alpha)


def gelu(x: Any, approximate: str = "none") -> TensorVariable:
    """Return x times the standard normal distribution function of x, exported as ``Gelu``.

    Parameters
    ----------
    x
        Floats of any shape.
    approximate
        ``"none"``, or ``"tanh"`` for
        ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``.

    Raises
    ------
    TypeError, ValueError
        If x is not an array of floats, or the approximation is unknown.

    Examples
    --------
    >>> gelu([0.0, 50.0]).eval(mode="ONNX")
    array([ 0., 50.])
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate={approximate!r} must be 'none' or 'tanh'")
    return _activation("Gelu", x, **({} if approximate == "none" else {"approximate": "tanh"}))


def sigmoid(x: Any) -> TensorVariable:
    """Return ``1 / (1 + exp(-x))`` as networks use it, exported as ``Sigmoid``.

    `pytensor.tensor.sigmoid` is the same function, but is exported with an accurate left tail: the
    operator of ONNX Runtime is 0 below about -17 in float32.

    Examples
    --------
    >>> sigmoid([0.0, 50.0]).eval(mode="ONNX")
    array([0.5, 1. ])
    """
    return Sigmoid()(as_floats(x, "sigmoid"))


def silu(x: Any) -> TensorVariable:
    """Return ``x * sigmoid(x)``, exported as ``Sigmoid`` and ``Mul``.

    Examples
    --------
    >>> silu([0.0, 50.0]).eval(mode="ONNX")
    array([ 0., 50.])
    """
    return Silu()(as_floats(x, "silu"))


def swish(x: Any, beta: float = 1.0) -> TensorVariable:
    """Return ``x * sigmoid(beta * x)``; see `silu`.

    Examples
    --------
    >>> swish([0.0, 50.0], beta=2.0).eval(mode="ONNX")
    array([ 0., 50.])
    """
    if beta == 1:
        return silu(x)
    x = as_floats(x, "swish")
    return x * Sigmoid()(like(x, beta) * x)


def mish(x: Any) -> TensorVariable:
    """Return ``x * tanh(log(1 + exp(x)))``, exported as ``Mish``.

    Examples
    --------
    >>> mish([0.0, 50.0]).eval(mode="ONNX")
    array([ 0., 50.])
    """
    return _activation("Mish", x)


def hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> TensorVariable:
    """Return ``alpha * x + beta`` clipped to [0, 1], exported as ``HardSigmoid``.

    Examples
    --------
    >>> hard_sigmoid([-5.0, 0.0, 1.0]).eval(mode="ONNX")
    array([0. , 0.5, 0.7])
    """
    return _activation("HardSigmoid", x, alpha=alpha, beta=beta)


def hard_swish(x: Any) -> TensorVariable:
    """Return ``x * hard_sigmoid(x, 1 / 6)``, exported as ``HardSwish``.

    Examples
    --------
    >>> hard_swish([-5.0, 0.0, 4.0]).eval(mode="ONNX")
    array([-0.,  0.,  4.])
    """
    return _activation("HardSwish", x)


def hard_tanh(x: Any, low: float = -1.0, high: float = 1.0) -> TensorVariable:
    """Return x clipped to two bounds, exported as ``Clip``.

    Examples
    --------
    >>> hard_tanh([-5.0, 0.5]).eval(mode="ONNX")
    array([-1. ,  0.5])
    """
    x = as_floats(x, "hard_tanh")
    return pt.clip(x, like(x, low), like(x, high))


def softplus(x: Any) -> TensorVariable:
    """Return ``log(1 + exp(x))``, exported as ``Softplus``.

    Examples
    --------
    >>> softplus([50.0]).eval(mode="ONNX")
    array([50.])
    """
    return pt.softplus(as_floats(x, "softplus"))


def softsign(x: Any) -> TensorVariable:
    """Return ``x / (1 + abs(x))``, exported as ``Softsign``.

    Examples
    --------
    >>> softsign([-1.0, 3.0]).eval(mode="ONNX")
    array([-0.5 ,  0.75])
    """
    return _activation("Softsign", x)


def thresholded_relu(x: Any, alpha: float = 1.0) -> TensorVariable:
    """Return x where x is larger than alpha, else 0, exported as ``ThresholdedRelu``.

    Examples
    --------
    >>> thresholded_relu([0.5, 1.5]).eval(mode="ONNX")
    array([0. , 1.5])
    """
    return _activation("ThresholdedRelu", x, alpha=alpha)


def softmax(x: Any, axis: int = -1) -> TensorVariable:
    """Return the exponentials divided by their sum along an axis, exported as ``Softmax``.

    Examples
    --------
    >>> softmax([[0.0, 0.0]]).eval(mode="ONNX")
    array([[0.5, 0.5]])
    """
    return pt.special.softmax(as_floats(x, "softmax"), axis=axis)


def log_softmax(x: Any, axis: int = -1) -> TensorVariable:
    """Return the logarithm of `softmax`, exported as ``LogSoftmax``.

    Examples
    --------
    >>> log_softmax([[0.0, 0.0]]).eval(mode="ONNX").round(6)
    array([[-0.693147, -0.693147]])
    """
    return pt.special.log_softmax(as_floats(x, "log_softmax"), axis=axis)


def as_floats(x: Any, name: str) -> TensorVariable:
    """Convert an argument of a function to a tensor of floats.

    Raises
    ------
    TypeError
        If its dtype is not a float.
    """
    x = pt.as_tensor(x)
    if x.type.dtype not in ("float16", "float32", "float64"):
        raise TypeError(f"{name} takes an array of floats; got one of {x.type.dtype}")
    return x


def _activation(operator: str, x: Any, **attributes: float | str) -> TensorVariable:
    values = {k: v if isinstance(v, str) else float(v) for k, v in attributes.items()}
    return Activation(operator=operator, attributes=tuple(values.items()))(as_floats(x, operator))
