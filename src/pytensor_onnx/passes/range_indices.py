"""A form of Gather for runtimes that make a Slice of one whose indices are a Range.

A Slice ends where the axis does, and counts a negative end from there: indices beyond the size are
no error to it, and those from -2 to 1 select nothing.
"""

import onnx_ir as ir

from pytensor_onnx.builder import Builder


def takes_range(node: ir.Node) -> bool:
    """Return whether the indices of a Gather are a Range as it is."""
    index = node.inputs[1]
    producer = None if index is None else index.producer()
    return producer is not None and producer.op_type == "Range" and not producer.domain


def take_by_vector(onnx: Builder, node: ir.Node) -> ir.Value:
    """Gather by the same indices, which a Reshape hides from the runtime."""
    x, index = node.inputs
    vector = onnx.Reshape(index, onnx.ints([-1]))
    if index is not None:
        vector.shape = index.shape
    return onnx.Gather(x, vector, **{key: a.value for key, a in node.attributes.items()})
