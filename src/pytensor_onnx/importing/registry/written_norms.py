"""Recognise layer norms and other norms that files write out in single operators.

PyTorch before opset 17, tf2onnx and Paddle write a layer norm as ReduceMean, Sub, Pow, ReduceMean,
Add, Sqrt, Div, Mul and Add. Runtimes fuse these nodes, but not the nodes of PyTensor's mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import onnx_ir as ir
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx import nn
from pytensor_onnx.importing.registry.known_values import known

type VariableOf = Callable[[ir.Value], Any]


class _Norm(NamedTuple):
    """The operands of a norm: the array, its scale, the number of axes, epsilon, and the kind."""

    x: TensorVariable
    scale: TensorVariable
    axes: int
    epsilon: float
    is_centred: bool


def written_norm(node: ir.Node, variable_of: VariableOf) -> TensorVariable | None:
    """Return the norm that ends in a node, or None.

    Parameters
    ----------
    node
        Node of the standard domain.
    variable_of
        Function of the operands of nodes that returns their variables.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, g, two, e = (ir.val(name) for name in ("x", "g", "two", "e"))
    >>> square = ir.node("Pow", [x, two]).outputs[0]
    >>> mean = ir.node("ReduceMean", [square], {"axes": [-1]})
    >>> root = ir.node("Sqrt", [ir.node("Add", [mean.outputs[0], e]).outputs[0]])
    >>> node = ir.node("Mul", [ir.node("Div", [x, root.outputs[0]]).outputs[0], g])
    >>> values = {
    ...     x: pt.fmatrix("x", shape=(None, 3)),
    ...     square: pt.fmatrix(),
    ...     g: pt.fvector("g", shape=(3,)),
    ...     two: pt.constant(2.0),
    ...     e: pt.constant(1e-5),
    ... }
    >>> print(written_norm(node, values.get).owner.op)
    RMSNorm{n_axes=1, epsilon=1e-05}
    """
    if node.op_type == "Mul":
        if any(_norm_with_shift(use.node, variable_of) for use in node.outputs[0].uses()):
            return None  # the shift ends the norm
        norm = _scaled(node, variable_of)
        if norm is None:
            return None
        if norm.is_centred:
            return nn.layer_norm(norm.x, norm.scale, None, -norm.axes, norm.epsilon)
        return nn.rms_norm(norm.x, norm.scale, -norm.axes, norm.epsilon)
    shifted = _norm_with_shift(node, variable_of) if node.op_type == "Add" else None
    if shifted is None:
        return None
    norm, shift = shifted
    return nn.layer_norm(norm.x, norm.scale, shift, -norm.axes, norm.epsilon)


def _norm_with_shift(node: ir.Node, variable_of: VariableOf) -> tuple[_Norm, TensorVariable] | None:
    if node.op_type != "Add" or node.domain not in ("", "ai.onnx"):
        return None
    for scaled, shift in _orders(node):
        product = _made_by(scaled, "Mul")
        norm = _scaled(product, variable_of) if product is not None else None
        if norm is not None and norm.is_centred:
            beta = variable_of(shift)
            return (norm, beta) if _is_parameter(beta, norm.x, norm.axes) else None
    return None


def _scaled(node: ir.Node, variable_of: VariableOf) -> _Norm | None:
    """Return the norm whose scale a product applies."""
    for value, scale in _orders(node):
        found = _standardised(value, variable_of)
        if found is not None:
            x, axes, epsilon, is_centred = found
            gamma = variable_of(scale)
            if _is_parameter(gamma, x, axes):
                return _Norm(x, gamma, axes, epsilon, is_centred)
    return None


def _standardised(
    value: ir.Value | None, variable_of: VariableOf
) -> tuple[TensorVariable, int, float, bool] | None:
    """Return array, number of axes and epsilon of ``d / sqrt(mean(d ** 2) + epsilon)``."""
    for dividend, divisor in _quotients(value, variable_of):
        root = _made_by(divisor, "Sqrt")
        total = None if root is None else _made_by(root.inputs[0], "Add")
        for mean, added in [] if total is None else _orders(total):
            epsilon = _number(added, variable_of)
            square = None if epsilon is None else _mean_of(mean, variable_of)
            if square is None or not epsilon:
                continue
            squared, axes = square
            base = _base(squared, variable_of)
            x = None if base is None else _array(dividend, base, axes, variable_of)
            if x is not None:
                variable = variable_of(x)
                if isinstance(variable, TensorVariable) and variable.type.dtype == "float32":
                    return variable, axes, epsilon, x is not dividend
    return None


def _array(
    dividend: ir.Value, base: ir.Value, axes: int, variable_of: VariableOf
) -> ir.Value | None:
    """Return the array whose deviations, or which itself, are divided and squared."""
    below, within = (_deviation(value, axes, variable_of) for value in (dividend, base))
    if below is not None and within is not None:
        return below if below is within else None
    return dividend if dividend is base else None


def _deviation(value: ir.Value, axes: int, variable_of: VariableOf) -> ir.Value | None:
    """Return x of ``x - mean(x)`` over the last axes."""
    node = _made_by(value, "Sub")
    found = None if node is None else _mean_of(node.inputs[1], variable_of)
    is_own = found is not None and node is not None and found == (node.inputs[0], axes)
    return found[0] if found is not None and is_own else None


def _quotients(
    value: ir.Value | None, variable_of: VariableOf
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Yield dividends and divisors of a quotient, or of a product with a reciprocal."""
    node = _made_by(value, "Div")
    if node is not None:
        yield from [pair for pair in _orders(node) if pair[0] is node.inputs[0]]
    node = _made_by(value, "Mul")
    for factor, other in [] if node is None else _orders(node):
        inverse = _made_by(other, "Reciprocal")
        if inverse is not None and inverse.inputs[0] is not None:
            yield factor, inverse.inputs[0]
        inverse = _made_by(other, "Div")
        one = None if inverse is None else _number(inverse.inputs[0], variable_of)
        if inverse is not None and inverse.inputs[1] is not None and one == 1:
            yield factor, inverse.inputs[1]


