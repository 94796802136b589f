"""Inline model-local functions, for runtimes without support for them."""

from itertools import zip_longest

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import DOMAINS, all_nodes, bodies_of
from pytensor_onnx.passes.model_pass import model_pass


@model_pass(
    family="structure",
    purpose="conversion",
    identity="f(x) = body of f",
    requires="a request of the user",
    ensures="no calls of model-local functions",
)
def inline_functions(model: ir.Model, scope: ModelScope) -> int:
    """Replace the calls of model-local functions by their bodies, in time linear in the result.

    Values keep their dtypes: a runtime that cannot infer them finds them in branches and loops.

    Returns
    -------
    int
        How many calls the graph had.
    """
    written_out: set[ir.OperatorIdentifier] = set()

    def calls_in(graph: ir.Graph) -> list[tuple[ir.Node, ir.Function]]:
        found = ((node, model.functions.get(node.op_identifier())) for node in all_nodes(graph))
        return [(node, function) for node, function in found if function is not None]

    def write_out(function: ir.Function) -> ir.Graph:
        """Return a copy of a function's body, which calls no other."""
        if function.identifier() not in written_out:
            written_out.add(function.identifier())
            for call, inner in calls_in(function.graph):
                put_in_place(call, write_out(inner))
        return function.graph.clone()

    calls = calls_in(model.graph)
    for number, (call, function) in enumerate(calls):
        body = write_out(function)
        name_apart(body, number, scope)
        _share_constants(body, model.graph, scope)
        put_in_place(call, body)
    model.functions.clear()
    scope.functions.clear()
    for domain in DOMAINS:
        model.graph.opset_imports.pop(domain, None)
    return len(calls)


def put_in_place(call: ir.Node, body: ir.Graph) -> None:
    """Replace a call by the body of its function."""
    graph, results, nodes = call.graph, list(body.outputs), list(body)
    inner_nodes = list(all_nodes(body))
    assert graph is not None
    for parameter, argument in zip_longest(body.inputs, call.inputs):
        for user, index in tuple(parameter.uses()):
            user.replace_input_with(index, argument)
    body.outputs.clear()
    body.remove(nodes)
    for value in (v for node in nodes for v in node.outputs):
        value.shape = None
    for node in inner_nodes:
        for value in node.outputs:
            _forget_names(value)
    for old, new in zip(call.outputs, results, strict=True):
        new.name, new.shape, old.name = old.name, old.shape, None
    for node in nodes:
        for key, text in call.metadata_props.items():
            node.metadata_props.setdefault(key, text)
    graph.insert_before(call, nodes)
    ir.convenience.replace_all_uses_with(call.outputs, results, replace_graph_outputs=True)
    graph.remove(call, safe=True)


def _forget_names(value: ir.Value) -> None:
    """Forget the names of sizes: a runtime plans the memory of branches and loops by them."""
    if value.shape is not None:
        value.shape = ir.Shape([d if isinstance(d, int) else None for d in value.shape])


def name_apart(body: ir.Graph, number: int, scope: ModelScope) -> None:
    """Give the values and nodes of a body names that are unique in the model."""
    for node in all_nodes(body):
        for value in node.outputs:
            value.name = scope.names.unique(value.name or node.op_type)
        for inner in bodies_of(node):
            for value in inner.inputs:
                value.name = scope.names.unique(value.name or "arg")
        failure = scope.failures.get(str(node.name))
        if failure is None:
            node.name = node.outputs[0].name
        else:
            node.name = f"{node.name}, call {number}"
            scope.failures[node.name] = failure


def _share_constants(body: ir.Graph, graph: ir.Graph, scope: ModelScope) -> None:
    """Store the constants of a body, of its branches and of its loops in the model."""
    build = Builder(scope)
    for node in list(all_nodes(body)):
        value, owner = node.outputs[0], node.graph
        if node.op_type != "Constant" or value.const_value is None:
            continue
        if owner is None or value.is_graph_output():
            continue
        shared = build.constant(value.const_value.numpy())
        if shared.name not in graph.initializers:
            graph.register_initializer(shared)
        value.replace_all_uses_with(shared)
        owner.remove(node, safe=True)
