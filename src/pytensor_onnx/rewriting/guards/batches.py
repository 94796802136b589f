"""Run PyTensor's rewrites of batched operations where they end."""

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.rewriting.basic import NodeRewriter
from pytensor.tensor.basic import Alloc
from pytensor.tensor.rewriting.blockwise import local_blockwise_alloc_inputs

from pytensor_onnx.rewriting.guards.guarded import Condition


def repeats_batches(node: Apply) -> bool:
    """Return whether an operand repeats its values along a batch axis.

    Otherwise the rewrite takes a batch axis of size one away, `local_dimshuffle_alloc` gives it
    back, and both go on without end.
    """
    batch_ndim = node.op.batch_ndim(node)
    return any(_repeats(x, batch_ndim) for x in node.inputs)


def _repeats(x: Variable, batch_ndim: int) -> bool:
    if x.owner is None or not isinstance(x.owner.op, Alloc):
        return False
    value = x.owner.inputs[0].type
    has_one = (True,) * (x.type.ndim - value.ndim) + value.broadcastable
    pairs = zip(has_one[:batch_ndim], x.type.broadcastable[:batch_ndim], strict=True)
    return any(before and not after for before, after in pairs)


CONDITIONS: dict[NodeRewriter, Condition] = {local_blockwise_alloc_inputs: repeats_batches}
