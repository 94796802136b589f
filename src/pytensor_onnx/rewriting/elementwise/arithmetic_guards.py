"""Conditions under which PyTensor's arithmetic rewrites preserve the result."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar.basic import Cast, Neg, Second
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, add, int_div, sub, true_div
from pytensor.tensor.rewriting.basic import local_elemwise_alloc
from pytensor.tensor.rewriting.math import (
    local_0_dot_x,
    local_abs_lift,
    local_add_remove_zeros,
    local_div_by_one,
    local_log1p,
    local_mul_specialize,
    local_neg_to_mul,
    local_pow_to_nested_squaring,
    local_reciprocal_canon,
    local_useless_abs,
    local_zero_div,
)
from pytensor.tensor.shape import Shape, Shape_i

from pytensor_onnx.ops.elementwise import ChooseFrom
from pytensor_onnx.rewriting.engine.predicates import (
    applies,
    are_constants,
    elementwise,
    guard,
    made_by,
    number_of,
)
from pytensor_onnx.rules import rewrites_nodes

_LARGEST_EXACT = 2**53
"""Largest integer up to which all integers are exact in float64."""


def divides_exactly(node: Apply) -> bool:
    """Return whether a division by one preserves its operand: floor division of floats rounds."""
    return node.op != int_div or not node.outputs[0].type.dtype.startswith("float")


@rewrites_nodes(
    [true_div, int_div],
    family="elementwise",
    purpose="correctness",
    identity="0 / y = where(y == 0 or isnan(y), NaN, 0), x / 0 = ±inf or NaN by the sign of x",
    requires="a written zero and floats",
    measured="docs/project/upstream.md#zero-divided-by-zero-is-a-number",
)
def zero_quotient(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Choose among the few values of a quotient that is written with a zero.

    PyTensor's rewrites take any ``0 / y`` for zero, and make it of ``1 / (y / 0)``. That is right
    for the others, whose zero is the derivative of a value that is masked or overwritten.
    """
    numerator, divisor = node.inputs
    dtype = node.outputs[0].type.dtype
    if not (has_unknown_operand(node) and dtype.startswith("float")):
        return None
    nan = np.asarray(np.nan, dtype)
    if _is_written_zero(numerator):
        has_none = pt.or_(pt.eq(divisor, 0), pt.isnan(divisor))
        result = pt.switch(has_none, nan, pt.cast(numerator, dtype))
    elif node.op == true_div and _is_written_zero(divisor):
        # Folded, as the divisor is a constant. The zero has a sign.
        infinity = pt.reciprocal(pt.cast(divisor, dtype))
        result = pt.switch(
            pt.gt(numerator, 0), infinity, pt.switch(pt.lt(numerator, 0), -infinity, nan)
        )
    else:
        return None
    copy_stack_trace(node.outputs[0], result)
    return [node.outputs[0].type.filter_variable(result, allow_convert=True)]


def _is_written_zero(x: Variable) -> bool:
    """Return whether a variable is a constant zero, cast or expanded to fit other operands."""
    while (node := x.owner) and (isinstance(node.op, DimShuffle) or applies(node, Cast)):
        (x,) = node.inputs
    return isinstance(x, Constant) and x.data.size > 0 and not np.any(x.data)


def has_unknown_operand(node: Apply) -> bool:
    """Return whether an operand is no constant; constants are folded as written.

    PyTensor replaces the quotient of a number and itself by one.
    """
    return not are_constants(node)


def is_tiny(factor: Variable) -> bool:
    """Return whether the reciprocal of a factor overflows, by which PyTensor would multiply."""
    if not isinstance(factor, Constant) or not factor.type.dtype.startswith("float"):
        return False
    with np.errstate(divide="ignore", over="ignore"):
        return bool(np.any(np.isinf(1 / factor.data) & (factor.data != 0)))


def has_rounded_product(factors: Iterable[Variable]) -> bool:
    """Return whether float64 may round the product of the constant integers among factors.

    PyTensor divides that product by one.
    """
    constants = [x for x in factors if isinstance(x, Constant) and "int" in x.type.dtype]
    ends = ((int(x.data.min()), int(x.data.max())) for x in constants if x.data.size)
    return prod(max(1, -lowest, highest) for lowest, highest in ends) > _LARGEST_EXACT


