"""Name the dimensions of all values of a graph."""

import onnx_ir as ir

from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import output_dims
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes


def infer_and_name_dims(graph: ir.Graph, scope: ModelScope) -> None:
    """Name the dimensions of all values, after all equalities between them are known."""
    for value in graph.inputs:
        scope.name_dims(value)
    for node in all_nodes(graph):
        _infer_unknown_dims(node)
        for value in node.outputs:
            scope.name_dims(value)


def _infer_unknown_dims(node: ir.Node) -> None:
    """Infer the dimensions of the first output again, from inputs whose dimensions have names."""
    value = node.outputs[0]
    own = dims_of(value)
    if own is None or None not in own or node.domain:
        return
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    dims = output_dims(node.op_type, node.inputs, attributes)
    if dims is not None and len(dims) == len(own):
        value.shape = ir.Shape([d if o is None else o for d, o in zip(dims, own, strict=True)])
