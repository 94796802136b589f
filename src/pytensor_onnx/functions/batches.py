"""Ops that are computed for a batch of operands at once, without a loop over the batch."""

from pytensor.graph.op import Op
from pytensor.tensor.extra_ops import SearchsortedOp
from pytensor.tensor.math import Dot

from pytensor_onnx.functions.registry import definition_of

LOWERED_IN_BATCHES = (Dot, SearchsortedOp)
"""Ops whose lowerings take operands with axes before the core axes."""


def defined_in_batches(op: Op) -> bool:
    """Return whether an Op has a definition that takes axes before its core axes."""
    definition = definition_of(type(op))
    return definition is not None and not definition.is_elementwise and definition.batches


def needs_no_loop(op: Op) -> bool:
    """Return whether a batch of an Op is computed at once.

    Examples
    --------
    >>> needs_no_loop(Dot())
    True
    """
    return isinstance(op, LOWERED_IN_BATCHES) or defined_in_batches(op)
