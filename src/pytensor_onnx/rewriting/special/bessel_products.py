"""Replace products of scaled Bessel functions and exponentials, which overflow before the product.

PyTensor writes ``iv(v, x)`` as ``ive(v, x) * exp(abs(x))``, ``kv`` alike, and derivatives as
products of exponentials and sums.
"""

from collections.abc import Sequence

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.scalar.math import I0, Ive, Kve
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ops.special.bessel_ops import TimesIv, kv, times_iv
from pytensor_onnx.rewriting.engine.predicates import (
    elementwise,
    filling_of,
    scalar_op_of,
    without_leading_axes,
)
from pytensor_onnx.rewriting.engine.walkers import Visit, ops_of
from pytensor_onnx.rules import part_of, rewrites_nodes

_DEPTH = 12
# Terms of a sum may be four times as large as the sum.
_SCALE = 0.25


@rewrites_nodes(
    [pt.mul],
    family="special",
    purpose="correctness",
    identity="f(ive(v, x)) * exp(abs(x)) = f(iv(v, x))",
    ensures="no overflow of a factor where the product is finite",
)
def multiply_bessel_last(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Multiply scaled Bessel functions by their exponential inside of the function.

    Examples
    --------
    >>> x = pt.vector("x")
    >>> node = pt.iv(2, x).owner
    >>> multiply_bessel_last.transform(None, node)[0].owner.op
    times_iv
    """
    factors = _factors(node.outputs[0])
    for i, exponential in enumerate(factors):
        scaled = _scaled_by(exponential)
        if scaled is None:
            continue
        for j, factor in enumerate(factors):
            found = _multiplied(factor, *scaled, depth=_DEPTH) if j != i else None
            if found is not None:
                others = [f for k, f in enumerate(factors) if k not in (i, j)]
                return _as_result(node, [*others, found])
    return None


@part_of(multiply_bessel_last.rule, [pt.true_div])
def halve_bessel_terms(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Halve the terms of ``(i0(x) + iv(2, x)) / 2``, the derivative of ``i1``, before their sum."""
    numerator, divisor = node.inputs
    if filling_of(divisor) != 2:
        return None
    factors = _factors(numerator)
    for i, factor in enumerate(factors):
        if elementwise(factor, ps.Add) and all(map(_grows, factor.owner.inputs)):
            half = np.asarray(0.5, factor.type.dtype)
            total = pt.add(*(term * half for term in factor.owner.inputs))
            return _as_result(node, [*factors[:i], total, *factors[i + 1 :]])
    return None


def _grows(x: TensorVariable) -> bool:
    return elementwise(x, I0 | TimesIv) is not None


@graph_rewriter
def multiply_all_bessel_last(fgraph: FunctionGraph) -> None:
    """Apply `multiply_bessel_last` and `halve_bessel_terms` to the graph as it is written."""
    if any(isinstance(scalar_op_of(op), Ive | Kve) for op in ops_of(fgraph)):
        Visit(multiply_bessel_last, order="in_to_out").rewrite(fgraph)
        Visit(halve_bessel_terms, once=True).rewrite(fgraph)


def _as_result(node: Apply, factors: Sequence[TensorVariable]) -> list[Variable] | None:
    """Return the product of the factors, or None if its type differs from the node's result."""
    (old,) = node.outputs
    new = pt.cast(pt.mul(*factors) if len(factors) > 1 else factors[0], old.type.dtype)
    return [new] if old.type.is_super(new.type) else None


def _factors(x: TensorVariable, depth: int = _DEPTH) -> list[TensorVariable]:
    """Return the factors of a product of products."""
    if depth == 0 or elementwise(x, ps.Mul) is None:
        return [x]
    return [factor for operand in x.owner.inputs for factor in _factors(operand, depth - 1)]


def _scaled_by(x: TensorVariable) -> tuple[type[ps.ScalarOp], Variable] | None:
    """Return the Bessel function whose scaling a factor cancels, and its argument, or None."""
    exponential = without_leading_axes(x)
    if elementwise(exponential, ps.Exp) is None:
        return None
    exponent = without_leading_axes(exponential.owner.inputs[0])
    for scalar_op, scaled in ((ps.Abs, Ive), (ps.Neg, Kve)):
        if elementwise(exponent, scalar_op):
            return scaled, without_leading_axes(exponent.owner.inputs[0])
    return None


def _multiplied(
    factor: TensorVariable, scaled: type[ps.ScalarOp], x: Variable, *, depth: int
) -> TensorVariable | None:
    """Multiply by the exponential, or return None if a term has no scaled Bessel function of x."""
    own = _by_terms(factor, scaled, x, 1.0, depth)
    if own is not None or scaled is Kve:
        return own
    found = _by_terms(factor, scaled, x, _SCALE, depth)
    return None if found is None else found * np.asarray(1 / _SCALE, found.type.dtype)


def _by_terms(
    factor: TensorVariable, scaled: type[ps.ScalarOp], x: Variable, scale: float, depth: int
) -> TensorVariable | None:
    """Return a product with the exponential and a scale; without a scale, sums of Ive are left."""
    node = elementwise(factor)
    if depth == 0 or node is None:
        return None
    scalar_op, operands = node.op.scalar_op, node.inputs
    if isinstance(scalar_op, scaled):
        if without_leading_axes(operands[1]) is not x:
            return None
        dtype = factor.type.dtype
        return kv(*operands) if scaled is Kve else times_iv(np.asarray(scale, dtype), *operands)

    def inside(operand: TensorVariable) -> TensorVariable | None:
        return _by_terms(operand, scaled, x, scale, depth - 1)

    if isinstance(scalar_op, ps.Add | ps.Sub | ps.Neg):
        if scaled is Ive and scale == 1.0 and len(operands) > 1:
            return None
        terms = [inside(operand) for operand in operands]
        return None if None in terms else factor.owner.op(*terms)
    places = {ps.Mul: len(operands), ps.TrueDiv: 1}.get(type(scalar_op), 0)
    for i, operand in enumerate(operands[:places]):
        found = inside(operand)
        if found is not None:
            return factor.owner.op(*operands[:i], found, *operands[i + 1 :])
    return None
