"""Names of nodes that fail when a check does; sessions raise the error they stand for."""

import onnx_ir as ir

from pytensor_onnx.builder import Builder

FAILURE_PREFIX = "CheckAndRaise: "


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
