"""Elementwise operations by other formulas.

PyMC folds parameters before a mode sees them: ``1 / 1.5`` is a float32 constant in a density. The
constants stay equal, for all modes; they only have a tag more.
"""

from collections.abc import Callable, Sequence
from functools import wraps

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter, copy_stack_trace
from pytensor.graph.type import Type
from pytensor.scalar import basic as ps
from pytensor.tensor.math import add, mul, neg, sub
from pytensor.tensor.rewriting.basic import unconditional_constant_folding
from pytensor.tensor.rewriting.elemwise import local_upcast_elemwise_constant_inputs
from pytensor.tensor.rewriting.math import (
    AlgebraicCanonizer,
    add_calculate,
    local_add_canonizer,
    local_mul_canonizer,
)
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pytensor_onnx.rewriting.engine.predicates import applies, number_of
from pytensor_onnx.rules import rewrites_graphs

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


class _Prefixes:
    """Longest prefixes of operand sequences with a known result."""

    def __init__(self) -> None:
        self._steps: dict[tuple[int, Variable], int] = {}
        self._results: dict[int, Variable] = {}

    def longest(self, operands: Sequence[Variable], dtype: str) -> tuple[int, Variable] | None:
        """Return the length of the longest prefix with a result of this dtype, and the result."""
        found, position = None, 0
        for length, operand in enumerate(operands[:-1], start=1):
            position = self._steps.get((position, operand), -1)
            result = self._results.get(position)
            if result is not None and result.type.dtype == dtype:
                found = length, result
        return found

    def add(self, operands: Sequence[Variable], result: Variable) -> None:
        """Record the result of an operation on all operands."""
        position = 0
        for operand in operands:
            position = self._steps.setdefault((position, operand), len(self._steps) + 1)
        self._results[position] = result


@rewrites_graphs(
    family="elementwise",
    purpose="compile time",
    identity="a + b + c and a + b = (a + b) + c",
    requires="the shorter sum is computed anyway",
    measured="benchmarks/NOTES.md, Compilation",
    begins_at=("add", "mul"),
)
def share_partial_sums(fgraph: FunctionGraph) -> None:
    """Compute a long sum or product from a shorter one that is in the graph anyway.

    PyTensor's canonical form flattens nested sums even if an inner one has other uses, as in a
    network of residual layers: the k-th layer then adds k terms instead of two.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, y, z = pt.vectors("x", "y", "z")
    >>> f = pytensor.function([x, y, z], [x + y, x + y + z], mode="ONNX")
    >>> [len(node.inputs) for node in f.maker.fgraph.toposort()]
    [2, 2]
    """
    known: dict[type, tuple[_Prefixes, _Prefixes]] = {}
    # Short ones first: no operand of a longer sum depends on a result computed from its prefix.
    for node in sorted(filter(_is_sum_or_product, fgraph.toposort()), key=lambda n: len(n.inputs)):
        starts, ends = known.setdefault(type(node.op.scalar_op), (_Prefixes(), _Prefixes()))
        operands, (result,) = list(node.inputs), node.outputs
        start = starts.longest(operands, result.type.dtype)
        end = ends.longest(operands[::-1], result.type.dtype)
        shared = None
        if start is not None and (end is None or start[0] >= end[0]):
            shared = node.op(start[1], *operands[start[0] :])
        elif end is not None:
            shared = node.op(*operands[: -end[0]], end[1])
        if shared is not None and shared.type == result.type:
            copy_stack_trace(result, shared)
            fgraph.replace(result, shared, reason="share_partial_sums")
            result = shared
        starts.add(operands, result)
        ends.add(operands[::-1], result)


def _is_sum_or_product(node: Apply) -> bool:
    return applies(node, ps.Add | ps.Mul) and len(node.inputs) > 1


# Bring equal sums into one form, whatever the signs of their terms.
#
# PyTensor's canonical form of a sum depends on the order of its rewrites: ``1 + (-x)``, ``1 - x``
# and ``1 + (-1) * x`` may each stay as written. A quotient cancels only if its divisor is the same
# variable, so the gradient of ``log1p(-p)``, which divides by ``1 + (-p)``, times that of a
# sigmoid, ``p * (1 - p)``, would be 0 / 0 if ``p`` is rounded to 1.


class SignedSumCanonizer(AlgebraicCanonizer):
    """PyTensor's canonizer of sums, with one difference of added and subtracted terms.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.printing import pprint
    >>> x, y, z = pt.vectors("x", "y", "z")
    >>> total = x + pt.constant([-1.0]) * (y - z)
    >>> graph = FunctionGraph([x, y, z], [total], clone=False)
    >>> [pprint(new) for new in sum_canonizer.transform(graph, total.owner)]
    ['((x + z) - y)']
    """

    def get_num_denum(self, inp: Variable) -> tuple[list[Variable], list[Variable]]:
        """Return the added and the subtracted terms."""
        added: list[Variable] = []
        subtracted: list[Variable] = []
        waiting = [(inp, False)]
        while waiting:
            sum_, is_negative = waiting.pop()
            for terms, sign in zip(
                super().get_num_denum(sum_), (is_negative, not is_negative), strict=True
            ):
                for term in terms:
                    opposite = negated(term)
                    if opposite is not None:
                        waiting.append((opposite, not sign))
                    else:
                        (subtracted if sign else added).append(term)
        return added, subtracted

    def transform(
        self, fgraph: FunctionGraph, node: Apply, enforce_tracks: bool = True
    ) -> list[Variable] | None:
        """Simplify a sum, with its subtracted terms in one difference."""
        simplified = super().transform(fgraph, node, enforce_tracks)
        if simplified:
            return simplified
        (out,) = node.outputs
        parts = [out] if node.op == add else node.inputs
        if not any(self.get_num_denum(part)[1] for part in parts):
            return None
        new = self.merge_num_denum(*self.get_num_denum(out))
        return [new] if new.type == out.type else None


def negated(variable: Variable) -> Variable | None:
    """Return x for a product ``-1 * x``, None for any other variable."""
    node = variable.owner
    if node is None or len(node.inputs) != 2 or node.op != mul:
        return None
    for factor, other in (node.inputs, reversed(node.inputs)):
        if number_of(factor) == -1 and other.type.dtype == variable.type.dtype:
            return other
    return None


sum_canonizer = SignedSumCanonizer(add, sub, neg, add_calculate)
