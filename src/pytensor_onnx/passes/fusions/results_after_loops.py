"""Compute the recorded results of a step after the loop where a step would copy them.

A Scan needs two values for a state that it also records, so that a step ends with an Identity,
which takes as long as any operator. Where the state is a sum or product of other results of the
step, the loop records these, and the state of all steps is one operator after the loop. A Loop,
which allocates each recorded result, would take longer.
"""

import math

import onnx_ir as ir

from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.rewriting import given, int_attribute, remove_unused

_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div"})
LARGEST = 1024
"""Largest number of elements of a result for which a copy takes no longer than its operands."""


def results_after_loops(model: ir.Model, scope: ModelScope) -> int:
    """Replace copies at the end of the steps of a Scan by operators after it.

    Parameters
    ----------
    model
        Model to change in place.
    scope
        Names of the model.

    Returns
    -------
    int
        Number of copies that are replaced.
    """
    count = 0
    for node in list(all_nodes(model.graph)):
        if node.op_type == "Scan" and not node.domain:
            loop = _Loop(node)
            for position in range(loop.n_states, len(loop.body.outputs)):
                result = _copied(loop.body.outputs[position])
                if result is not None and loop.can_record_operands(result):
                    loop.move(result, position, scope)
                    count += 1
            remove_unused(loop.body)
    return count


def _copied(output: ir.Value) -> ir.Node | None:
    """Return the node whose result an output of a step copies, if it is simple arithmetic."""
    copy = output.producer()
    if copy is None or copy.op_type != "Identity" or copy.domain or output.uses():
        return None
    node = given(copy.inputs[0]).producer()
    return node if node is not None and node.op_type in _ARITHMETIC and not node.domain else None


class _Loop:
    """A Scan and the values of its steps.

    Attributes
    ----------
    n_states
        Number of states, which are the first inputs and outputs of a step.
    states
        The states before and after a step.
    arrays
        The sequence of each element that a step receives.
    """

    def __init__(self, node: ir.Node) -> None:
        self.node, self.body = node, node.attributes["body"].as_graph()
        inputs, outputs = self.body.inputs, self.body.outputs
        n = self.n_states = len(inputs) - int_attribute(node, "num_scan_inputs", 0)
        self.states = {*inputs[:n], *outputs[:n]}
        self.arrays = dict(zip(inputs[n:], map(given, node.inputs[n:]), strict=True))

    def can_record_operands(self, node: ir.Node) -> bool:
        """Return whether the loop can record the operands of a node in place of its result."""
        dims = dims_of(node.outputs[0])
        if node.graph is not self.body or dims is None:
            return False
        sizes = [size for size in dims if isinstance(size, int)]
        operands = [x for x in map(given, node.inputs) if x.graph is self.body]
        return (
            len(sizes) == len(dims)
            and math.prod(sizes) <= LARGEST
            and all(dims_of(x) == dims and x not in self.states for x in operands)
            and not all(x in self.arrays or x in self.body.outputs for x in operands)
        )

    def move(self, node: ir.Node, position: int, scope: ModelScope) -> None:
        """Record the operands of a node in place of its result, which is computed afterwards."""
        graph, result = self.node.graph, self.node.outputs[position]
        assert graph is not None
        after = ir.Value(type=result.type, shape=result.shape, name=result.name)
        ir.convenience.replace_all_uses_with(result, after, replace_graph_outputs=True)
        result.name = None
        for x in map(given, node.inputs):
            if x.graph is self.body and x not in self.arrays and x not in self.body.outputs:
                if position == len(self.body.outputs):
                    self.body.outputs.append(x)
                    self.node.resize_outputs(position + 1)
                self.body.outputs[position] = x
                array = self.node.outputs[position]
                array.name = scope.names.unique(str(x.name))
                array.type, array.shape = after.type, after.shape
                position = len(self.body.outputs)
        arrays = self.arrays | dict(zip(self.body.outputs, self.node.outputs, strict=True))
        operands = [arrays.get(x, x) for x in map(given, node.inputs)]
        moved = ir.Node("", node.op_type, operands, outputs=[after])
        moved.metadata_props.update(node.metadata_props)
        name_values([moved], scope.names)
        graph.insert_after(self.node, [moved])
