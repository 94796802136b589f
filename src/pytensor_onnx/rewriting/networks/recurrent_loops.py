"""Compute recurrent layers by their loops where no operator serves them."""

from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable, equal_computations
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import applys_between
from pytensor.scan.op import Scan

from pytensor_onnx.ops.networks.recurrent_ops import RecurrentOp
from pytensor_onnx.rules import rewrites_graphs

OPERATOR_DTYPE = "float32"
"""The dtype in which ONNX Runtime has the operators."""


@rewrites_graphs(
    family="networks",
    purpose="conversion",
    identity="lstm(x) = scan(step, x)",
    requires="its gradient has the same loop, or no operator serves the dtype",
    begins_at=("RecurrentOp",),
)
def loop_over_layers(fgraph: FunctionGraph) -> None:
    """Replace a layer by its loop, if its gradient has the same loop or the dtype no operator.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> from pytensor_onnx import nn
    >>> x = pt.tensor3("x", dtype="float32")
    >>> w, r = (pt.matrix(name, shape=(3, 3), dtype="float32") for name in "wr")
    >>> y, _ = nn.rnn(x, w, r)
    >>> graphs = [[y], [y, pt.grad((y**2).sum(), w)]]
    >>> functions = [pytensor.function([x, w, r], graph, mode="ONNX") for graph in graphs]
    >>> nodes = [f.maker.fgraph.toposort() for f in functions]
    >>> [[type(n.op).__name__ for n in g if isinstance(n.op, RecurrentOp | Scan)] for g in nodes]
    [['RNN'], ['Scan', 'Scan']]
    """
    nodes = fgraph.toposort()
    loops = [node for node in nodes if isinstance(node.op, Scan)]
    for node in nodes:
        if not isinstance(node.op, RecurrentOp):
            continue
        results = inline_ofg_node(node)
        own = _loop(node.inputs, results)
        same = next((loop for loop in loops if _are_equal(own, loop)), None)
        if same is not None:
            # PyTensor would join the two loops as different ones, which computes all steps twice.
            shared = dict(zip(own.outputs, same.outputs, strict=True))
            results = graph_replace(results, shared, strict=False)
        elif node.outputs[0].type.dtype == OPERATOR_DTYPE:
            continue
        replacements = list(zip(node.outputs, results, strict=True))
        fgraph.replace_all(replacements, reason="loop_over_layers", import_missing=True)


def _loop(inputs: list[Variable], results: list[Variable]) -> Apply:
    return next(node for node in applys_between(inputs, results) if isinstance(node.op, Scan))


def _are_equal(loop: Apply, other: Apply) -> bool:
    return loop.op == other.op and equal_computations(list(loop.inputs), list(other.inputs))
