"""Canonical forms of sums and products.

The canonical form of a nested sum is one sum of all terms, even if an inner sum has other uses. In
a network of residual layers, where the k-th layer is a sum of k terms, that takes quadratic time;
products, and sums within products, take more. Here, a sum or product of more than a few terms is
left as written if one of its inner results has other uses.
"""

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter
from pytensor.scalar import basic as ps
from pytensor.tensor.basic import constant
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import add, mul, neg, reciprocal, sub, true_div
from pytensor.tensor.rewriting.elemwise import local_upcast_elemwise_constant_inputs
from pytensor.tensor.rewriting.math import (
    local_greedy_distributor,
    local_mul_canonizer,
    local_sigm_times_exp,
)
from pytensor.tensor.variable import TensorConstant

from pytensor_onnx.rewriting.elementwise.arithmetic_guards import (
    has_rounded_product,
    has_unknown_operand,
    is_tiny,
    may_be_broadcast,
    may_be_number,
    sizes_follow_from_shapes,
)
from pytensor_onnx.rewriting.elementwise.formulas import negated, sum_canonizer
from pytensor_onnx.rewriting.engine.predicates import (
    Kinds,
    applies,
    made_by,
    quietly,
    without_leading_axes,
)
from pytensor_onnx.rules import rewrites_graphs, rewrites_nodes

MOST_TERMS = 32

SUMS: Kinds = ps.Add | ps.Sub | ps.Neg
PRODUCTS: Kinds = ps.Mul | ps.TrueDiv | ps.Reciprocal


