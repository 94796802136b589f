"""Diagonals are taken from the operands of what is computed, where that selects the same."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.basic import Alloc, AllocDiag, ExtractDiag, Eye
from pytensor.tensor.rewriting.subtensor_lift import (
    local_extract_diag_lift,
    local_extract_diag_of_alloc_diag,
    local_extract_diag_of_eye,
)

_STEPS = (local_extract_diag_of_alloc_diag, local_extract_diag_of_eye, local_extract_diag_lift)


@node_rewriter([ExtractDiag])
def diagonal_of_operands(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Take the diagonal earlier, as PyTensor's `extract_diag_lift_pass` does, where that is right.

    The pass leaves the new axis where the first of the two was: it belongs at the end. And of what
    it allocates, a diagonal beyond the corner gets a negative size.
    """
    x, op = node.inputs[0], node.op
    if (op.axis1, op.axis2) != (x.type.ndim - 2, x.type.ndim - 1):
        return None
    source = None if x.owner is None else x.owner.op
    if isinstance(source, AllocDiag) and abs(op.offset) > abs(source.offset):
        return None
    if isinstance(source, Alloc | Eye) and op.offset != 0:
        return None
    return next((result for step in _STEPS if (result := step.transform(fgraph, node))), None)


optdb["specialize"].register(
    diagonal_of_operands.__name__, diagonal_of_operands, "onnx", use_db_name_as_tag=False
)