def may_fit(node: Apply) -> bool:
    """Return whether a matrix product may be replaced by an operation without a size check.

    Known sizes may differ, for instance with a shared variable whose value does not fit. A size of
    one would broadcast against any other size.
    """
    columns, rows = node.inputs[0].type.shape[-1], node.inputs[1].type.shape[-2:][0]
    return columns == rows or (None in (columns, rows) and 1 not in (columns, rows))


def may_be_zero_product(node: Apply) -> bool:
    """Return whether an operand of a matrix product may be zeros, and `may_fit` holds.

    PyTensor looks for the number that each matrix consists of, through all of its operations, which
    took 7 % of the rewriting of dense layers.
    """
    return any(map(may_be_number, node.inputs)) and may_fit(node)


def may_be_number(x: Variable) -> bool:
    """Return whether an array may be filled with one number."""
    if x.owner is None:
        return isinstance(x, Constant)
    op = x.owner.op
    # PyTensor's other rewrites bring a number out of arithmetic.
    return isinstance(op.scalar_op, Second) if isinstance(op, Elemwise) else not isinstance(op, Dot)


def may_be_broadcast(operands: Sequence[Variable]) -> bool:
    """Return whether known sizes agree: a product with zeros has the shape of one operand."""
    axes = zip_longest(*(x.type.shape[::-1] for x in operands))
    return all(len({*sizes} - {None, 1}) <= 1 for sizes in axes)


def is_log_of_one_plus(node: Apply) -> bool:
    """Return whether a ``log`` has an argument of exactly one plus a float.

    Integers wrap around, and PyTensor treats constants up to ten units in the last place from one
    as one.
    """
    x = node.inputs[0]
    if x.owner is None or x.owner.op not in (add, sub) or not x.type.dtype.startswith("float"):
        return False
    constants = [operand.data for operand in x.owner.inputs if isinstance(operand, Constant)]
    return bool(constants) and bool(np.all(sum(constants) == 1))


def takes_floats(node: Apply) -> bool:
    """Return whether an operand is a float: arithmetic on integers may wrap around."""
    return node.inputs[0].type.dtype.startswith("float")


def has_minus_one(node: Apply) -> bool:
    """Return whether a dtype has the number -1, by which PyTensor multiplies."""
    return node.inputs[0].type.dtype.startswith(("int", "float"))


def sizes_follow_from_shapes(operands: Iterable[Variable]) -> bool:
    """Return whether the sizes of filled operands are constants or sizes of arrays.

    Without a filled operand nothing compares its sizes with those of the other operands: sizes
    that come from an integer may differ from theirs.
    """
    waiting = [
        size
        for x in operands
        if (filled := made_by(x, Alloc)) is not None
        for size in filled.inputs[1:]
    ]
    while waiting:
        size = waiting.pop()
        if size.owner is None and not isinstance(size, Constant):
            return False
        if size.owner is not None and not isinstance(size.owner.op, Shape | Shape_i):
            waiting += size.owner.inputs
    return True


def may_be_specialized(node: Apply) -> bool:
    """Return whether sizes broadcast, and the dtype has the sign of negated factors."""
    has_sign = has_minus_one(node) or not any(elementwise(x, Neg) for x in node.inputs)
    return has_sign and may_be_broadcast(node.inputs) and sizes_follow_from_shapes(node.inputs)


def has_finite_exponent(node: Apply) -> bool:
    """Return whether the exponent of a power is finite, as PyTensor makes it an integer."""
    exponent = number_of(node.inputs[1])
    return exponent is None or bool(np.isfinite(exponent))


def is_wide_float(node: Apply) -> bool:
    """Return whether a power with PyTensor's float exponent keeps the dtype of its base."""
    return node.inputs[0].type.dtype in ("float32", "float64")


