"""Write sums of incremented arrays as increments of one array, one for each index.

The gradient in the elements of a vector is such a sum, with an array of zeros for each element
that is read. PyTensor's `local_IncSubtensor_serialize` moves one increment past one addition at a
time: quadratically many steps for n terms, and n increments where few elements are read. Here a
whole sum is rewritten at once.
"""

from collections.abc import Hashable, Sequence

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.tensor.math import add, variadic_add
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor

from pytensor_onnx.rewriting.engine.predicates import filling_of, made_by, only_client
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [add],
    name="join_writes",
    family="indexing",
    purpose="compile time",
    identity="inc(x, a, i) + inc(y, b, j) = inc(inc(x + y, a, i), b, j), and "
    "set(set(x, a, i), b, i) = set(x, b, i)",
    ensures="n steps for n writes where PyTensor takes n²",
    begins_at=("add", "IncSubtensor", "AdvancedIncSubtensor"),
)
def join_increments(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Write a sum of incremented arrays as increments of the sum of the arrays."""
    result = node.outputs[0]
    if _is_term(fgraph, result):
        return None
    terms, increments = _parts(fgraph, node)
    if not increments:
        return None
    total = variadic_add(*terms)
    copy_stack_trace(result, total)
    for increment, value in _joined(increments):
        total = increment.owner.op(total, value, *increment.owner.inputs[2:])
        copy_stack_trace([result, increment], total)
    return [total]


def _is_term(fgraph: FunctionGraph, x: Variable) -> bool:
    """Return whether a sum is a term of another one, which is rewritten with it."""
    client = only_client(fgraph, x)
    return client is not None and client.op == add and x.type.is_super(client.outputs[0].type)


def _parts(fgraph: FunctionGraph, node: Apply) -> tuple[list[Variable], list[Variable]]:
    """Return the arrays that a sum adds, and the increments of those, both in order."""
    whole = node.outputs[0].type
    terms: list[Variable] = []
    zeros: list[Variable] = []
    increments: list[Variable] = []
    left = list(reversed(node.inputs))
    while left:
        x = left.pop()
        is_inner = only_client(fgraph, x) and x.owner is not None and x.owner.op == add
        if is_inner and x.type.is_super(whole):
            left.extend(reversed(x.owner.inputs))
            continue
        chain = _increments_of(fgraph, x) if x.type.is_super(whole) else []
        base = chain[0].owner.inputs[0] if chain else x
        (zeros if chain and filling_of(base) == 0 else terms).append(base)
        increments.extend(chain)
    return terms + zeros[:1], increments


def _increments_of(fgraph: FunctionGraph, x: Variable) -> list[Variable]:
    """Return the increments of an array that only the next of them reads, first to last."""
    chain = []
    while only_client(fgraph, x) and (write := made_by(x, IncSubtensor | AdvancedIncSubtensor)):
        if write.op.set_instead_of_inc:
            break
        chain.append(x)
        x = write.inputs[0]
    return chain[::-1]


def _joined(increments: Sequence[Variable]) -> list[tuple[Variable, Variable]]:
    """Return an increment of each index, and the sum of all values that are added there."""
    groups: dict[Hashable, list[Variable]] = {}
    for increment in increments:
        groups.setdefault(_place(increment), []).append(increment)
    return [
        (group[0], variadic_add(*(increment.owner.inputs[1] for increment in group)))
        for group in groups.values()
    ]


def _place(increment: Variable) -> Hashable:
    """Return the common key of increments whose values may be added first.

    An index may broadcast values of unknown size, and a narrow sum may wrap around.
    """
    value, *indices = increment.owner.inputs[1:]
    if None in value.type.shape or value.type.dtype != increment.type.dtype:
        return increment
    key = (i.signature() if isinstance(i, Constant) else i for i in indices)
    return increment.owner.op, value.type.shape, *key
