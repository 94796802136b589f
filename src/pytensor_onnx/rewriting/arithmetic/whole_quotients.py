"""Simplify sizes that are multiplied by a number and divided by it again.

A reshape with an open batch size computes it as the number of elements divided by the other sizes.
Simplified, it is recognised as the size of the batch, and needs no check.
"""

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import cast, switch
from pytensor.tensor.math import add, eq, int_div, mul
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor

from pytensor_onnx.rules import rewrites_nodes


@rewrites_nodes(
    [int_div],
    family="shape",
    purpose="size",
    identity="(6 * n) // 3 = 2 * n",
    requires="n is the size of an axis",
)
def divide_multiple(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``(6 * n) // 3`` by ``2 * n``, where n is the size of an axis.

    Other integers could have overflowed.
    """
    product, divisor = node.inputs
    if product.owner is None or product.owner.op != mul or not _is_number(divisor):
        return None
    sizes = [v for v in product.owner.inputs if not _is_number(v)]
    numbers = [v for v in product.owner.inputs if _is_number(v)]
    if len(sizes) != 1 or len(numbers) != 1 or not _is_size(sizes[0]):
        return None
    factor, by = int(numbers[0].data), int(divisor.data)
    if by <= 0 or factor % by or node.outputs[0].type.dtype != "int64":
        return None
    return [sizes[0] if factor == by else sizes[0] * (factor // by)]


@rewrites_nodes(
    [switch],
    family="shape",
    purpose="size",
    identity="switch(n == -1, rest, n) = n",
    requires="n is the size of an axis",
)
def choose_given_size(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``switch(n == -1, rest, n)``, where n is the size of an axis, by n.

    PyTensor tests each size of a reshape for -1, which stands for the remaining size.
    """
    condition, _, size = node.inputs
    if condition.owner is None or condition.owner.op != eq or not _is_size(size):
        return None
    others = [v for v in condition.owner.inputs if v is not size]
    if len(others) != 1 or not _is_number(others[0]) or others[0].data >= 0:
        return None
    return [cast(size, node.outputs[0].type.dtype)]


@rewrites_nodes(
    [int_div],
    family="shape",
    purpose="size",
    identity="(n - 3) // 2 = (n + 1) // 2 - 2",
    requires="n is computed from sizes",
)
def divide_sum(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``(n - 3) // 2`` by ``(n + 1) // 2 - 2``, where n is computed from sizes.

    The dividend is then never negative, so the number of windows needs one division.
    """
    total, divisor = node.inputs
    if total.owner is None or total.owner.op != add or not _is_number(divisor):
        return None
    numbers = [v for v in total.owner.inputs if _is_number(v)]
    others = [v for v in total.owner.inputs if not _is_number(v)]
    if len(numbers) != 1 or not all(map(_is_made_of_sizes, others)):
        return None
    number, by = int(numbers[0].data), int(divisor.data)
    if by <= 0 or not -(2**31) < number < 0 or node.outputs[0].type.dtype != "int64":
        return None
    times = -(number // by)
    rest = number + times * by
    total = add(*others, *([rest] if rest else [])) if rest or len(others) > 1 else others[0]
    return [total // divisor - times]


def _is_made_of_sizes(x: Variable, depth: int = 8) -> bool:
    if _is_size(x):
        return True
    if x.owner is None or not depth or x.owner.op not in (add, mul, int_div):
        return False
    return all(_is_number(v) or _is_made_of_sizes(v, depth - 1) for v in x.owner.inputs)


def _is_number(x: Variable) -> bool:
    return isinstance(x, Constant) and x.type.ndim == 0


def _is_size(x: Variable) -> bool:
    if x.owner is None:
        return False
    if isinstance(x.owner.op, Shape_i):
        return True
    shape = x.owner.inputs[0].owner
    return isinstance(x.owner.op, Subtensor) and shape is not None and isinstance(shape.op, Shape)
