"""Mark nodes that fail for a check of the graph, with the exception for it."""

import re
from zlib import crc32

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder

CHECK = "pytensor.check"
"""Metadata of a node that fails where a check does: type and message of the error."""

NO_BROADCAST = (
    "Runtime broadcasting not allowed: an axis of an operand has one element, and its type does "
    "not say so"
)
"""Message of a Reshape that compares a computed size with that of another operand."""

_LONGEST_NAME = 60


def name_failure(build: Builder, value: ir.Value, error: Exception) -> None:
    """Record the exception for the failure of a node, and name the node after it.

    Parameters
    ----------
    build
        Builder that emitted the node.
    value
        Result of the node.
    error
        Raised in place of the runtime's error.
    """
    producer = value.producer()
    if producer is None:
        return
    text = _text(error)
    words = re.sub(r"\W+", "_", f"check {error}")[:_LONGEST_NAME].strip("_")
    producer.name = build.scope.names.unique(words)
    producer.metadata_props[CHECK] = text
    build.scope.failures[text] = error


def index_of(error: Exception) -> int:
    """Return an out-of-range index that identifies the failed check by its error message.

    ONNX Runtime drops the names of nodes in a branch whose condition it knows; its message has
    the index.
    """
    return _index(_text(error))


def fails_by(node: ir.Node, index: int) -> bool:
    """Return whether a node is a check that fails by an index."""
    text = node.metadata_props.get(CHECK)
    return text is not None and _index(text) == index


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _index(text: str) -> int:
    return 2**32 + crc32(text.encode())


def is_check(node: ir.Node) -> bool:
    """Return whether a node has an exception for its failure."""
    return CHECK in node.metadata_props
