"""Arithmetic that PyTensor simplifies where the result stays what it is."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import prod

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.math import add, int_div, sub, true_div
from pytensor.tensor.rewriting.math import (
    local_0_dot_x,
    local_abs_lift,
    local_div_by_one,
    local_log1p,
    local_mul_specialize,
    local_neg_to_mul,
    local_reciprocal_canon,
    local_sign_prod,
    local_useless_abs,
    local_useless_sign,
    local_zero_div,
)

from pytensor_onnx.rewriting.guards import register_guarded

_LARGEST_EXACT = 2**53
"""Integers up to this one are floats of 64 bits."""


def divides_exactly(node: Apply) -> bool:
    """Return whether a division by one changes nothing: a floor division of floats rounds."""
    return node.op != int_div or not node.outputs[0].type.dtype.startswith("float")


def has_zero_quotient(node: Apply) -> bool:
    """Return whether a zero is the quotient of a zero and anything: 0.0 / 0.0 is NaN."""
    return has_unknown_operand(node) and not node.outputs[0].type.dtype.startswith("float")


def has_unknown_operand(node: Apply) -> bool:
    """Return whether a result is not known: what is known is computed as it is written.

    PyTensor takes the quotient of a number and itself for one.
    """
    return not all(isinstance(x, Constant) for x in node.inputs)


def is_divided_zero(fgraph: FunctionGraph, factor: Variable) -> bool:
    """Return whether a factor is a zero that is divided somewhere in a graph: 0.0 / 0.0 is NaN."""
    if not isinstance(factor, Constant) or np.any(factor.data):
        return False
    return any(node.op == true_div and i == 0 for node, i in fgraph.clients[factor])


def is_tiny(factor: Variable) -> bool:
    """Return whether a factor is a number whose reciprocal overflows: PyTensor multiplies by it."""
    if not isinstance(factor, Constant) or not factor.type.dtype.startswith("float"):
        return False
    with np.errstate(divide="ignore", over="ignore"):
        return bool(np.any(np.isinf(1 / factor.data) & (factor.data != 0)))


def has_rounded_product(factors: Iterable[Variable]) -> bool:
    """Return whether a float64 may round the product of the constant integers among factors.

    PyTensor divides that product by one.
    """
    constants = [x for x in factors if isinstance(x, Constant) and "int" in x.type.dtype]
    ends = ((int(x.data.min()), int(x.data.max())) for x in constants if x.data.size)
    return prod(max(1, -lowest, highest) for lowest, highest in ends) > _LARGEST_EXACT


def may_fit(node: Apply) -> bool:
    """Return whether a matrix product may be replaced by what needs no equal sizes.

    They differ where they are known to, as of a shared variable whose value does not fit. A single
    number would be broadcast along any other size.
    """
    columns, rows = node.inputs[0].type.shape[-1], node.inputs[1].type.shape[-2:][0]
    return columns == rows or (None in (columns, rows) and 1 not in (columns, rows))


def may_be_broadcast(operands: Sequence[Variable]) -> bool:
    """Return whether known sizes agree: a product with zeros would be zeros of one of the sizes."""
    axes = zip_longest(*(x.type.shape[::-1] for x in operands))
    return all(len({*sizes} - {None, 1}) <= 1 for sizes in axes)


def is_log_of_one_plus(node: Apply) -> bool:
    """Return whether ``log`` is of one and a float: integers wrap around, and near one is not one.

    PyTensor takes all constants up to ten units in the last place away for one.
    """
    x = node.inputs[0]
    if x.owner is None or x.owner.op not in (add, sub) or not x.type.dtype.startswith("float"):
        return False
    constants = [operand.data for operand in x.owner.inputs if isinstance(operand, Constant)]
    return bool(constants) and bool(np.all(sum(constants) == 1))


def takes_floats(node: Apply) -> bool:
    """Return whether an operand is of floats: what integers are computed by may wrap around."""
    return node.inputs[0].type.dtype.startswith("float")


def has_minus_one(node: Apply) -> bool:
    """Return whether a dtype has the -1 that PyTensor multiplies by, without which it complains."""
    return node.inputs[0].type.dtype.startswith(("int", "float"))


def is_wide_float(node: Apply) -> bool:
    """Return whether a power with the float exponent that PyTensor takes has the same dtype."""
    return node.inputs[0].type.dtype in ("float32", "float64")


register_guarded(local_div_by_one, divides_exactly)
register_guarded(local_zero_div, has_zero_quotient)
register_guarded(local_0_dot_x, may_fit)
register_guarded(local_mul_specialize, lambda node: may_be_broadcast(node.inputs))
register_guarded(local_log1p, is_log_of_one_plus)
register_guarded(local_neg_to_mul, has_minus_one)
register_guarded(local_reciprocal_canon, is_wide_float)
for _rewrite in (local_abs_lift, local_useless_abs, local_useless_sign, local_sign_prod):
    register_guarded(_rewrite, takes_floats)