@rewrites_nodes(
    [add, sub, neg],
    family="elementwise",
    purpose="compile time",
    identity="a + (b - a) = b",
    requires="short, or no shared inner sums",
    measured="benchmarks/NOTES.md, Compilation",
)
def canonize_sum(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Bring a sum into PyTensor's canonical form, unless it is long and shares results."""
    return _canonized(sum_canonizer, SUMS, fgraph, node)


@rewrites_nodes(
    [neg],
    family="elementwise",
    purpose="correctness",
    identity="-(-x) = x",
    ensures="log and sigmoid forms that are stable are recognised",
)
def drop_two_signs(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Remove two cancelling signs, which hide ``exp(-x)`` next to ``sigmoid(x)``."""
    opposite = negated(node.inputs[0])
    return [opposite] if opposite is not None and opposite.type == node.outputs[0].type else None


@rewrites_nodes(
    [mul, true_div, reciprocal],
    family="elementwise",
    purpose="compile time",
    identity="a * (b / a) = b",
    requires="short, or no shared inner products",
    measured="benchmarks/NOTES.md, Compilation",
)
def canonize_product(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Bring a product into PyTensor's canonical form, unless it is long and shares results."""
    return _canonized(local_mul_canonizer, PRODUCTS, fgraph, node)


@rewrites_nodes(
    [mul, true_div, reciprocal],
    family="elementwise",
    purpose="compile time",
    identity="c * (a + b / c) = c * a + b",
    requires="fewer operations; short, or no shared results",
)
def distribute_factors(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Expand sums if that saves operations, unless they are long and share results.

    PyTensor multiplies each sum by each other factor, so products of many factors are left alone.
    """
    factors = terms_of(fgraph, node.outputs[0], PRODUCTS) or []
    if len(factors) > MOST_TERMS:
        return None
    sums = [terms_of(fgraph, factor, SUMS) for factor in factors]
    if sums == [[factor] for factor in factors]:
        return None
    met: list[Variable] = []
    for term in (term for terms in sums for term in terms or [None]):
        products = None if term is None else terms_of(fgraph, term, PRODUCTS)
        if products is None:
            return None
        met += products
    if has_rounded_product(met):
        return None
    return quietly(local_greedy_distributor, fgraph, node) or _without_divisors(node)


def _without_divisors(node: Apply) -> list[Variable] | None:
    """Cancel a factor of a sum against the divisors of its terms: ``(a / x + b + c) * x``.

    PyTensor multiplies each of the other terms by the factor, and does so only if that saves
    operations. Here, the other terms are multiplied as a sum, ``a + (b + c) * x``, which always
    saves the division. The gradients of cross-entropies are thereby finite at probabilities of
    zero.
    """
    (out,) = node.outputs
    factors, divisors = local_mul_canonizer.get_num_denum(out)
    for i, total in enumerate(factors):
        others = factors[:i] + factors[i + 1 :]
        for factor in others:
            rest = list(others)
            rest.remove(factor)
            product = _multiplied(total, factor)
            if product is not None:
                new = local_mul_canonizer.merge_num_denum([product, *rest], divisors)
                return [new] if new.type == out.type else None
    return None


def _multiplied(total: Variable, factor: Variable) -> Variable | None:
    """Multiply a sum by a factor that divides some of its terms; None if it divides none."""
    cancelled: tuple[list[Variable], ...] = ([], [])
    others: tuple[list[Variable], ...] = ([], [])
    for terms, free, bound in zip(
        sum_canonizer.get_num_denum(total), cancelled, others, strict=True
    ):
        for term in terms:
            factors, divisors = local_mul_canonizer.get_num_denum(term)
            if factor in divisors:
                divisors.remove(factor)
                free.append(local_mul_canonizer.merge_num_denum(factors, divisors))
            else:
                bound.append(term)
    if not any(cancelled):
        return None
    added, subtracted = others
    if added:
        cancelled[0].append(mul(sum_canonizer.merge_num_denum(added, subtracted), factor))
    elif subtracted:
        cancelled[1].append(mul(sum_canonizer.merge_num_denum(subtracted, []), factor))
    return sum_canonizer.merge_num_denum(*cancelled)


@rewrites_nodes(
    [mul],
    family="elementwise",
    purpose="correctness",
    identity="sigmoid(x) * exp(-x) = sigmoid(-x)",
    ensures="no overflow of exp(-x)",
)
def multiply_sigmoids(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Simplify ``sigmoid(x) * exp(-x)``, unless in a long product of shared results."""
    if terms_of(fgraph, node.outputs[0], PRODUCTS) is None:
        return None
    return quietly(local_sigm_times_exp, fgraph, node) or None


def _canonized(
    canonizer: NodeRewriter, kinds: Kinds, fgraph: FunctionGraph, node: Apply
) -> list[Variable] | None:
    (out,) = node.outputs
    if not has_unknown_operand(node):
        return None
    # The enclosing sum or product is brought into canonical form as a whole.
    if any(applies(client, kinds) for client, _ in fgraph.clients[out]):
        return None
    terms = terms_of(fgraph, out, kinds)
    if terms is None or _is_canonical(node, terms) or not may_be_broadcast(terms):
        return None
    if not sizes_follow_from_shapes(terms):
        return None
    if kinds == PRODUCTS and (any(map(is_tiny, terms)) or has_rounded_product(terms)):
        return None
    return quietly(canonizer, fgraph, node) or None


def _is_canonical(node: Apply, terms: list[Variable]) -> bool:
    """Return whether the operands of a sum or product are its terms, with no number but the first.

    PyTensor would compute that number again, and find that nothing changes.
    """
    is_product = node.op == mul
    if not (is_product or node.op == add) or len(terms) != len(node.inputs):
        return False
    first, *others = operands = [without_leading_axes(x) for x in node.inputs]
    # The terms are listed from the last to the first.
    if operands != terms[::-1]:
        return False
    is_number = may_be_number if is_product else _is_constant
    if any(map(is_number, others)):
        return False
    absorbed = (0, 1) if is_product else (0,)
    return not is_number(first) or _stays(first, node.outputs[0].type.dtype, absorbed)


def _is_constant(term: Variable) -> bool:
    return term.owner is None and isinstance(term, Constant)


def _stays(number: Variable, dtype: str, absorbed: tuple[int, ...]) -> bool:
    """Return whether the canonical form keeps a number: it has the dtype and is not absorbed."""
    if not isinstance(number, TensorConstant) or number.type.dtype != dtype:
        return False
    value = number.unique_value
    return value is not None and value not in absorbed


def terms_of(fgraph: FunctionGraph, variable: Variable, kinds: Kinds) -> list[Variable] | None:
    """Return the terms of a nested sum or product.

    Parameters
    ----------
    fgraph
        Graph with the other uses of inner results.
    variable
        Sum or product; anything else is a term of its own.
    kinds
        Scalar operations to look through.

    Returns
    -------
    list of Variable or None
        The terms, with repetitions; None if there are more than `MOST_TERMS` and an inner result
        has other uses.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, y, z = pt.vectors("x", "y", "z")
    >>> graph = FunctionGraph([x, y, z], [x - (y + pt.exp(z))], clone=False)
    >>> [str(term) for term in terms_of(graph, graph.outputs[0], SUMS)]
    ['Exp.0', 'y', 'x']
    """
    terms: list[Variable] = []
    is_shared = False
    waiting = [variable]
    while waiting:
        reached = waiting.pop()
        node = reached.owner
        opposite = negated(reached) if kinds == SUMS else None
        if opposite is not None:
            waiting.append(opposite)
        elif node is None or not (applies(node, kinds) or _only_adds_leading_axes(node)):
            terms.append(reached)
        else:
            is_shared |= reached is not variable and len(fgraph.clients[reached]) > 1
            waiting.extend(node.inputs)
        if is_shared and len(terms) + len(waiting) > MOST_TERMS:
            return None
    return terms


def _only_adds_leading_axes(node: Apply) -> bool:
    return isinstance(node.op, DimShuffle) and node.op.is_left_expand_dims


# Give numbers the dtype and rank of their operands before equal constants are merged.
#
# PyTensor does the same in its canonical form, in quadratic time: when all zeros of a graph are one
# constant, a change of one use visits all others, and each new node copies the set of all
# variables. So it is done first, and in place. An operand changes once, and equal numbers share a
# constant.

REASON = "fit_numbers"


@rewrites_graphs(
    family="elementwise",
    purpose="compile time",
    identity="cast(2) and expand(2) = constants of the operand's dtype and rank",
    requires="numbers beside arrays",
    measured="benchmarks/NOTES.md, Compilation",
    begins_at=("Elemwise",),
)
def fit_numbers(fgraph: FunctionGraph) -> None:
    """Constant-fold casts and expansions of numbers.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> graph = FunctionGraph([x], [pt.maximum(x, 0)], clone=False)
    >>> fit_numbers.rewrite(graph)
    >>> graph.outputs[0].owner.inputs[1].type
    TensorType(float64, shape=(1, 1))
    """
    constants = _Constants()
    nodes = fgraph.toposort()
    for node in nodes:
        if applies(node):
            constants.fit_operands(fgraph, node)
    for node in nodes:
        if isinstance(node.op, DimShuffle) and node in fgraph.apply_nodes:
            data = _data(node.outputs[0])
            if data is not None and data.size == 1:
                fgraph.replace(node.outputs[0], constants.make(data), reason=REASON)


class _Constants:
    """The constants made for a graph, and the Elemwise nodes whose constants PyTensor upcasts."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, tuple[int, ...], bytes], TensorConstant] = {}
        self._upcast: dict[tuple[object, ...], bool] = {}

    def make(self, data: np.ndarray) -> TensorConstant:
        """Return a constant, the same for equal numbers."""
        if data.size != 1:
            return constant(data)
        key = (data.dtype.str, data.shape, data.tobytes())
        if key not in self._made:
            self._made[key] = constant(data)
        return self._made[key]

    def fit_operands(self, fgraph: FunctionGraph, node: Apply) -> None:
        """Give each constant operand the dtype of the result, and numbers the rank."""
        data = [_data(x) for x in node.inputs]
        if all(value is None for value in data):
            return
        upcast = self._is_upcast(fgraph, node, data)
        for i, (x, value) in enumerate(zip(node.inputs, data, strict=True)):
            if value is None:
                continue
            fitted = value.astype(node.outputs[0].type.dtype, copy=False) if upcast else value
            if x.owner is not None or fitted.dtype != value.dtype:
                # The type of the node stays, and only that of this operand changes.
                fgraph.change_node_input(node, i, self.make(fitted), reason=REASON, check=False)

    def _is_upcast(self, fgraph: FunctionGraph, node: Apply, data: list[np.ndarray | None]) -> bool:
        """Return whether PyTensor gives constants the dtype of the result of a node."""
        if all(value is None or value.dtype == node.outputs[0].type.dtype for value in data):
            return False
        operands = [
            (x.type.dtype, value is None) for x, value in zip(node.inputs, data, strict=True)
        ]
        key = (node.op, *operands)
        if key not in self._upcast:
            inputs = [
                x if value is None else constant(value)
                for x, value in zip(node.inputs, data, strict=True)
            ]
            twin = node.clone_with_new_inputs(inputs)
            self._upcast[key] = bool(local_upcast_elemwise_constant_inputs.transform(fgraph, twin))
        return self._upcast[key]


def _data(x: Variable) -> np.ndarray | None:
    """Return the values of a constant, or of a number that was given further axes."""
    if isinstance(x, TensorConstant):
        return x.data
    if added := made_by(x, DimShuffle):
        data = _data(added.inputs[0])
        if data is not None and data.size == 1:
            return data.reshape((1,) * x.type.ndim)
    return None
