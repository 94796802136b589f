"""PyTensor's own Python implementations, and substitutes for wrong ones."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply
from pytensor.scan.op import Scan
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.rewriting.uncanonicalize import local_max_to_min
from pytensor.tensor.subtensor import AdvancedIncSubtensor, unflatten_index_variables
from pytensor.tensor.type import TensorType

from tests.fuzz.drawing import with_reference_draws

Perform = Callable[..., list[Any]]

AS_WRITTEN = Mode("py", None)
REWRITTEN = Mode("py", "fast_run").excluding("cxx_only", "BlasOpt", "fusion", "inplace")
"""The rewrites of mode NUMBA, in Python, those aside that only other backends use."""

COMPILED = (Scan, IfElse, LazyIfElse)
"""Ops whose Python implementation works in compiled functions only."""


class NoReferenceError(ValueError):
    """PyTensor's result is none to compare with.

    Either rounding errors decide it, so that two right implementations may differ, or it does not
    have the type that the Op promises, or PyTensor cannot compile the Op to compute it.
    """


def as_meant(node: Apply) -> Apply:
    """Return a node, or its substitute: draws as a model makes them.

    PyTensor writes a minimum as ``-max(-x)``, in which the smallest integer overflows.
    """
    node = with_reference_draws(node)
    if not node.outputs or not getattr(node.outputs[0].type, "dtype", "").startswith("int"):
        return node
    meant = local_max_to_min.transform(None, node)
    return meant[0].owner if meant else node


def check_states(node: Apply, values: Sequence[Any]) -> None:
    """Refuse a loop with too few first states, or without steps whose rows have sizes.

    Where first states are fewer than steps look back, PyTensor reads memory that nothing has
    written. Rows that no step computes have other sizes in its loops than in its inferred shapes.

    Raises
    ------
    NoReferenceError
        If it is such a loop.
    """
    if not isinstance(node.op, Scan):
        return
    op, known = node.op, dict(zip(node.inputs, values, strict=True))
    n_steps = int(values[0])
    if n_steps <= 0 and any(v.type.ndim > 1 for v in op.outer_nitsot_outs(node.outputs)):
        raise NoReferenceError("a loop without steps has rows of unknown sizes")
    states = [*op.outer_mitsot(node.inputs), *op.outer_sitsot(node.inputs)]
    taps = [*op.info.mit_sot_in_slices, *op.info.sit_sot_in_slices]
    for state, slices in zip(states, taps, strict=True):
        if len(known[state]) < n_steps - min(slices):
            raise NoReferenceError("a loop begins with too few states")


def implementation(node: Apply) -> Perform:
    """Return PyTensor's Python implementation of a node."""
    if isinstance(node.op, COMPILED):
        symbols = [v.type() for v in node.inputs]
        try:
            outputs = node.op(*symbols, return_list=True)
            return pytensor.function(symbols, outputs, mode=AS_WRITTEN, on_unused_input="ignore")
        except Exception as error:
            raise NoReferenceError(f"PyTensor cannot compile {node.op}") from error
    node.op.prepare_node(node, None, None, "py")

    def perform(*arguments: Any) -> list[Any]:
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        given = list(arguments)
        if isinstance(node.op, AdvancedIncSubtensor) and not node.op.set_instead_of_inc:
            given[1] = _repeated(node.op, *arguments)
        node.op.perform(node, given, storage)
        try:
            if isinstance(node.op, CumOp):
                # Wider than its type says where it adds up narrow integers, in mode NUMBA as well.
                return [cell[0] for cell in storage]
            return [
                v.type.filter(cell[0]) if isinstance(v.type, TensorType) else cell[0]
                for v, cell in zip(node.outputs, storage, strict=True)
            ]
        except TypeError as error:
            raise NoReferenceError(str(error)) from error

    return perform


def _repeated(op: AdvancedIncSubtensor, x: np.ndarray, y: np.ndarray, *indices: Any) -> np.ndarray:
    """Repeat the addend for each position, where it has fewer axes.

    NumPy's ``add.at`` reads past the end of a vector that it repeats for a matrix of positions.
    """
    positions = x[tuple(unflatten_index_variables(indices, op.idx_list))]
    return y if y.ndim == positions.ndim else np.broadcast_to(y, positions.shape).copy()
