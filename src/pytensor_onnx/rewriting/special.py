"""Rewrites of special functions and their gradients."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.scalar.basic import Exp, Log, Mul, Sub, Switch, get_scalar_type
from pytensor.scalar.loop import ScalarLoop
from pytensor.scalar.math import I0, GammaLn, Ive, Kve
from pytensor.tensor.rewriting.basic import elemwise_of
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.special.beta_derivatives import (
    betainc_by_first,
    betainc_by_second,
    betainc_by_third,
    derivative,
)
from pytensor_onnx.functions.special.modified_bessel import kv, times_iv
from pytensor_onnx.rewriting.engine.predicates import (
    applies,
    elementwise,
    filling_of,
    number_of,
    scalar_op_of,
    without_leading_axes,
)
from pytensor_onnx.rewriting.engine.walkers import Visit, ops_of
from pytensor_onnx.rules import part_of, rewrites_nodes

# Replace products of scaled Bessel functions and exponentials, which overflow before the product.
#
# PyTensor writes ``iv(v, x)`` as ``ive(v, x) * exp(abs(x))``, ``kv`` alike, and derivatives as
# products of exponentials and sums.

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
    return elementwise(x, I0 | times_iv.op_type) is not None


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


_DERIVATIVES = (betainc_by_first, betainc_by_second, betainc_by_third)


@rewrites_nodes(
    [elemwise_of(Switch | Exp)],
    family="special",
    purpose="correctness",
    identity="PyTensor's graph of d betainc / da = an Op",
)
def derive_betainc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the graph that PyTensor builds for a derivative of ``betainc`` by an Op.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> a, x = pt.dscalars("a", "x")
    >>> gradient = pytensor.function([a, x], pt.grad(pt.betainc(a, 2.0, x), a), mode="ONNX")
    >>> [node.op.scalar_op.name for node in gradient.maker.fgraph.toposort()]
    ['betainc_by_first']
    """
    arguments = _arguments(node) or _arguments_of_density(node)
    if arguments is None:
        return None
    [old] = node.outputs
    dtypes = tuple(v.type.dtype for v in arguments)
    for index, op in enumerate(_DERIVATIVES):
        *inputs, pattern = _pattern(dtypes, index, config.floatX)
        if _is_like(pattern, old, dict(zip(inputs, arguments, strict=True)), set()):
            new = op(*arguments).astype(old.type.dtype)
            new.name = old.name
            return [new] if old.type.is_super(new.type) else None
    return None


def _arguments(node: Apply) -> tuple[Variable, Variable, Variable] | None:
    """Return ``a``, ``b`` and ``x`` where a node looks like the last one of a derivative."""
    for _ in range(2):
        if not applies(node, Switch) or node.inputs[2].owner is None:
            return None
        node = node.inputs[2].owner
    loop = node.inputs[1].owner if applies(node, Switch) else None
    if not applies(loop, ScalarLoop) or len(loop.inputs) != 16:
        return None
    # The loop has b x / (a (1 - x)), a, b and two more constants.
    quotient, a, b = loop.inputs[-5:-2]
    product = quotient.owner.inputs[0].owner if quotient.owner else None
    return (a, b, product.inputs[1]) if product and len(product.inputs) == 2 else None


def _arguments_of_density(node: Apply) -> tuple[Variable, Variable, Variable] | None:
    """Return ``a``, ``b`` and ``x`` where a node looks like the derivative by ``x``."""
    total = node.inputs[0].owner if applies(node, Exp) else None
    if not applies(total, Sub):
        return None
    powers, log_beta = (v.owner for v in total.inputs)
    if powers is None or not applies(log_beta, Sub):
        return None
    logarithms = log_beta.inputs[0].owner
    last = powers.inputs[-1].owner
    if logarithms is None or not applies(last, Mul):
        return None
    a, b = (_operand(v, GammaLn) for v in logarithms.inputs[:2])
    x = _operand(last.inputs[0], Log)
    return None if a is None or b is None or x is None else (a, b, x)


def _operand(variable: Variable, scalar_type: type) -> Variable | None:
    node = elementwise(variable, scalar_type)
    return None if node is None else node.inputs[0]


@cache
def _pattern(dtypes: tuple[str, ...], index: int, float_x: str) -> tuple[Variable, ...]:
    """Return scalar arguments and the derivative that PyTensor computes of them."""
    arguments = [get_scalar_type(dtype)() for dtype in dtypes]
    with config.change_flags(floatX=float_x):
        return *arguments, derivative(index, arguments)


def _is_like(
    pattern: Variable,
    found: Variable,
    arguments: dict[Variable, Variable],
    seen: set[tuple[Variable, Variable]],
) -> bool:
    """Return whether a graph applies the operations of a scalar graph to the arguments."""
    if pattern in arguments:
        return arguments[pattern] is found
    if (pattern, found) in seen:
        return True
    # A difference ends the search, so that all pairs seen before are alike.
    seen.add((pattern, found))
    if isinstance(pattern, Constant):
        value = number_of(found)
        return value is not None and np.array_equal(value, pattern.data, equal_nan=True)
    expected, node = pattern.owner, found.owner
    if expected is None or not applies(node):
        return False
    if node.op.scalar_op != expected.op or len(node.inputs) != len(expected.inputs):
        return False
    pairs = zip(expected.inputs, node.inputs, strict=True)
    return node.outputs.index(found) == expected.outputs.index(pattern) and all(
        _is_like(*pair, arguments, seen) for pair in pairs
    )
