"""Bound sizes that are computed from lengths, such as those of PyTensor's buffers of loops."""

from collections.abc import Callable
from math import inf

from pytensor.graph.basic import Variable
from pytensor.scalar import basic as ps

from pytensor_onnx.rewriting.engine.predicates import integer_of, scalar_op_of, size_of
from pytensor_onnx.rewriting.loops.known_lengths import unwrapped

type Bounds = tuple[float, float]

_UNKNOWN: Bounds = (-inf, inf)


def bounds_of(size: Variable) -> Bounds:
    """Return the least and the largest value of an integer, as far as its graph tells.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.tensor.shape import Shape_i
    >>> n = Shape_i(0)(pt.vector("x"))
    >>> bounds_of(pt.minimum(n + 1, 1)), bounds_of(n - 1)
    ((1, 1), (-inf, inf))
    """
    size = unwrapped(size)
    if (number := integer_of(size)) is not None:
        return number, number
    if size_of(size):
        return 0, inf
    node = size.owner
    rule = None if node is None else _RULES.get(type(scalar_op_of(node.op)))
    if rule is None or size.type.dtype != "int64":
        return _UNKNOWN
    return rule(*map(bounds_of, node.inputs))


def _add(*terms: Bounds) -> Bounds:
    return sum(low for low, _ in terms), sum(high for _, high in terms)


def _smallest(*sizes: Bounds) -> Bounds:
    return min(low for low, _ in sizes), min(high for _, high in sizes)


def _largest(*sizes: Bounds) -> Bounds:
    return max(low for low, _ in sizes), max(high for _, high in sizes)


_RULES: dict[type, Callable[..., Bounds]] = {
    ps.Add: _add,
    ps.Minimum: _smallest,
    ps.Maximum: _largest,
}
