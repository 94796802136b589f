"""Analyse the buffers that a Scan writes to."""

from collections.abc import Sequence

from pytensor.graph.basic import Constant, Variable
from pytensor.scalar.basic import Add, Minimum, ScalarOp
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.subtensor import IncSubtensor

from pytensor_onnx.rewriting.loops.known_lengths import unwrapped


def written_to_fresh_buffer(variable: Variable) -> Variable | None:
    """Return the rows of the first `set_subtensor(empty[:k], rows)` on a buffer, for each k."""
    node = variable.owner
    if node is None or not isinstance(node.op, IncSubtensor) or not node.op.set_instead_of_inc:
        return None
    empty, rows, *bounds = node.inputs
    (index,) = node.op.idx_list if len(node.op.idx_list) == 1 else (None,)
    starts_first = isinstance(index, slice) and index.start is None and index.step is None
    if not starts_first or empty.owner is None or not isinstance(empty.owner.op, AllocEmpty):
        return None
    stop = bounds[0] if len(bounds) == 1 else None
    n_rows = rows.type.shape[0] if rows.type.ndim else None
    is_whole = isinstance(stop, Constant) and n_rows == int(stop.data)
    return rows if is_whole else None


def buffer_size(variable: Variable) -> Variable | None:
    """Return the length of a buffer that PyTensor allocated for a scan."""
    owner = variable.owner
    if owner is not None and isinstance(owner.op, IncSubtensor):
        owner = owner.inputs[0].owner
    if owner is None or not isinstance(owner.op, AllocEmpty):
        return None
    return owner.inputs[0]


def is_sum(size: Variable, n_steps: Variable, n_initial: int) -> bool:
    """Return whether an expression is the number of steps plus a constant."""
    size, n_steps = unwrapped(size), unwrapped(n_steps)
    if n_initial == 0:
        return size is n_steps
    return any(
        int(constant.data) == n_initial and other is n_steps
        for constant, other in _constant_operands(size, Add)
    )


def most_steps(size: Variable | None, n_steps: Variable, n_initial: int) -> int | None:
    """Return the constant c if a size is the minimum of c and the steps, plus a constant."""
    if size is None:
        return None
    for constant, other in _constant_operands(size, Add):
        for limit, count in _constant_operands(other, Minimum):
            if int(constant.data) == n_initial and count is unwrapped(n_steps):
                return int(limit.data)
    return None


def _constant_operands(
    variable: Variable, scalar_op: type[ScalarOp]
) -> list[tuple[Constant, Variable]]:
    """Return the constant and the other operand of a scalar operation, or nothing."""
    node = unwrapped(variable).owner
    if node is None or len(node.inputs) != 2:
        return []
    if not isinstance(getattr(node.op, "scalar_op", node.op), scalar_op):
        return []
    first, second = map(unwrapped, node.inputs)
    pairs = [(first, second), (second, first)]
    return [(a, b) for a, b in pairs if isinstance(a, Constant)]


def nearest_later(writes: Sequence[int], tap: int) -> int | None:
    """Return the nearest written offset after a tap."""
    return min((o for o in writes if o > tap), default=None)
