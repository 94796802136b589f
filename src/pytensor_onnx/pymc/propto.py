"""Drop the constants of log-densities."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape

from pytensor_onnx.rewriting.engine.predicates import applies, filling_of

_OF_FIRST_INPUT = (Sum, DimShuffle, CheckAndRaise, SpecifyShape, Alloc)


def drop_constants(terms: Sequence[Variable], parameters: Collection[Variable]) -> list[Variable]:
    """Return log-densities without the summands that depend on no parameter.

    Summands are found below sums, differences, multiples by constants and checks. Checks stay, and
    so do infinite constants: data that have no density still have none. A constant stays, too,
    where parameters decide whether it counts.

    Parameters
    ----------
    terms
        The log-densities.
    parameters
        The variables on which a summand must depend.

    Examples
    --------
    >>> x, y = pt.scalar("x"), pt.vector("y")
    >>> (term,) = drop_constants([2 * (x * y - pt.gammaln(y + 1) - 0.5)], [x])
    >>> term.eval({x: 3.0, y: [1.0, 2.0]}, mode="FAST_COMPILE")
    array([ 6., 12.])
    """
    nodes = list(toposort(list(terms)))
    # A constant that a check or an infinite branch is behind cannot be dropped as a whole.
    dependent, guarded = set(parameters), set[Variable]()
    for node in nodes:
        if not isinstance(node.op, Shape | Shape_i) and not dependent.isdisjoint(node.inputs):
            dependent.update(node.outputs)
        if _is_guard(node) or not guarded.isdisjoint(node.inputs):
            guarded.update(node.outputs)
    kept = dependent | guarded
    summands = set(terms)
    for node in reversed(nodes):
        if not summands.isdisjoint(node.outputs) and not kept.isdisjoint(node.outputs):
            summands.update(node.inputs[i] for i in _summands_of(node, dependent, kept))
    reduced: dict[Variable, Variable] = {
        v: pt.zeros_like(v) for v in summands if v not in kept and not _is_infinite(v)
    }
    for node in nodes:
        (variable, *_) = node.outputs
        if variable in summands and variable in kept:
            places = _summands_of(node, dependent, kept)
            inputs = [reduced.get(v, v) if i in places else v for i, v in enumerate(node.inputs)]
            if inputs != node.inputs:
                reduced[variable] = node.clone_with_new_inputs(inputs).outputs[0]
    return [reduced.get(term, term) for term in terms]


def _summands_of(
    node: Apply, dependent: Collection[Variable], kept: Collection[Variable]
) -> list[int]:
    """Return the positions of the inputs whose constants are constants of the result."""
    if isinstance(node.op, _OF_FIRST_INPUT):
        return [0]
    if not applies(node):
        return []
    inputs = node.inputs
    match node.op.scalar_op:
        case ps.Add() | ps.Sub() | ps.Neg():
            return list(range(len(inputs)))
        case ps.Mul():
            factors = [i for i, v in enumerate(inputs) if v in kept]
            return factors if len(factors) == 1 else []
        case ps.TrueDiv():
            return [] if inputs[1] in dependent else [0]
        case ps.Second():
            return [1]
        case ps.Switch():
            branches = [i for i in (1, 2) if not _is_infinite(inputs[i])]
            # Constants of two branches differ, where the parameters decide between them.
            return branches if inputs[0] not in dependent or len(branches) == 1 else []
    return []


def _is_guard(node: Apply) -> bool:
    """Whether a result is minus infinity, or an error, for invalid parameters or values."""
    return isinstance(node.op, CheckAndRaise) or (
        applies(node, ps.Switch) and any(map(_is_infinite, node.inputs[1:]))
    )


def _is_infinite(variable: Variable) -> bool:
    """Whether a variable is a constant without a finite value."""
    value = filling_of(variable)
    return value is not None and not np.isfinite(value)
