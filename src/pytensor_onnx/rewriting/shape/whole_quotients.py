"""Simplify sizes that are multiplied by a number and divided by it again.

A reshape with an open batch size computes it as the number of elements divided by the other sizes.
Simplified, it is recognised as the size of the batch, and needs no check.
"""

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.math import add, int_div, mul

from pytensor_onnx.rewriting.engine.predicates import size_of
from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [int_div],
    family="shape",
    purpose="size",
    identity="(6 * n) // 3 = 2 * n, (n - 3) // 2 = (n + 1) // 2 - 2",
    requires="n is the size of an axis, or computed from sizes",
    measured="benchmarks/NOTES.md, Rules that were merged",
)
def divide_sizes(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Divide multiples of sizes by a number, and sums of sizes where they are not negative.

    Products of other integers could have overflowed. The number of windows needs one division if
    its dividend is never negative.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.tensor("x", shape=(None, 2, 3))
    >>> program = export_onnx([x], x.reshape((-1, 6)).shape[0])
    >>> [node.op_type for node in program.model.graph]
    ['Shape', 'Squeeze']
    """
    dividend, divisor = node.inputs
    if dividend.owner is None or not _is_number(divisor) or node.outputs[0].type.dtype != "int64":
        return None
    numbers = [v for v in dividend.owner.inputs if _is_number(v)]
    sizes = [v for v in dividend.owner.inputs if not _is_number(v)]
    by = int(divisor.data)
    if len(numbers) != 1 or by <= 0:
        return None
    number = int(numbers[0].data)
    if dividend.owner.op == mul and len(sizes) == 1 and size_of(sizes[0]):
        if number % by:
            return None
        return [sizes[0] if number == by else sizes[0] * (number // by)]
    if dividend.owner.op == add and -(2**31) < number < 0 and all(map(_is_made_of_sizes, sizes)):
        times = -(number // by)
        rest = number + times * by
        terms = [*sizes, *([rest] if rest else [])]
        return [(add(*terms) if len(terms) > 1 else terms[0]) // divisor - times]
    return None


def _is_made_of_sizes(x: Variable, depth: int = 8) -> bool:
    if size_of(x):
        return True
    if x.owner is None or not depth or x.owner.op not in (add, mul, int_div):
        return False
    return all(_is_number(v) or _is_made_of_sizes(v, depth - 1) for v in x.owner.inputs)


def _is_number(x: Variable) -> bool:
    return isinstance(x, Constant) and x.type.ndim == 0
