"""The next states of generators that a graph draws from, where nobody says what they are."""

from collections.abc import Mapping, Sequence

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scan.op import Scan
from pytensor.tensor.random.op import RNGConsumerOp

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.random import is_generator


def generator_updates(
    outputs: Sequence[Variable], updates: Mapping[SharedVariable, Variable]
) -> dict[SharedVariable, Variable]:
    """Return the updates of the shared generators that have none.

    Parameters
    ----------
    outputs
        What is computed.
    updates
        The updates that are known.

    Raises
    ------
    PyTensorONNXError
        If a generator is drawn from twice, or by an operation whose next state is not known.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> rng = pt.random.shared_rng(seed=0, name="rng")
    >>> second, x = rng.normal()
    >>> third, y = second.normal()
    >>> generator_updates([x + y], {}) == {rng: third}
    True
    """
    fgraph = FunctionGraph(outputs=[*outputs, *updates.values()], clone=False)
    return {
        v: _last_state(fgraph, v)
        for v in fgraph.inputs
        if isinstance(v, SharedVariable) and is_generator(v) and v not in updates
    }


def _last_state(fgraph: FunctionGraph, generator: Variable) -> Variable:
    state = generator
    while True:
        nodes = {node for node, _ in fgraph.clients.get(state, []) if node.outputs}
        if not nodes:
            return state
        following = _next_state(nodes.pop(), state) if len(nodes) == 1 else None
        if following is None:
            raise PyTensorONNXError(
                f"what the next state of the generator {generator} is cannot be told: "
                "add it to the updates"
            )
        state = following


def _next_state(node: Apply, state: Variable) -> Variable | None:
    op = node.op
    if isinstance(op, RNGConsumerOp):
        following: Variable | None = op.update(node).get(state)
        return following
    if isinstance(op, Scan):
        carried = zip(
            op.outer_untraced_sit_sot(node.inputs),
            op.outer_untraced_sit_sot_outs(node.outputs),
            strict=True,
        )
        return dict(carried).get(state)
    return None
