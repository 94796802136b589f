"""Names of nodes that fail when a check does; sessions raise the error they stand for."""

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import FAILURE_PREFIX

_INDEXING = ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")


def name_failure(onnx: Builder, value: ir.Value, error: Exception) -> None:
    """Name the node that computes a value after the error that it means when the node fails.

    Parameters
    ----------
    onnx
        Builder that emitted the node.
    value
        What the node returns.
    error
        What is raised in place of the runtime's error.
    """
    producer = value.producer()
    if producer is None:
        return
    text = f"{FAILURE_PREFIX}{type(error).__name__}: {error}"
    name, count = text, 1
    while name in onnx.scope.failures:
        count += 1
        name = f"{text} ({count})"
    producer.name = name
    onnx.scope.failures[name] = error


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
