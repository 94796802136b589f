"""Compute nodes of constants, and write out the bodies that are known to run once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.constant_folding import known_choice, known_result
from pytensor_onnx.graph.scope import ModelScope, disconnect
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.operators.dims import constant_ints, dims_of
from pytensor_onnx.operators.entries import RANDOM, WITH_BODIES
from pytensor_onnx.operators.inference import attribute_of
from pytensor_onnx.passes.forms.replacements import gathered
from pytensor_onnx.passes.inline_functions import name_apart, put_in_place
from pytensor_onnx.passes.matching import (
    attributes_of,
    constant_of,
    is_constant,
    producer_of,
    required,
    sole_producer,
    store_constants,
)
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import NodeWalk, Results, remove_unused

_LARGEST = 4096
"""Elements of a result above which a node is kept, unless its operands have as many."""

_MOST_NODES = 96
"""Nodes that a loop may become: few runtimes have loops, and those take long for each step."""

_KEPT = WITH_BODIES | RANDOM | {"Constant"}


@model_pass(
    family="structure",
    purpose="conversion",
    identity="f(c) = its value, if(true, f, g) = f, and x[k:k + n] = x[k + arange(n)]",
    requires="a file for all runtimes, functions written out",
    ensures="no nodes of constants, no choices and loops that are known to run once",
    measured="docs/reference/targets.md",
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
    for rule in (_without_empty_parts, _known_logic, _cast_back):
        if (result := rule(build, node)) is not None:
            return result
    arrays = [constant_of(value) for value in node.inputs]
    if any(a is None and v is not None for a, v in zip(arrays, node.inputs, strict=True)):
        known = known_result(node.op_type, node.inputs, attributes_of(node))
        return _other_form(build, node) if known is None else build.constant(known)
    results = _evaluated(node, arrays, build.scope.opset_version) if arrays else None
    largest = max([_LARGEST, *(array.size for array in arrays if array is not None)])
    if results is None or any(array.size > largest for array in results):
        return None
    return [build.constant(array) for array in results]


def _other_form(build: Builder, node: ir.Node) -> ir.Value | None:
    """Return a form of a Slice or of a size that more runtimes take.

    TVM has numbers of its own for 0-d sizes, which few of its operators take, and arrays for the
    float vectors that sizes are cast to.
    """
    if node.op_type == "Slice":
        return gathered(build, node)
    if node.op_type == "Cast":
        squeeze = sole_producer(node.inputs[0], "Squeeze")
        if squeeze is None or producer_of(squeeze.inputs[0], "Shape") is None:
            return None
        vector = build.Cast(required(squeeze.inputs[0]), **attributes_of(node))
        return build.Squeeze(vector, *squeeze.inputs[1:])
    squeeze = producer_of(node.inputs[0], "Squeeze") if node.op_type == "Unsqueeze" else None
    if squeeze is None or len(squeeze.inputs) < 2:
        return None
    added, dropped = constant_ints(node.inputs[1]), constant_ints(squeeze.inputs[1])
    is_undone = added is not None and added == dropped and min(added, default=0) >= 0
    return squeeze.inputs[0] if is_undone else None


def _without_empty_parts(build: Builder, node: ir.Node) -> ir.Value | None:
    """Return a result without elements as a constant, and joins and products without empty parts.

    Not all runtimes take arrays without elements.
    """
    result = node.outputs[0]
    sizes = dims_of(result)
    if len(node.outputs) > 1 or sizes is None or not all(isinstance(n, int) for n in sizes):
        return None
    if result.dtype is None:
        return None
    zeros = np.zeros([int(n) for n in sizes if n is not None], result.dtype.numpy())
    if 0 in sizes:
        return build.constant(zeros)
    if node.op_type == "Concat":
        parts = [required(value) for value in node.inputs if 0 not in (dims_of(value) or ())]
        if len(parts) == len(node.inputs):
            return None
        return parts[0] if len(parts) == 1 else build.Concat(*parts, **attributes_of(node))
    # A product of no columns and no rows is zero.
    if node.op_type in ("MatMul", "Gemm") and 0 in (dims_of(node.inputs[0]) or ()):
        summand = node.inputs[2] if len(node.inputs) > 2 else None
        if summand is None:
            return build.constant(zeros)
        return summand if attribute_of(node, "beta") == 1.0 and dims_of(summand) == sizes else None
    return None


def _known_logic(build: Builder, node: ir.Node) -> ir.Value | None:
    """Return the result of And or Or with a constant that decides, or its other operand."""
    if node.op_type not in ("And", "Or"):
        return None
    sizes = dims_of(node.outputs[0])
    for value, other in (node.inputs, reversed(node.inputs)):
        constant, decides = constant_of(value), node.op_type == "Or"
        if constant is None or constant.size == 0 or constant.any() != constant.all():
            continue
        if bool(constant.all()) != decides:
            return other if sizes is not None and dims_of(other) == sizes else None
        if sizes is not None and all(isinstance(n, int) for n in sizes):
            return build.constant(np.full(sizes, decides))
    return None


def _cast_back(build: Builder, node: ir.Node) -> ir.Value | None:
    """Return the float32 that a Cast to float64 and another back leave as it is."""
    wider = producer_of(node.inputs[0], "Cast") if node.op_type == "Cast" else None
    if wider is None or wider.outputs[0].dtype != ir.DataType.DOUBLE:
        return None
    source = required(wider.inputs[0])
    return source if source.dtype == node.outputs[0].dtype == ir.DataType.FLOAT else None


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
    if not _is_short(node, steps.item()):
        return False
    _write_out_steps(node, steps.item(), scope)
    return True


def _is_short(node: ir.Node, steps: int) -> bool:
    """Return whether a loop runs once, or all its steps and has few nodes in all of them."""
    if node.inputs[1] is not None and not constant_of(node.inputs[1]):
        return False
    body = node.attributes["body"].as_graph()
    going = body.outputs[0]
    while (producer := going.producer()) is not None and producer.op_type == "Identity":
        going = required(producer.inputs[0])
    goes_on = going is body.inputs[1] or bool(constant_of(going))
    return steps == 1 or (goes_on and steps * _size_of_step(body) <= _MOST_NODES)


def _size_of_step(body: ir.Graph) -> int:
    """Return the number of nodes of a body that depend on more than the number of the step."""
    known, count = {body.inputs[0]}, 0
    for node in all_nodes(body):
        if all(v is None or v in known or is_constant(v) for v in node.inputs):
            known.update(node.outputs)
        else:
            count += 1
    return count


def _write_out_choice(node: ir.Node, scope: ModelScope) -> bool:
    condition = constant_of(node.inputs[0])
    if condition is None:
        return False
    taken, other = ("then_branch", "else_branch")[:: 1 if condition.item() else -1]
    branch = node.attributes[taken].as_graph()
    for dropped in node.attributes[other].as_graph():
        disconnect(dropped)
    node.resize_inputs(0)
    _replace(node, branch, scope)
    return True


def _skip_loop(node: ir.Node) -> bool:
    """Return the initial values of a loop without steps, if it stacks no rows."""
    initial = [required(value) for value in node.inputs[2:]]
    if len(node.outputs) != len(initial) or any(v.is_graph_output() for v in node.outputs):
        return False
    ir.convenience.replace_all_uses_with(node.outputs, initial)
    assert node.graph is not None
    disconnect(node)
    node.graph.remove(node, safe=True)
    return True


def _write_out_steps(node: ir.Node, count: int, scope: ModelScope) -> None:
    """Put copies of the body of a loop in its place, one for each step."""
    build, body = Builder(scope), node.attributes["body"].as_graph()
    graph, states, rows = node.graph, list(map(required, node.inputs[2:])), list[list[ir.Value]]()
    assert graph is not None
    bodies = [*(body.clone(allow_outer_scope_values=True) for _ in range(count - 1)), body]
    calls = []
    for number, copied in enumerate(bodies):
        copied.outputs.pop(0)
        for i, row in list(enumerate(copied.outputs))[len(states) :]:
            copied.outputs[i] = _appended(copied, "Unsqueeze", row, build.ints([0]))
        arguments = [build.constant(np.int64(number)), build.constant(np.True_), *states]
        call = ir.node("Loop", arguments, num_outputs=len(copied.outputs))
        graph.insert_before(node, call)
        calls.append((call, copied))
        for value, output in zip(call.outputs, copied.outputs, strict=True):
            value.type, value.name = output.type, scope.names.unique("step")
        states = list(call.outputs[: len(states)])
        rows.append(list(call.outputs[len(states) :]))
    joined = [_joined(node, parts, scope) for parts in zip(*rows, strict=True)]
    for old, new in zip(node.outputs, [*states, *joined], strict=True):
        new.name, new.shape, old.name = old.name, old.shape, None
    results = [*states, *joined]
    ir.convenience.replace_all_uses_with(node.outputs, results, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    for call, copied in calls:
        _replace(call, copied, scope)


def _joined(node: ir.Node, parts: Sequence[ir.Value], scope: ModelScope) -> ir.Value:
    """Return the rows of all steps, joined before a node."""
    if len(parts) == 1:
        return parts[0]
    join = ir.node("Concat", parts, {"axis": 0})
    join.outputs[0].type = parts[0].type
    join.name = scope.names.unique("Concat")
    assert node.graph is not None
    node.graph.insert_before(node, join)
    return join.outputs[0]


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
