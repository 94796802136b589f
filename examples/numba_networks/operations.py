"""In mode NUMBA, convolutions and pools are computed by functions rather than inner graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.compile.builders import SymbolicOp
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import dfs_rewriter, graph_rewriter, node_rewriter


class NumbaFunction(Op):
    """An operation of networks for a linker that has a function for it.

    PyTensor would rewrite and compile its inner graph, for each size of arrays anew.

    Parameters
    ----------
    op
        The operation.
    """

    __props__ = ("op",)

    def __init__(self, op: SymbolicOp) -> None:
        self.op = op

    def make_node(self, *inputs: Variable) -> Apply:
        """Return a node with results of the same types."""
        outputs = [variable.type() for variable in self.op.make_node(*inputs).outputs]
        return Apply(self, list(inputs), outputs)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: list[list[Any]]) -> None:
        """Compute the inner graph."""
        self.op.perform(node, inputs, output_storage)

    def __str__(self) -> str:
        return f"NumbaFunction{{{self.op}}}"


@graph_rewriter
def use_functions(fgraph: FunctionGraph) -> None:
    """Replace each operation of networks that Numba has a function for.

    The functions are loaded here, as PyTensor loads Numba: when the first graph is compiled.
    """
    nodes = [node for node in fgraph.toposort() if isinstance(node.op, SymbolicOp)]
    if not nodes:
        return
    from numba_networks.functions import has_function

    for node in filter(has_function, nodes):
        results = NumbaFunction(node.op)(*node.inputs, return_list=True)
        fgraph.replace_all(list(zip(node.outputs, results, strict=True)), reason="use_functions")


@node_rewriter([NumbaFunction])
def restore_operation(fgraph: FunctionGraph, node: Apply) -> list[Variable]:
    """Put the operation back, in a function compiled by Numba that is exported."""
    return node.op.op(*node.inputs, return_list=True)


optdb.register("numba_networks_restored", dfs_rewriter(restore_operation), "onnx", position=-0.05)
# Just before PyTensor rewrites the inner graphs for the linker.
optdb.register("numba_networks", use_functions, "numba", position=49.5)
