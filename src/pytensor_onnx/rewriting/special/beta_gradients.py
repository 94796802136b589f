"""Replace PyTensor's graphs for the derivatives of the incomplete beta function by Ops."""

from functools import cache

import numpy as np
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import Exp, Log, Mul, Sub, Switch, get_scalar_type
from pytensor.scalar.loop import ScalarLoop
from pytensor.scalar.math import GammaLn
from pytensor.tensor.rewriting.basic import elemwise_of

from pytensor_onnx.ops.special.beta_ops import (
    betainc_by_first,
    betainc_by_second,
    betainc_by_third,
    derivative,
)
from pytensor_onnx.rewriting.engine.predicates import applies, elementwise, number_of
from pytensor_onnx.rules import rewrites_nodes

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