GUARDS = (
    guard(
        local_elemwise_alloc,
        lambda node: sizes_follow_from_shapes(node.inputs),
        family="elementwise",
        purpose="correctness",
        identity="f(alloc(a, n), x) = f(a, x)",
        requires="n is a size of an array",
        measured="docs/project/upstream.md#zeros-of-another-size-are-dropped-from-a-sum",
    ),
    guard(
        local_add_remove_zeros,
        lambda node: sizes_follow_from_shapes(node.inputs),
        family="elementwise",
        purpose="correctness",
        identity="x + 0 = x",
        requires="the zeros have no size of their own",
        measured="docs/project/upstream.md#zeros-of-another-size-are-dropped-from-a-sum",
    ),
    guard(
        local_div_by_one,
        divides_exactly,
        family="elementwise",
        purpose="correctness",
        identity="x / 1 = x",
        requires="no floor division of floats",
        measured="docs/project/upstream.md#floor-division-by-one-does-not-round",
    ),
    guard(
        local_zero_div,
        has_unknown_operand,
        family="elementwise",
        purpose="correctness",
        identity="0 / x = 0",
        requires="x is no constant",
        measured="docs/project/upstream.md#zero-divided-by-zero-is-a-number",
    ),
    guard(
        local_0_dot_x,
        may_be_zero_product,
        family="products",
        purpose="correctness",
        identity="0 @ X = 0",
        requires="inner sizes may be equal, and an operand may be zeros",
        measured="docs/project/upstream.md#products-with-structured-matrices-check-no-sizes",
    ),
    guard(
        local_mul_specialize,
        may_be_specialized,
        family="elementwise",
        purpose="correctness",
        identity="0 * x = 0, x * 1 = x, …",
        requires="known sizes of the operands broadcast, and no negative of unsigned integers",
        measured="docs/project/upstream.md#products-with-structured-matrices-check-no-sizes",
    ),
    guard(
        local_log1p,
        is_log_of_one_plus,
        family="elementwise",
        purpose="correctness",
        identity="log(1 + x) = log1p(x)",
        requires="exactly one, and floats",
        measured="docs/project/upstream.md#the-logarithm-of-a-sum-with-nearly-one-is-log1p",
    ),
    guard(
        local_neg_to_mul,
        has_minus_one,
        family="elementwise",
        purpose="correctness",
        identity="-x = -1 * x",
        requires="the dtype has -1",
        measured="docs/project/upstream.md#negatives-of-unsigned-integers-fail-to-rewrite",
    ),
    guard(
        local_pow_to_nested_squaring,
        has_finite_exponent,
        family="elementwise",
        purpose="correctness",
        identity="x ** 4 = (x ** 2) ** 2",
        requires="a finite exponent",
        measured="docs/project/upstream.md#powers-with-an-infinite-exponent-fail-to-rewrite",
    ),
    guard(
        local_reciprocal_canon,
        is_wide_float,
        family="elementwise",
        purpose="correctness",
        identity="1 / x = x ** -1.0",
        requires="x is float32 or float64",
        measured="docs/project/upstream.md#negatives-of-unsigned-integers-fail-to-rewrite",
    ),
    guard(
        local_abs_lift,
        takes_floats,
        family="elementwise",
        purpose="correctness",
        identity="abs(x * y) = abs(x) * abs(y)",
        requires="floats, as integers may wrap around",
        measured="docs/project/upstream.md#rewrites-of-integers-do-not-wrap-around",
    ),
    guard(
        local_useless_abs,
        takes_floats,
        family="elementwise",
        purpose="correctness",
        identity="abs(x ** 2) = x ** 2",
        requires="floats, as integers may wrap around",
        measured="docs/project/upstream.md#rewrites-of-integers-do-not-wrap-around",
    ),
)


def chosen_of_any_shape(node: Apply) -> Sequence[Variable] | None:
    """Return a `choose` of known shape, or None if the choices are no literal list.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> chosen = pt.choose(pt.lvector(), pt.matrices("xy"))
    >>> chosen.type.ndim, chosen_of_any_shape(chosen.owner)[0].type.ndim
    (1, 2)
    """
    # A node that chooses has loaded it already; alone it loads PyTensor's debug mode.
    from pytensor.typed_list.basic import MakeList

    numbers, choices = node.inputs
    made = made_by(choices, MakeList)
    if made is None and not hasattr(choices.type, "ndim"):
        return None
    arrays = [choices] if made is None else made.inputs
    results: Sequence[Variable]
    results = ChooseFrom(node.op.mode, is_stacked=made is None).make_node(numbers, *arrays).outputs
    return results