def _mean_of(value: ir.Value | None, variable_of: VariableOf) -> tuple[ir.Value, int] | None:
    """Return the operand of a mean over the last axes, which stay, and their number."""
    node = _made_by(value, "ReduceMean")
    if node is None or node.inputs[0] is None:
        return None
    keepdims = node.attributes.get("keepdims")
    given = node.attributes.get("axes")
    axes = None if given is None else given.value
    if axes is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        array = known(variable_of(node.inputs[1]))
        axes = None if array is None else array.ravel().tolist()
    if not axes or (keepdims is not None and keepdims.value != 1):
        return None
    operand = variable_of(node.inputs[0])
    if not isinstance(operand, TensorVariable):
        return None
    rank = operand.type.ndim
    if sorted(axis % rank for axis in axes) != list(range(rank - len(axes), rank)):
        return None
    return node.inputs[0], len(axes)


def _base(value: ir.Value, variable_of: VariableOf) -> ir.Value | None:
    """Return the base of a square."""
    node = _made_by(value, "Pow")
    if node is not None:
        return node.inputs[0] if _number(node.inputs[1], variable_of) == 2 else None
    node = _made_by(value, "Mul")
    return node.inputs[0] if node is not None and node.inputs[0] is node.inputs[1] else None


def _number(value: ir.Value | None, variable_of: VariableOf) -> float | None:
    """Return the one number of a constant that adds no axes to the other operand."""
    variable = None if value is None else variable_of(value)
    array = known(variable) if isinstance(variable, Variable) else None
    is_number = array is not None and array.size == 1 and array.ndim <= 1
    return float(array.item()) if array is not None and is_number else None


def _is_parameter(parameter: Any, x: TensorVariable, axes: int) -> bool:
    """Return whether a variable has the known sizes of the last axes of an array."""
    sizes = x.type.shape[x.type.ndim - axes :]
    return (
        isinstance(parameter, TensorVariable)
        and parameter.type.dtype == x.type.dtype
        and None not in sizes
        and parameter.type.shape == sizes
    )


def _orders(node: ir.Node) -> list[tuple[ir.Value, ir.Value]]:
    a, b = node.inputs
    return [] if a is None or b is None else [(a, b), (b, a)]


def _made_by(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the node of an operator of the standard that makes a value."""
    node = None if value is None else value.producer()
    is_standard = node is not None and node.domain in ("", "ai.onnx")
    return node if node is not None and is_standard and node.op_type == op_type else None
