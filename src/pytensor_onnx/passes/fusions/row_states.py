"""Change vectors in the steps of a loop to rows where a step adds to a product with a matrix.

A product of a row and a matrix and a sum are one Gemm. For a vector they are two operators, and
each operator costs a small step as much as an elementwise operation.
"""

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.inference import is_elementwise
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.passes.rewriting import given, int_attribute, sole_producer

_OF_EACH_ELEMENT = frozenset({"Cast", "Identity"})


def row_states(model: ir.Model, scope: ModelScope) -> int:
    """Add a leading axis of size one to the vectors of loops where this makes a Gemm possible."""
    elementwise = {f.function.name for f in scope.functions.values() if f.is_definition}
    count = 0
    for node in list(all_nodes(model.graph)):
        if node.op_type != "Scan" or "scan_input_axes" in node.attributes:
            continue
        body = node.attributes["body"].as_graph()
        rows = _rows(body, elementwise)
        if rows and any(_is_added_product(inner) for inner in body):
            _add_axis(node, body, rows, scope)
            count += 1
    return count


def _rows(body: ir.Graph, elementwise: set[str]) -> set[ir.Value]:
    """Return the vectors that become rows; none if some node accepts vectors only."""
    rows = {x for x in body.inputs if len(dims_of(x) or ()) == 1}
    if any(dims_of(x) is None for x in body.inputs):
        return set()
    for node in body:
        given = [x for x in node.inputs if x is not None]
        if bodies_of(node):
            return set()
        if rows.isdisjoint(given):
            continue
        if not _keeps_rows(node, rows, elementwise):
            return set()
        rows.update(node.outputs)
    return rows


def _keeps_rows(node: ir.Node, rows: set[ir.Value], elementwise: set[str]) -> bool:
    """Return whether a node gives the same numbers for rows as for vectors."""
    others = [x for x in node.inputs if x is not None and x not in rows]
    if node.domain:
        return node.op_type in elementwise and all(_has_rank(x, 0, 1) for x in others)
    if node.op_type == "MatMul":
        return node.inputs[0] in rows and len(others) == 1 and _has_rank(others[0], 2)
    if node.op_type == "Split":
        return node.inputs[0] in rows
    is_of_each = is_elementwise(node.op_type) or node.op_type in _OF_EACH_ELEMENT
    return is_of_each and all(_has_rank(x, 0, 1) for x in others)


def _has_rank(x: ir.Value, *ranks: int) -> bool:
    dims = dims_of(x)
    return dims is not None and len(dims) in ranks


def _is_added_product(node: ir.Node) -> bool:
    return node.op_type == "Add" and any(sole_producer(x, "MatMul") for x in node.inputs)


def _add_axis(loop: ir.Node, body: ir.Graph, rows: set[ir.Value], scope: ModelScope) -> None:
    """Add the axis to the vectors of a loop, and remove it from the results of the loop."""
    graph = loop.graph
    assert graph is not None
    n_states = len(body.inputs) - int_attribute(loop, "num_scan_inputs", 0)
    for i, (x, inner) in enumerate(zip(loop.inputs, body.inputs, strict=True)):
        if inner in rows:
            builder = Builder(scope)
            row = builder.Unsqueeze(x, builder.ints([0 if i < n_states else 1]))
            row.name = scope.names.unique("row")
            producer = given(x).producer()
            if producer is None or producer.graph is None:
                graph.insert_before(loop, builder.nodes)
            else:
                # In the graph of its operand, an Unsqueeze takes the memory of the operand.
                producer.graph.insert_after(producer, builder.nodes)
            loop.replace_input_with(i, row)
    for node in body:
        if node.op_type == "Split" and node.inputs[0] in rows:
            node.attributes["axis"] = ir.AttrInt64("axis", 1)
    for i, (result, inner) in enumerate(zip(loop.outputs, body.outputs, strict=True)):
        if inner in rows:
            _drop_axis(graph, result, 0 if i < n_states else 1, scope)
    for x, new in zip(body.inputs[:n_states], body.outputs, strict=False):
        if x in rows and dims_of(x) == (None,):
            # The runtime plans the memory of steps whose sizes it knows; a state keeps its size.
            x.shape = new.shape
    for x in rows:
        dims = dims_of(x)
        x.shape = None if dims is None else ir.Shape((1, *dims))


def _drop_axis(graph: ir.Graph, result: ir.Value, axis: int, scope: ModelScope) -> None:
    """Squeeze a result of a loop before all its uses."""
    if not result.uses() and not result.is_graph_output():
        return
    builder, loop = Builder(scope), result.producer()
    assert loop is not None
    dims = dims_of(result)
    row = ir.Value(type=result.type)
    squeezed = builder.Squeeze(row, builder.ints([axis]))
    squeezed.shape, squeezed.type = result.shape, result.type
    squeezed.name, result.name = result.name, scope.names.unique("row")
    ir.convenience.replace_all_uses_with(result, squeezed, replace_graph_outputs=True)
    builder.nodes[-1].replace_input_with(0, result)
    if dims is not None:
        result.shape = ir.Shape((*dims[:axis], 1, *dims[axis:]))
    graph.insert_after(loop, builder.nodes)
