"""PyTensor's canonical sums and products, in a time that is linear in the size of a graph.

The canonical form of a sum of sums is one sum of all terms, even where a sum within it is used
elsewhere. In a network of residual layers, where the k-th layer is a sum of k terms, that takes
quadratic time; with products, and sums within products, it grows faster. Here, sums and products of
more than a few terms are left as they are, if results that have other uses are among them.
"""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import NodeRewriter, node_rewriter
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import add, mul, neg, reciprocal, sub, true_div
from pytensor.tensor.rewriting.math import (
    local_greedy_distributor,
    local_mul_canonizer,
    local_sigm_times_exp,
)

from pytensor_onnx.rewriting.guarded_arithmetic import (
    has_rounded_product,
    has_unknown_operand,
    is_divided_zero,
    is_tiny,
    may_be_broadcast,
)
from pytensor_onnx.rewriting.signed_sums import negated, sum_canonizer

MOST_TERMS = 32

Kinds = tuple[type[ps.ScalarOp], ...]
SUMS: Kinds = (ps.Add, ps.Sub, ps.Neg)
PRODUCTS: Kinds = (ps.Mul, ps.TrueDiv, ps.Reciprocal)


@node_rewriter([add, sub, neg])
def canonize_sum(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Bring a sum into PyTensor's canonical form, if it is not a long one of shared results."""
    return _canonized(sum_canonizer, SUMS, fgraph, node)


@node_rewriter([neg])
def drop_two_signs(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the negative of a product with -1, which hides ``exp(-x)`` beside ``sigmoid(x)``."""
    opposite = negated(node.inputs[0])
    return [opposite] if opposite is not None and opposite.type == node.outputs[0].type else None


@node_rewriter([mul, true_div, reciprocal])
def canonize_product(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Bring a product into PyTensor's canonical form, if it is not a long one of shared results."""
    return _canonized(local_mul_canonizer, PRODUCTS, fgraph, node)


@node_rewriter([mul, true_div, reciprocal])
def distribute_factors(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Multiply sums out where that saves operations, unless they are long and of shared results."""
    factors = terms_of(fgraph, node.outputs[0], PRODUCTS) or []
    sums = [terms_of(fgraph, factor, SUMS) for factor in factors]
    met: list[Variable] = []
    for term in (term for terms in sums for term in terms or [None]):
        products = None if term is None else terms_of(fgraph, term, PRODUCTS)
        if products is None:
            return None
        met += products
    if has_rounded_product(met):
        return None
    if sums == [[factor] for factor in factors]:
        return None
    return local_greedy_distributor.transform(fgraph, node) or _without_divisors(node)


def _without_divisors(node: Apply) -> list[Variable] | None:
    """Cancel a factor of a sum against the terms that are divided by it: ``(a / x + b + c) * x``.

    PyTensor does so if that saves operations, the others being multiplied one by one. Here, they
    are multiplied as a sum, ``a + (b + c) * x``, which always saves the division; without it, the
    gradients of cross-entropies are finite where probabilities are zero.
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
    """Multiply a sum by a factor that some of its terms are divided by, None if there are none."""
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


@node_rewriter([mul])
def multiply_sigmoids(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Simplify ``sigmoid(x) * exp(-x)``, if not in a long product of shared results."""
    if terms_of(fgraph, node.outputs[0], PRODUCTS) is None:
        return None
    return local_sigm_times_exp.transform(fgraph, node) or None


def _canonized(
    canonizer: NodeRewriter, kinds: Kinds, fgraph: FunctionGraph, node: Apply
) -> list[Variable] | None:
    (out,) = node.outputs
    if not has_unknown_operand(node):
        return None
    # What takes this in is brought into canonical form as a whole.
    if any(_is_of_kind(client, kinds) for client, _ in fgraph.clients[out]):
        return None
    terms = terms_of(fgraph, out, kinds)
    if terms is None or not may_be_broadcast(terms):
        return None
    if kinds == PRODUCTS and (
        any(is_tiny(x) or is_divided_zero(fgraph, x) for x in terms) or has_rounded_product(terms)
    ):
        return None
    return canonizer.transform(fgraph, node) or None


def terms_of(fgraph: FunctionGraph, variable: Variable, kinds: Kinds) -> list[Variable] | None:
    """Return what a nested sum or product consists of.

    Parameters
    ----------
    fgraph
        Graph that says what else uses the results within it.
    variable
        Sum or product; anything else is a term of its own.
    kinds
        Scalar operations to look through.

    Returns
    -------
    list of Variable or None
        The terms, with repetitions; None where there are more than `MOST_TERMS` and a result taken
        in has other uses.

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
        elif node is None or not (_is_of_kind(node, kinds) or _only_adds_leading_axes(node)):
            terms.append(reached)
        else:
            is_shared |= reached is not variable and len(fgraph.clients[reached]) > 1
            waiting.extend(node.inputs)
        if is_shared and len(terms) + len(waiting) > MOST_TERMS:
            return None
    return terms


def _is_of_kind(node: Apply, kinds: Kinds) -> bool:
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, kinds)


def _only_adds_leading_axes(node: Apply) -> bool:
    return isinstance(node.op, DimShuffle) and node.op.is_left_expand_dims


for rewrite in (canonize_sum, canonize_product, distribute_factors):
    optdb["canonicalize"].register(rewrite.__name__, rewrite, "onnx")
for rewrite in (drop_two_signs, distribute_factors, multiply_sigmoids):
    optdb["stabilize"].register(rewrite.__name__, rewrite, "onnx")
