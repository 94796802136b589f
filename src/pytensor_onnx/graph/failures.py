"""Mark nodes that fail for a check of the graph, with the exception for it."""

import re

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder

CHECK = "pytensor.check"
"""Metadata of a node that fails where a check does: type and message of the error."""

_LONGEST_NAME = 60


def name_failure(onnx: Builder, value: ir.Value, error: Exception) -> None:
    """Record the exception for the failure of a node, and name the node after it.

    Parameters
    ----------
    onnx
        Builder that emitted the node.
    value
        Result of the node.
    error
        Raised in place of the runtime's error.
    """
    producer = value.producer()
    if producer is None:
        return
    text = f"{type(error).__name__}: {error}"
    words = re.sub(r"\W+", "_", f"check {error}")[:_LONGEST_NAME].strip("_")
    producer.name = onnx.scope.names.unique(words)
    producer.metadata_props[CHECK] = text
    onnx.scope.failures[text] = error


def is_check(node: ir.Node) -> bool:
    """Return whether a node has an exception for its failure."""
    return CHECK in node.metadata_props
