"""Bring equal sums into one form, whatever the signs of their terms.

PyTensor's canonical form of a sum depends on the order of its rewrites: ``1 + (-x)``, ``1 - x`` and
``1 + (-1) * x`` may each stay as written. A quotient cancels only if its divisor is the same
variable, so the gradient of ``log1p(-p)``, which divides by ``1 + (-p)``, times that of a sigmoid,
``p * (1 - p)``, would be 0 / 0 if ``p`` is rounded to 1.
"""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.math import add, mul, neg, sub
from pytensor.tensor.rewriting.math import AlgebraicCanonizer, add_calculate

from pytensor_onnx.rewriting.engine.predicates import number_of


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
