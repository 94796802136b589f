"""Replace written-out activation functions by ONNX operators.

In float64 they are left as written: runtimes lack the operators. An expression is also left if a
part of it has other uses, such as its gradient, and is therefore computed anyway.
"""

from __future__ import annotations

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar import basic as ps, math as psm
from pytensor.tensor.rewriting.basic import elemwise_of

from pytensor_onnx.rewriting.engine.predicates import elementwise, number_of, only_client
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [elemwise_of(ps.Mul | ps.Switch)],
    family="networks",
    purpose="size",
    identity="x * sigmoid(x) = Swish(x), and its kind",
    requires="float32 or float16, and no part with other uses",
    ensures="equal also for NaN and infinities",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def name_activation(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace an expression by an operator with equal results, also for NaN and infinities."""
    old = node.outputs[0]
    if old.type.dtype != "float32":
        return None
    recognise = _gelu if isinstance(node.op.scalar_op, ps.Mul) else _choice
    new = recognise(fgraph, node)
    if new is None or new.type != old.type:
        return None
    new.name = old.name
    return [new]


def _choice(fgraph: FunctionGraph, node: Apply) -> Variable | None:
    """Recognise a choice between x and a multiple of x by its sign."""
    condition, positive, other = node.inputs
    test = elementwise(condition)
    if test is None or len(test.inputs) != 2 or not only_client(fgraph, condition):
        return None
    operand, bound = test.inputs
    if number_of(bound) != 0:
        return None
    keeps_nan = isinstance(test.op.scalar_op, ps.LT | ps.LE)
    if keeps_nan:
        positive, other = other, positive
    elif not isinstance(test.op.scalar_op, ps.GT | ps.GE):
        return None
    if positive is not operand:
        return None
    if number_of(other) == 0:
        return pt.maximum(operand, _zero(operand)) if keeps_nan else _thresholded(operand)
    slope = _multiple(other, operand)
    if slope is None or slope <= 0 or not math.isfinite(slope):
        return None
    return _operator("LeakyRelu", operand, alpha=slope)


def _thresholded(x: Variable) -> Variable:
    return _operator("ThresholdedRelu", x, alpha=0.0)


def _gelu(fgraph: FunctionGraph, node: Apply) -> Variable | None:
    """Recognise ``0.5 * x * (1 + erf(x / sqrt(2)))`` and its approximation by tanh."""
    factors = _factors(fgraph, node.outputs[0])
    numbers = [number_of(factor) for factor in factors]
    others = [factor for factor, number in zip(factors, numbers, strict=True) if number is None]
    scale = math.prod(number for number in numbers if number is not None)
    if len(others) != 2 or not _is_close(scale, 0.5, node):
        return None
    for x, gate in (others, others[::-1]):
        inner = _plus_one(gate)
        if inner is None or not (only_client(fgraph, gate) and only_client(fgraph, inner)):
            continue
        function = elementwise(inner)
        if function is None:
            continue
        if isinstance(function.op.scalar_op, psm.Erf):
            if _is_close(_multiple(function.inputs[0], x), math.sqrt(0.5), node):
                return _operator("Gelu", x)
        elif isinstance(function.op.scalar_op, ps.Tanh) and _is_cubic(function.inputs[0], x, node):
            return _operator("Gelu", x, approximate="tanh")
    return None


def _is_cubic(u: Variable, x: Variable, node: Apply) -> bool:
    """Return whether u is ``sqrt(2 / pi) * (x + 0.044715 * x ** 3)``."""
    product = elementwise(u, ps.Mul)
    if product is None or len(product.inputs) != 2:
        return False
    for number, total in (product.inputs, product.inputs[::-1]):
        addition = elementwise(total, ps.Add)
        if not _is_close(number_of(number), math.sqrt(2 / math.pi), node) or addition is None:
            continue
        rest = [term for term in addition.inputs if term is not x]
        if len(addition.inputs) == 2 and len(rest) == 1:
            return _is_close(_multiple_of_cube(rest[0], x), 0.044715, node)
    return False


def _multiple_of_cube(term: Variable, x: Variable) -> float | None:
    product = elementwise(term, ps.Mul)
    if product is None:
        return None
    factor, count = 1.0, 0
    for part in _all_factors(term):
        number, power = number_of(part), elementwise(part, ps.Pow)
        if number is not None:
            factor *= number
        elif part is x:
            count += 1
        elif power is not None and power.inputs[0] is x and number_of(power.inputs[1]) in (2, 3):
            count += int(number_of(power.inputs[1]) or 0)
        else:
            return None
    return factor if count == 3 else None


def _factors(fgraph: FunctionGraph, product: Variable) -> list[Variable]:
    """Return the factors of a product and of its inner products without other uses."""
    found: list[Variable] = []
    for factor in product.owner.inputs:
        is_product = elementwise(factor, ps.Mul) is not None and only_client(fgraph, factor)
        found += _factors(fgraph, factor) if is_product else [factor]
    return found


def _all_factors(product: Variable) -> list[Variable]:
    node = elementwise(product, ps.Mul)
    return [product] if node is None else [f for x in node.inputs for f in _all_factors(x)]


def _plus_one(total: Variable) -> Variable | None:
    addition = elementwise(total, ps.Add)
    if addition is None or len(addition.inputs) != 2:
        return None
    first, second = addition.inputs
    if number_of(first) == 1:
        return second
    return first if number_of(second) == 1 else None


def _multiple(product: Variable, x: Variable) -> float | None:
    """Return the number by which x is multiplied, None for other variables."""
    node = elementwise(product)
    if node is None or len(node.inputs) != 2:
        return None
    first, second = node.inputs
    if isinstance(node.op.scalar_op, ps.TrueDiv):
        divisor = number_of(second)
        return 1 / divisor if first is x and divisor else None
    if isinstance(node.op.scalar_op, ps.Mul):
        return number_of(first) if second is x else number_of(second) if first is x else None
    return None


def _is_close(found: float | None, wanted: float, node: Apply) -> bool:
    tolerance = 4 * float(np.finfo(node.outputs[0].type.dtype).eps)
    return found is not None and math.isclose(found, wanted, rel_tol=tolerance)


def _zero(x: Variable) -> np.ndarray:
    return np.zeros((), x.type.dtype)


def _operator(name: str, x: Variable, **attributes: float | str) -> Variable:
    from pytensor_onnx.ops.networks.activation_ops import Activation

    return Activation(operator=name, attributes=tuple(attributes.items()))(x)
