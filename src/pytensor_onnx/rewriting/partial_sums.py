"""Sums and products that were flattened into long ones take up again the results they share."""

from collections.abc import Sequence

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, graph_rewriter
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import Elemwise


class _Beginnings:
    """Finds the longest beginning of a sequence of operands that was computed already."""

    def __init__(self) -> None:
        self._steps: dict[tuple[int, Variable], int] = {}
        self._results: dict[int, Variable] = {}

    def longest(self, operands: Sequence[Variable], dtype: str) -> tuple[int, Variable] | None:
        """Return how many of the first operands a known result of this dtype stands for, and it."""
        found, position = None, 0
        for length, operand in enumerate(operands[:-1], start=1):
            position = self._steps.get((position, operand), -1)
            result = self._results.get(position)
            if result is not None and result.type.dtype == dtype:
                found = length, result
        return found

    def add(self, operands: Sequence[Variable], result: Variable) -> None:
        """Note the result of an operation on all of the operands."""
        position = 0
        for operand in operands:
            position = self._steps.setdefault((position, operand), len(self._steps) + 1)
        self._results[position] = result


@graph_rewriter
def share_partial_sums(fgraph: FunctionGraph) -> None:
    """Compute a long sum or product from a shorter one that the graph has anyway.

    PyTensor's canonical form flattens nested sums even where an inner one is used elsewhere, as in
    a network of residual layers: the k-th layer then adds k terms instead of two.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> x, y, z = pt.vectors("x", "y", "z")
    >>> f = pytensor.function([x, y, z], [x + y, x + y + z], mode="ONNX")
    >>> [len(node.inputs) for node in f.maker.fgraph.toposort()]
    [2, 2]
    """
    known: dict[type, tuple[_Beginnings, _Beginnings]] = {}
    # Short ones first: no operand of a longer one can depend on what is computed from a part of it.
    for node in sorted(filter(_is_sum_or_product, fgraph.toposort()), key=lambda n: len(n.inputs)):
        starts, ends = known.setdefault(type(node.op.scalar_op), (_Beginnings(), _Beginnings()))
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
    return (
        isinstance(node.op, Elemwise)
        and isinstance(node.op.scalar_op, ps.Add | ps.Mul)
        and len(node.inputs) > 1
    )


# After all that flattens sums, and before our own rewrites.
optdb.register("onnx_share_partial_sums", share_partial_sums, "onnx", position=47.9)
