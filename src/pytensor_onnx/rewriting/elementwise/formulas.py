"""Formulas of constants that PyTensor folds in float32, so that float64 can be computed later.

PyMC folds parameters before a mode sees them: ``1 / 1.5`` is a float32 constant in a density. The
constants stay equal, for all modes; they only have a tag more.
"""

from collections.abc import Callable, Sequence
from functools import wraps

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter
from pytensor.graph.type import Type
from pytensor.tensor.rewriting.basic import unconditional_constant_folding
from pytensor.tensor.rewriting.elemwise import local_upcast_elemwise_constant_inputs
from pytensor.tensor.rewriting.math import (
    AlgebraicCanonizer,
    local_add_canonizer,
    local_mul_canonizer,
)
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

type Terms = tuple[list[Variable], list[Variable]]

NARROW, WIDE = ("float16", "float32"), "float64"
LARGEST = 4096
"""Number of elements of a constant up to which it remembers its formula, and so its operands."""


def remember_formulas() -> None:
    """Have the constants of PyTensor's rewrites remember the formulas that they replace.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.graph.rewriting.utils import rewrite_graph
    >>> folded = rewrite_graph(1 / pt.constant(1.5))
    >>> folded.data.dtype, str(formula_of(folded).owner)
    (dtype('float32'), 'True_div(1.0, 1.5)')
    """
    _remember_of(unconditional_constant_folding, _results)
    _remember_of(local_upcast_elemwise_constant_inputs, _operands)
    for canonizer in (local_add_canonizer, local_mul_canonizer):
        canonizer.simplify_constants = _remembering(canonizer)


def formula_of(x: Variable) -> Variable | None:
    """Return the formula that a constant replaced, or None if float64 gives the same number."""
    formula: Variable | None = getattr(x.tag, "formula", None)
    return formula


def is_number(x: Variable) -> bool:
    """Return whether a variable has a real float dtype."""
    return isinstance(x.type, TensorType) and x.type.dtype in (*NARROW, WIDE)


def is_narrow(x: Variable) -> bool:
    """Return whether a variable has a float dtype narrower than float64."""
    return isinstance(x.type, TensorType) and x.type.dtype in NARROW


def _results(node: Apply, results: Sequence[Variable]) -> None:
    for old, new in zip(node.outputs, results, strict=True):
        if _may_differ(new, node.inputs):
            new.tag.formula = old


def _operands(node: Apply, results: Sequence[Variable]) -> None:
    for result in results:
        for old, new in zip(node.inputs, result.owner.inputs, strict=True):
            if new is not old and _may_differ(new, [old]):
                new.tag.formula = old


def _remember_of(
    rewriter: FromFunctionNodeRewriter, note: Callable[[Apply, Sequence[Variable]], None]
) -> None:
    rewrite = rewriter.fn

    @wraps(rewrite)
    def rewrite_and_note(fgraph: FunctionGraph, node: Apply) -> Sequence[Variable] | bool | None:
        results: Sequence[Variable] | bool | None = rewrite(fgraph, node)
        if isinstance(results, Sequence):
            note(node, results)
        return results

    rewriter.fn = rewrite_and_note


def _remembering(canonizer: AlgebraicCanonizer) -> Callable[..., Terms]:
    """Wrap PyTensor's method that merges constants, so that the result remembers its formula."""
    simplify = canonizer.simplify_constants

    @wraps(simplify)
    def simplify_and_note(num: list, denum: list, out_type: Type | None = None) -> Terms:
        results: Terms = simplify(num, denum, out_type)
        new = results[0][0] if results[0] else None
        if isinstance(new, Constant) and all(new is not v for v in num):
            terms = [[v for v in part if _is_one_number(v)] for part in (num, denum)]
            if _may_differ(new, [*terms[0], *terms[1]]):
                formula = canonizer.merge_num_denum(*terms)
                # PyTensor takes an array of equal elements for one number.
                axes = (0,) * (formula.ndim - new.ndim)
                new.tag.formula = formula[axes] if axes else formula
        return results

    return simplify_and_note


def _is_one_number(x: Variable) -> bool:
    """Return whether all elements of a constant are equal; PyTensor joins these alone."""
    return isinstance(x, TensorConstant) and x.unique_value is not None


def _may_differ(new: Variable, operands: Sequence[Variable]) -> bool:
    """Return whether a constant folded from narrow operands may change if these are float64."""
    if not isinstance(new, Constant) or not is_number(new) or new.data.size > LARGEST:
        return False
    return is_narrow(new) or any(is_narrow(v) or formula_of(v) is not None for v in operands)
