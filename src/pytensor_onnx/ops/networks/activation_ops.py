"""Define the Ops of activation functions by formulas and ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.traversal import accept_absolute_error
from pytensor_onnx.operators.inference import dtype_of
from pytensor_onnx.ops.networks.network_op import KeepsShape

type Expression = Callable[..., TensorVariable]
type Gradient = Sequence[Variable]


@dataclass(frozen=True)
class Formula:
    """Formula of an operator, with its limits in the ONNX standard.

    Attributes
    ----------
    value
        Expression of the operand and the attributes.
    slope
        Its derivative; by default PyTensor's.
    opset
        The first opset that has the operator.
    dtypes
        The dtypes of the operator in the standard.
    """

    value: Expression
    slope: Expression | None = None
    opset: int = 1
    dtypes: frozenset[ir.DataType] = frozenset(
        {ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE}
    )


class Activation(KeepsShape):
    """ONNX operator of one operand, with float attributes or a text."""

    __props__ = ("operator", "attributes")
    operator: str
    attributes: tuple[tuple[str, float | str], ...]

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Apply the formula."""
        return [FORMULAS[self.operator].value(x, **dict(self.attributes))]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value | None:
        """Emit the operator, if the opset and the dtype have it."""
        formula = FORMULAS[self.operator]
        if build.scope.opset_version < formula.opset or dtype_of(x) not in formula.dtypes:
            return None
        return getattr(build, self.operator)(x, **dict(self.attributes))

    def pullback(
        self, inputs: Gradient, outputs: Gradient, output_grads: Gradient
    ) -> list[Variable]:
        """Multiply by the derivative."""
        slope = FORMULAS[self.operator].slope
        if slope is None:
            return super().pullback(inputs, outputs, output_grads)
        return [output_grads[0] * slope(inputs[0], **dict(self.attributes))]

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.attributes)
        return f"{self.operator}{{{options}}}"


