"""Reuse shared results in sums and products that were flattened into long ones."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.scalar import basic as ps

from pytensor_onnx.rewriting.engine.predicates import applies
from pytensor_onnx.rules import rewrites_graphs


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
