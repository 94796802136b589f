"""Empty arrays that are reshaped: the sizes that do not follow from their number of elements."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.tensor.shape import Reshape
from pytensor.tensor.type import TensorType


@graph_rewriter
def forget_sizes_beside_zero(fgraph: FunctionGraph) -> None:
    """Correct the static shapes that PyTensor gives to ``reshape(x, (n, 0))`` of an empty array.

    It divides the number of elements by the sizes that it knows, and takes zero by zero for zero:
    rewrites would believe that ``n`` is zero. The type of what is computed from it follows.
    """
    changed: set[Variable] = set()
    for node in fgraph.toposort():
        if isinstance(node.op, Reshape) and 0 in node.outputs[0].type.shape:
            made = _made_of_unknown_sizes(node)
            if 0 not in made.outputs[0].type.shape:
                continue
        elif changed.isdisjoint(node.inputs) or isinstance(node.op, HasInnerGraph):
            continue
        else:
            made = node.op.make_node(*node.inputs)
        for output, new in zip(node.outputs, made.outputs, strict=True):
            if output.type != new.type:
                output.type = new.type
                changed.add(output)


def _made_of_unknown_sizes(node: Apply) -> Apply:
    """Return a reshape of which no more is known than what its sizes say."""
    x, sizes = node.inputs
    unknown = TensorType(x.type.dtype, shape=(None,) * x.type.ndim)()
    return node.op.make_node(unknown, sizes)


# Before the first rewrite of all.
optdb.register("onnx_forget_sizes_beside_zero", forget_sizes_beside_zero, "onnx", position=-0.031)
