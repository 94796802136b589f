"""Which structures of matrices PyTensor has rules for."""

from collections.abc import Iterable

from pytensor.assumptions.core import ASSUMPTION_INFER_REGISTRY, AssumptionKey
from pytensor.graph.op import Op


def has_rule(op: Op, keys: Iterable[AssumptionKey]) -> bool:
    """Return whether PyTensor has a rule by which results of an Op have one of the structures.

    Examples
    --------
    >>> from pytensor.assumptions.core import DIAGONAL
    >>> from pytensor.tensor.basic import Eye, Join
    >>> [has_rule(op, [DIAGONAL]) for op in (Eye("float64"), Join(0))]
    [True, False]
    """
    kinds = type(op).__mro__
    return any((key, kind) in ASSUMPTION_INFER_REGISTRY for key in keys for kind in kinds)
