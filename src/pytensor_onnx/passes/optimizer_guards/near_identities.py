"""Guard arithmetic with constants near zero or one, which a runtime drops.

ONNX Runtime drops additions of 0 and multiplications by 1, after rounding the constant to float32:
in float64, `x + 1e-300` becomes `x`, and `log` of it minus infinity. A Sum of two operands is left
alone, and so is a product with the negative constant, whose negative is exact.
"""

from functools import partial

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.passes.matching import constant_of, is_constant, required
from pytensor_onnx.passes.node_walk import Form
from pytensor_onnx.passes.optimizer_guards.inlined import Inlined

NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
"""Neutral elements of the operators."""


def near_identity_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of an Add, Sub, Mul or Div, None for nodes without the defect.

    Parameters
    ----------
    node
        Node of one of these operators.
    inlined
        The model as a runtime inlines it.
    """
    form = _sum if node.op_type in ("Add", "Sub") else _product
    for position in (0, 1) if node.op_type in ("Add", "Mul") else (1,):
        value, other = required(node.inputs[position]), required(node.inputs[1 - position])
        if _is_dropped(value, other, NEUTRAL[node.op_type], inlined):
            return partial(form, position=position)
    return None


def _is_dropped(value: ir.Value, other: ir.Value, neutral: int, inlined: Inlined) -> bool:
    """Return whether a constant becomes the neutral element only by rounding to float32."""
    origins = [v for v in inlined.folded_origins(value) if inlined.dtype(v) == ir.DataType.DOUBLE]
    if any(_rounds_to(v, neutral) for v in origins):
        return True
    # Where the runtime folds both operands, it folds the node before it looks for identities.
    if inlined.folds_with(value, other):
        return False
    return any(not is_constant(v) and not inlined.is_integral(v) for v in origins)


def _rounds_to(value: ir.Value, neutral: int) -> bool:
    constant = constant_of(value)
    if constant is None or constant.size != 1:
        return False
    number = constant.item()
    with np.errstate(over="ignore"):
        return bool(number != neutral and np.float32(number) == neutral)


def _sum(build: Builder, node: ir.Node, position: int) -> ir.Value:
    """Add by a Sum; a difference is a sum with the negative constant."""
    left, right = map(required, node.inputs)
    if node.op_type == "Add":
        return build.Sum(left, right)
    return build.Sum(left, _negative(build, right))


def _product(build: Builder, node: ir.Node, position: int) -> ir.Value:
    """Multiply or divide by the negative constant, and negate the result."""
    operands = list(map(required, node.inputs))
    constant = operands[position]
    if is_constant(constant):
        operands[position] = _negative(build, constant)
        return build.Neg(build.op(node.op_type, *operands))
    # The sign of zero matters: a division by it is infinite.
    zero, one = np.float64(0), np.float64(1)
    is_negative = build.Or(build.Less(constant, zero), build.Less(build.Div(one, constant), zero))
    sign = build.Where(is_negative, one, -one)
    operands[position] = build.Neg(build.Abs(constant))
    return build.Mul(build.op(node.op_type, *operands), sign)


def _negative(build: Builder, value: ir.Value) -> ir.Value:
    array = constant_of(value)
    return build.Neg(value) if array is None else build.constant(-array)
