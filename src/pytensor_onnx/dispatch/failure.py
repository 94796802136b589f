"""Names of nodes of loops that fail when an index is out of range."""

from collections.abc import Mapping

import onnx_ir as ir
from pytensor.graph.basic import Variable
from pytensor.graph.fg import AbstractFunctionGraph

from pytensor_onnx.builder import Builder
from pytensor_onnx.failures import name_failure
from pytensor_onnx.rewriting.loop_checks import loop_of_index

_INDEXING = ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")
_OP = "pytensor.op"


def name_indexing(onnx: Builder, body: ir.Graph, loop: str) -> None:
    """Name the nodes of a loop that index as an Op asks, so that the loop is named if they fail.

    Parameters
    ----------
    onnx
        Any builder of the model.
    body
        Body of the loop.
    loop
        What the loop is called.
    """
    for node in body.all_nodes():
        if "Subtensor" in node.metadata_props.get(_OP, ""):
            _name_indexing(onnx, node, loop)


def name_indexing_by_steps(
    onnx: Builder, fgraph: AbstractFunctionGraph, values: Mapping[Variable, ir.Value]
) -> None:
    """Name the nodes that index for all steps of a loop at once.

    Parameters
    ----------
    onnx
        Any builder of the model.
    fgraph
        The graph that was converted.
    values
        What stands for its variables.
    """
    for indexing in fgraph.toposort():
        loop = loop_of_index(indexing)
        if loop is None:
            continue
        given = {values.get(variable) for variable in indexing.inputs}
        waiting = [values.get(indexing.outputs[0])]
        while waiting:
            value = waiting.pop()
            node = None if value is None or value in given else value.producer()
            if node is not None and node.metadata_props.get(_OP) == str(indexing.op):
                _name_indexing(onnx, node, loop)
                waiting += node.inputs


def _name_indexing(onnx: Builder, node: ir.Node, loop: str) -> None:
    if node.op_type not in _INDEXING or node.name in onnx.scope.failures:
        return
    array = node.inputs[0].name if node.inputs[0] is not None else None
    error = IndexError(f"an index into {array or 'an array'} is out of range in {loop}")
    name_failure(onnx, node.outputs[0], error)
