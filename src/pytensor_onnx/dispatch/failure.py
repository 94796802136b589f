"""Names of nodes of loops that fail when an index is out of range."""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.failures import name_failure

__all__ = ["name_failure", "name_indexing"]

_INDEXING = ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")


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
        asked = "Subtensor" in node.metadata_props.get("pytensor.op", "")
        if not asked or node.op_type not in _INDEXING or node.name in onnx.scope.failures:
            continue
        value = node.outputs[0]
        array = node.inputs[0].name if node.inputs[0] is not None else None
        error = IndexError(f"an index into {array or 'an array'} is out of range in {loop}")
        name_failure(onnx, value, error)
