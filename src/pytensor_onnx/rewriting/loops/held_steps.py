"""Tell whether the values of all steps of a loop take more memory than the arrays it is given."""

from collections.abc import Collection, Sequence

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.math import Dot

from pytensor_onnx.rewriting.loops.accumulations import is_short
from pytensor_onnx.rewriting.products.inlined_products import core_op

LARGEST_ROW = 1024
"""Number of elements of a step up to which those of all steps are computed at once."""


def are_held(values: Sequence[Variable], elements: Collection[Variable]) -> bool:
    """Return whether the values of all steps have about the size of the sequences.

    A loop holds the values of one step. Values with more axes than an element of a sequence are
    larger, unless they are known to be small. Values that all steps share are larger once they are
    repeated.

    Parameters
    ----------
    values
        Variables of the inner graph, computed for all steps.
    elements
        Elements of the sequences, and states that are known for all steps.
    """
    axes = max(map(_n_axes, elements), default=0)
    return all(
        _n_axes(x) <= axes or is_short(x, LARGEST_ROW)
        for x in [*values, *_changing(values, elements)]
    )


def _changing(values: Sequence[Variable], elements: Collection[Variable]) -> list[Variable]:
    """Return the results of a step, within the computation of values, that differ between steps."""
    changing = set(elements)
    results = []
    for node in toposort(values, blockers=elements):
        if not changing.isdisjoint(node.inputs):
            changing.update(node.outputs)
            results += node.outputs
    return results


def depends_on(value: Variable, elements: Collection[Variable]) -> bool:
    """Return whether a value of a step depends on elements of sequences."""
    return not set(elements).isdisjoint(ancestors([value], blockers=elements))


def factors_of_sum(term: Variable) -> list[Variable]:
    """Return the factors of a matrix product, whose sum over the steps is one product.

    Other terms are returned as they are.
    """
    node = term.owner
    return list(node.inputs) if node is not None and isinstance(core_op(node.op), Dot) else [term]


def _n_axes(value: Variable) -> int:
    """Return the number of axes that may have more than one element."""
    return sum(not is_one for is_one in value.type.broadcastable)