class Relu(KeepsShape):
    """Maximum of a number and zero, NaN for NaN."""

    __props__ = ()

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Compare with zero."""
        return [pt.maximum(x, like(x, 0))]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.Relu(x)

    def pullback(
        self, inputs: Gradient, outputs: Gradient, output_grads: Gradient
    ) -> list[Variable]:
        """Pass the gradient where the result is positive."""
        (y,), (gradient,) = outputs, output_grads
        return [pt.switch(y > like(y, 0), gradient, like(y, 0))]


class PRelu(KeepsShape):
    """A number, multiplied by a slope if it is negative."""

    __props__ = ()

    def build_inner_graph(self, x: TensorVariable, slope: TensorVariable) -> list[Variable]:
        """Multiply the negative part."""
        return [pt.switch(x < like(x, 0), slope * x, x)]

    def emit(self, build: Builder, x: ir.Value, slope: ir.Value) -> ir.Value:
        """Emit the operator."""
        return build.PRelu(x, slope)


class Sigmoid(KeepsShape):
    """Logistic function with an accurate absolute error, without accuracy in its tail."""

    __props__ = ()

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Use the scalar operation."""
        return [pt.sigmoid(x)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit the operator; in float32 an absolute error of 2e-7 is accepted."""
        y = build.Sigmoid(x)
        if y.dtype == ir.DataType.FLOAT:
            accept_absolute_error(y)
        return y

    def pullback(
        self, inputs: Gradient, outputs: Gradient, output_grads: Gradient
    ) -> list[Variable]:
        """Multiply by ``y * (1 - y)``."""
        (y,), (gradient,) = outputs, output_grads
        return [gradient * (y * (like(y, 1) - y))]


class Silu(KeepsShape):
    """A number times its `Sigmoid`."""

    __props__ = ()

    def build_inner_graph(self, x: TensorVariable) -> list[Variable]:
        """Multiply."""
        return [x * Sigmoid()(x)]

    def emit(self, build: Builder, x: ir.Value) -> ir.Value:
        """Emit Sigmoid and Mul."""
        return build.Mul(x, Sigmoid().emit(build, x))

    def pullback(
        self, inputs: Gradient, outputs: Gradient, output_grads: Gradient
    ) -> list[Variable]:
        """Multiply by the derivative, in one operation."""
        return [SiluGradient()(*inputs, *outputs, *output_grads)]


class SiluGradient(KeepsShape):
    """Product of a gradient and the derivative of y = `Silu` (x), ``s + y * (1 - s)``.

    PyTensor would distribute y over the difference, and lose s beside a large y.
    """

    __props__ = ()

    def build_inner_graph(
        self, x: TensorVariable, y: TensorVariable, gradient: TensorVariable
    ) -> list[Variable]:
        """Write the gradient as a multiple of ``s``, whose digits a large term would absorb."""
        s = Sigmoid()(x)
        return [gradient * s * (like(x, 1) + x * (like(x, 1) - s))]

    def emit(self, build: Builder, x: ir.Value, y: ir.Value, gradient: ir.Value) -> ir.Value:
        """Emit the formula with the sigmoid and the product of the forward pass."""
        s = Sigmoid().emit(build, x)
        return build.Mul(gradient, build.Add(s, build.Mul(y, build.Sub(1, s))))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return which inputs have a gradient: y is a function of x."""
        return [[True], [False], [True]]

    def pullback(
        self, inputs: Gradient, outputs: Gradient, output_grads: Gradient
    ) -> list[Variable]:
        """Multiply by the second derivative, ``s (1 - s) (2 + x (1 - 2 s))``."""
        (x, y, gradient), (cotangent,) = inputs, output_grads
        s = Sigmoid()(x)
        rest = like(x, 1) - s
        second = s * rest * (like(x, 2) + x * (rest - s))
        return [cotangent * gradient * second, disconnected_type(), self(x, y, cotangent)]


def like(x: TensorVariable, number: float) -> np.ndarray:
    """Return a number in the dtype of an array."""
    return np.asarray(number, dtype=x.type.dtype)


def _elu(x: TensorVariable, alpha: float) -> TensorVariable:
    # For large x, the unselected branch must not overflow: its gradient would be NaN.
    zero = like(x, 0)
    return pt.switch(x > zero, x, like(x, alpha) * pt.expm1(pt.minimum(x, zero)))


def _selu(x: TensorVariable, alpha: float, gamma: float) -> TensorVariable:
    return like(x, gamma) * _elu(x, alpha)


def _celu(x: TensorVariable, alpha: float) -> TensorVariable:
    zero, scale = like(x, 0), like(x, alpha)
    return pt.switch(x > zero, x, scale * pt.expm1(pt.minimum(x, zero) / scale))


def _leaky_relu(x: TensorVariable, alpha: float) -> TensorVariable:
    return pt.switch(x < like(x, 0), like(x, alpha) * x, x)


def _leaky_relu_slope(x: TensorVariable, alpha: float) -> TensorVariable:
    return pt.switch(x < like(x, 0), like(x, alpha), like(x, 1))


def _thresholded_relu(x: TensorVariable, alpha: float) -> TensorVariable:
    return pt.switch(x > like(x, alpha), x, like(x, 0))


def _hard_sigmoid(x: TensorVariable, alpha: float, beta: float) -> TensorVariable:
    return pt.clip(like(x, alpha) * x + like(x, beta), like(x, 0), like(x, 1))


def _hard_swish(x: TensorVariable) -> TensorVariable:
    return x * _hard_sigmoid(x, 1 / 6, 0.5)


def _softsign(x: TensorVariable) -> TensorVariable:
    return x / (like(x, 1) + pt.abs(x))


def _mish(x: TensorVariable) -> TensorVariable:
    return x * pt.tanh(pt.softplus(x))


def _gelu(x: TensorVariable, approximate: str = "none") -> TensorVariable:
    if approximate == "tanh":
        return x * pt.sigmoid(like(x, 2) * _gelu_argument(x))
    return like(x, 0.5) * x * pt.erfc(like(x, -np.sqrt(0.5)) * x)


def _gelu_slope(x: TensorVariable, approximate: str = "none") -> TensorVariable:
    one, half = like(x, 1), like(x, 0.5)
    if approximate == "tanh":
        gate = Sigmoid()(like(x, 2) * _gelu_argument(x))
        inner = like(x, 2 * np.sqrt(2 / np.pi)) * (one + like(x, 3 * 0.044715) * x * x)
        return gate + x * gate * (one - gate) * inner
    density = like(x, np.sqrt(0.5 / np.pi)) * pt.exp(-half * x * x)
    return half + half * pt.erf(like(x, np.sqrt(0.5)) * x) + x * density


def _gelu_argument(x: TensorVariable) -> TensorVariable:
    return like(x, np.sqrt(2 / np.pi)) * (x + like(x, 0.044715) * x * x * x)


FORMULAS = {
    "Celu": Formula(_celu, opset=12, dtypes=frozenset({ir.DataType.FLOAT})),
    "Elu": Formula(_elu),
    "Gelu": Formula(_gelu, _gelu_slope, opset=20),
    "HardSigmoid": Formula(_hard_sigmoid),
    "HardSwish": Formula(_hard_swish, opset=14),
    "LeakyRelu": Formula(_leaky_relu, _leaky_relu_slope),
    "Mish": Formula(_mish, opset=18),
    "Selu": Formula(_selu),
    "Softsign": Formula(_softsign),
    "ThresholdedRelu": Formula(_thresholded_relu),
}
"""Formulas of the operators by name."""
