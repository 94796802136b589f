"""A floor division by one is dropped for whole numbers only: for others it rounds."""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.math import int_div, true_div
from pytensor.tensor.rewriting.math import local_div_by_one


@node_rewriter([true_div, int_div])
def divide_by_one(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Drop a division by one, as PyTensor's `local_div_by_one` does, where it changes nothing."""
    if node.op == int_div and node.outputs[0].type.dtype.startswith("float"):
        return None
    return local_div_by_one.transform(fgraph, node)


optdb["canonicalize"].register(
    divide_by_one.__name__, divide_by_one, "onnx", use_db_name_as_tag=False
)
