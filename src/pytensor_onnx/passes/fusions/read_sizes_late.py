"""Read sizes behind operators that keep them, so that those are fused with a convolution.

A Shape is a second use of the result of a convolution, which keeps the batch norm and the
activation behind it apart.
"""

import onnx_ir as ir

from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.scope import ModelScope

_FUSED = ("Conv", "ConvTranspose")
Places = dict[ir.Node, int]


def read_sizes_late(model: ir.Model, scope: ModelScope) -> int:
    """Read the sizes of a convolution from the last of the arrays of one use behind it."""
    count = 0
    for shape in [node for node in model.graph if _reads_convolution(node)]:
        places = {node: place for place, node in enumerate(model.graph)}
        if _move(shape, places):
            model.graph.sort()
            count += 1
    return count


def _reads_convolution(node: ir.Node) -> bool:
    if node.op_type != "Shape" or node.domain or node.inputs[0] is None:
        return False
    producer = node.inputs[0].producer()
    return producer is not None and producer.op_type in _FUSED and not producer.domain


def _move(shape: ir.Node, places: Places) -> bool:
    first = value = shape.inputs[0]
    while value is not None and not value.is_graph_output():
        users = {user for user, _ in value.uses()} - {shape}
        if len(users) != 1:
            break
        (user,) = users
        if not _keeps_shape(user, value) or _leads_to(shape, user, places):
            break
        value = user.outputs[0]
    if value is first:
        return False
    shape.replace_input_with(0, value)
    return True


def _keeps_shape(node: ir.Node, value: ir.Value) -> bool:
    dims = dims_of(value)
    return (
        len(node.outputs) == 1
        and dims is not None
        and None not in dims
        and dims_of(node.outputs[0]) == dims
    )


def _leads_to(start: ir.Node, end: ir.Node, places: Places) -> bool:
    """Return whether a later node may need a result of a node; bodies may need anything."""
    if end not in places:
        return True
    waiting, seen = [start], {start}
    while waiting:
        for output in waiting.pop().outputs:
            for user, _ in output.uses():
                if user not in places or user is end:
                    return True
                if user not in seen and places[user] < places[end]:
                    seen.add(user)
                    waiting.append(user)
    return False
