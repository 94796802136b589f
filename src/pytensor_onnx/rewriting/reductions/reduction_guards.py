"""Conditions under which PyTensor's rewrites of reductions preserve the result."""

import numpy as np
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.tensor.basic import Alloc
from pytensor.tensor.math import Prod, ProdWithoutZeros, Sum, mul, true_div
from pytensor.tensor.rewriting.extra_ops import local_Unique_lift
from pytensor.tensor.rewriting.math import (
    local_careduce_of_alloc,
    local_sum_of_neg_to_neg_of_sum,
    local_sum_prod_of_mul_or_div,
    local_sumsqr2dot,
)
from pytensor.tensor.rewriting.uncanonicalize import local_max_to_min

from pytensor_onnx.rewriting.elementwise.arithmetic_guards import takes_floats
from pytensor_onnx.rewriting.engine.guarded import Guard, guard
from pytensor_onnx.rewriting.engine.predicates import made_by


def may_be_reduced_once(node: Apply) -> bool:
    """Return whether the reduction of a repeated number may be computed from the number.

    With zero repetitions, a maximum is an error and `any` is false; a sum is zero, but the product
    of the number and the count is not if the number is not finite. A float that is summed into an
    integer is truncated once, at the end. The product of a uint64 and a count is float64.
    """
    x, axes = node.inputs[0], node.op.axis
    repeated = made_by(x, Alloc)
    if repeated is None:
        return False
    if x.type.dtype.startswith("float") and "int" in node.outputs[0].type.dtype:
        return False
    combines = isinstance(node.op, Sum | Prod | ProdWithoutZeros)
    if combines and x.type.dtype == "uint64":
        return False
    sizes = x.type.shape if axes is None else [x.type.shape[axis] for axis in axes]
    if all(sizes) or getattr(node.op, "initial", False):
        return True
    value = repeated.inputs[0]
    is_finite = isinstance(value, Constant) and np.isfinite(value.data).all()
    is_sum = isinstance(node.op, Sum) and (is_finite or not value.dtype.startswith("float"))
    return is_sum or isinstance(node.op, Prod | ProdWithoutZeros)


def has_common_factor(node: Apply) -> bool:
    """Return whether a factor or divisor may be moved out of a sum.

    Integer products may wrap around before they are added, and float16 overflows in the sum. A sum
    over zero elements is zero, whatever the factor. For a product, the power of the factor may
    overflow where the product does not.
    """
    x, axes = node.inputs[0], node.op.axis
    dtypes = {x.type.dtype, node.outputs[0].type.dtype}
    is_product = x.owner is not None and x.owner.op in (mul, true_div)
    if not isinstance(node.op, Sum) or not is_product or not dtypes <= {"float32", "float64"}:
        return False
    sizes = x.type.shape if axes is None else [x.type.shape[axis] for axis in axes]
    if all(sizes):
        return True
    axes = range(x.type.ndim) if axes is None else axes
    factors = x.owner.inputs[1:] if x.owner.op == true_div else x.owner.inputs
    outer = [f for f in factors if all(f.type.broadcastable[axis] for axis in axes)]
    return all(isinstance(f, Constant) and _is_usual(f, x.owner.op) for f in outer)


def _is_usual(factor: Constant, op: Op) -> bool:
    with np.errstate(divide="ignore"):
        return bool(np.isfinite(1 / factor.data if op == true_div else factor.data).all())


def is_integer(node: Apply) -> bool:
    """Return whether a result is a signed integer, whose smallest value has no negative."""
    return node.outputs[0].type.dtype.startswith("int")


def has_sign(node: Apply) -> bool:
    """Return whether a result is no unsigned integer, whose negatives wrap around."""
    return not node.outputs[0].type.dtype.startswith("uint")


def is_known_to_take_elements(node: Apply) -> bool:
    """Return whether no size of an operand may be zero: with zero repetitions it has no values."""
    return all(node.inputs[0].type.shape)


_minimum = guard(
    local_max_to_min,
    is_integer,
    family="reductions",
    purpose="correctness",
    identity="-max(-x) = min(x)",
    requires="no unsigned integers; of signed ones at once, as the smallest has no negative",
    measured="docs/project/upstream.md#the-minimum-of-the-smallest-integer-is-wrong",
)
minimum_of_integers = _minimum.guarded()
GUARDS = (
    guard(
        local_careduce_of_alloc,
        may_be_reduced_once,
        family="reductions",
        purpose="correctness",
        identity="sum(alloc(x, n)) = n * x",
        requires="elements, or finite x; no truncation of each float",
        measured="docs/project/upstream.md#reductions-of-multiples-and-of-repeated-numbers-differ",
    ),
    guard(
        local_sum_prod_of_mul_or_div,
        has_common_factor,
        family="reductions",
        purpose="correctness",
        identity="sum(c * x) = c * sum(x)",
        requires="float32 or float64, and elements or a usual c",
        measured="docs/project/upstream.md#reductions-of-multiples-and-of-repeated-numbers-differ",
    ),
    guard(
        local_sum_of_neg_to_neg_of_sum,
        takes_floats,
        family="reductions",
        purpose="correctness",
        identity="sum(-x) = -sum(x)",
        requires="floats, as unsigned integers wrap around",
        measured="docs/project/upstream.md#rewrites-of-integers-do-not-wrap-around",
    ),
    guard(
        local_sumsqr2dot,
        takes_floats,
        family="reductions",
        purpose="correctness",
        identity="sum(x ** 2) = dot(x, x)",
        requires="floats",
        measured="docs/project/upstream.md#rewrites-of-integers-do-not-wrap-around",
    ),
    guard(
        local_Unique_lift,
        is_known_to_take_elements,
        family="sorting",
        purpose="correctness",
        identity="unique(repeat(x, n)) = unique(x)",
        requires="no size may be zero",
        measured="docs/project/upstream.md#the-unique-values-of-no-repetitions-are-not-empty",
    ),
    Guard(local_max_to_min, has_sign, _minimum.rule),
)
