"""The last steps of a loop that has no more of them are all steps."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import copy_stack_trace, node_rewriter
from pytensor.scan.op import Scan
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor


@node_rewriter([Subtensor])
def take_all_steps(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace ``rows[-k:]`` by ``rows`` where a loop is known to make at most k of them.

    PyTensor would have the loop keep k rows: those that no step computes are not initialised.
    """
    rows, *inputs = node.inputs
    loop = rows.owner
    if loop is None or not isinstance(loop.op, Scan) or not isinstance(loop.inputs[0], Constant):
        return None
    if rows not in loop.op.outer_nitsot_outs(loop.outputs):
        return None
    first, *rest = indices_from_subtensor(inputs, node.op.idx_list)
    start = first.start if isinstance(first, slice) else None
    if not isinstance(start, Constant) or first.stop is not None or first.step is not None:
        return None
    if not -int(start.data) >= int(loop.inputs[0].data):
        return None
    result = rows[(slice(None), *rest)]
    copy_stack_trace(node.outputs[0], result)
    return [result]


optdb["canonicalize"].register(
    take_all_steps.__name__, take_all_steps, "onnx", use_db_name_as_tag=False
)
