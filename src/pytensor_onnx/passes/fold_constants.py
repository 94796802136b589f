"""Compute nodes of constants, and write out the bodies that are known to run once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.constant_folding import known_choice, known_result
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.passes.inline_functions import name_apart, put_in_place
from pytensor_onnx.passes.matching import attributes_of, constant_of, given, is_constant
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import NodeWalk, Results, remove_unused
from pytensor_onnx.passes.stored_constants import store_constants

_LARGEST = 4096
"""Elements of a result above which a node is kept, unless its operands have as many."""

_KEPT = frozenset(
    {"Constant", "If", "Loop", "Scan", "SequenceMap", "Bernoulli", "Multinomial"}
    | {f"Random{name}" for name in ("Normal", "NormalLike", "Uniform", "UniformLike")}
)


@model_pass(
    family="structure",
    purpose="size",
    identity="f(c) = its value, and if(true, f, g) = f",
    requires="a file for all runtimes, functions written out",
    ensures="no nodes of constants, no choices and loops that are known to run once",
)
def fold_constants(model: ir.Model, scope: ModelScope) -> int:
    """Replace nodes of constants by their values, and choices and loops by the body that runs.

    Returns
    -------
    int
        How many nodes were replaced.
    """
    count, is_done = 0, False
    while not is_done:
        count += NodeWalk(model.graph, scope, _known_results).run()
        store_constants(model.graph, scope)
        written_out = sum(_write_out(node, scope) for node in list(all_nodes(model.graph)))
        count, is_done = count + written_out, not written_out
    for node in list(all_nodes(model.graph)):
        for body in bodies_of(node):
            remove_unused(body)
    remove_unused(model.graph)
    store_constants(model.graph, scope)
    return count


def _known_results(build: Builder, node: ir.Node) -> Results | None:
    """Return the constants that a node computes, or the operand that it returns."""
    if node.domain or node.op_type in _KEPT:
        return None
    choice = known_choice(node.op_type, node.inputs)
    if choice is not None:
        return choice
    if node.op_type == "Identity" and is_constant(node.inputs[0]):
        return None if node.outputs[0].is_graph_output() else node.inputs[0]
    arrays = [constant_of(value) for value in node.inputs]
    if any(a is None and v is not None for a, v in zip(arrays, node.inputs, strict=True)):
        known = known_result(node.op_type, node.inputs, attributes_of(node))
        return None if known is None else build.constant(known)
    results = _evaluated(node, arrays, build.scope.opset_version) if arrays else None
    largest = max([_LARGEST, *(array.size for array in arrays if array is not None)])
    if results is None or any(array.size > largest for array in results):
        return None
    return [build.constant(array) for array in results]


def _evaluated(
    node: ir.Node, arrays: Sequence[np.ndarray | None], opset_version: int
) -> list[np.ndarray] | None:
    """Return the results of a node of constants, None if it fails or they have other dtypes."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    feed = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
    results = [f"y{i}" for i in range(len(node.outputs))]
    proto = ir.to_proto(node)
    del proto.input[:], proto.output[:]
    proto.input.extend(names)
    proto.output.extend(results)
    inputs = [
        helper.make_tensor_value_info(name, ir.DataType.from_numpy(array.dtype), array.shape)
        for name, array in feed.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([proto], "constants", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset_version)])
    try:
        with np.errstate(all="ignore"):
            values = [np.asarray(value) for value in ReferenceEvaluator(model).run(None, feed)]
    except Exception:
        # The runtime tells the user why the node fails.
        return None
    wanted = [value.dtype for value in node.outputs]
    if any(w is not None and w.numpy() != v.dtype for w, v in zip(wanted, values, strict=True)):
        return None
    return values


def _write_out(node: ir.Node, scope: ModelScope) -> bool:
    """Put the body of a choice or loop that is known to run once in its place."""
    if node.graph is None or node.domain:
        return False
    if node.op_type == "If":
        return _write_out_choice(node, scope)
    if node.op_type != "Loop" or (steps := constant_of(node.inputs[0])) is None:
        return False
    if steps.item() == 0:
        return _skip_loop(node)
    return steps.item() == 1 and _write_out_step(node, scope)


def _write_out_choice(node: ir.Node, scope: ModelScope) -> bool:
    condition = constant_of(node.inputs[0])
    if condition is None:
        return False
    branch = node.attributes["then_branch" if condition.item() else "else_branch"].as_graph()
    node.resize_inputs(0)
    _replace(node, branch, scope)
    return True


def _skip_loop(node: ir.Node) -> bool:
    """Return the initial values of a loop without steps, if it stacks no rows."""
    initial = [given(value) for value in node.inputs[2:]]
    if len(node.outputs) != len(initial) or any(v.is_graph_output() for v in node.outputs):
        return False
    ir.convenience.replace_all_uses_with(node.outputs, initial)
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    return True


def _write_out_step(node: ir.Node, scope: ModelScope) -> bool:
    going = node.inputs[1]
    if going is not None and not constant_of(going):
        return False
    build, body = Builder(scope), node.attributes["body"].as_graph()
    arguments = [build.constant(np.int64(0)), build.constant(np.True_), *node.inputs[2:]]
    node.resize_inputs(len(arguments))
    for i, argument in enumerate(arguments):
        node.replace_input_with(i, argument)
    body.outputs.pop(0)
    for i, row in list(enumerate(body.outputs))[len(arguments) - 2 :]:
        body.outputs[i] = _appended(body, "Unsqueeze", row, build.ints([0]))
    _replace(node, body, scope)
    return True


def _replace(node: ir.Node, body: ir.Graph, scope: ModelScope) -> None:
    """Put a body in the place of a node, whose inputs are the arguments of the body."""
    node.attributes.clear()
    seen: set[ir.Value] = set()
    for i, value in enumerate(list(body.outputs)):
        # Values of other graphs, and values that are returned twice, need a node of their own.
        producer = value.producer()
        if producer is None or producer.graph is not body or value in seen:
            body.outputs[i] = _appended(body, "Identity", value)
        seen.add(value)
    name_apart(body, 0, scope)
    put_in_place(node, body)


def _appended(body: ir.Graph, op_type: str, value: ir.Value, *others: ir.Value) -> ir.Value:
    """Return the result of a further node of a body, in the dtype of its first operand."""
    node = ir.node(op_type, [value, *others])
    node.outputs[0].type = value.type
    body.append(node)
    return node.outputs[0]
