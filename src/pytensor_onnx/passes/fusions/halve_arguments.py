"""Halve the arguments of float64 tanh before a loop, where its definition does so in each step.

``tanh(x)`` is ``2 t / (1 + t**2)`` with ``t = tanh(x / 2)``. Where an argument is a sum of states,
and of products with operands from around the loop, these operands are halved: exactly, but for
subnormal numbers. Such states, as the memory of an LSTM, are carried and recorded at half their
value.
"""

from collections.abc import Iterator
from itertools import chain

import onnx_ir as ir

from pytensor_onnx.graph.builder import FUNCTION_DOMAIN, Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.rewriting import (
    GraphLike,
    given,
    int_attribute,
    put_before,
    store_constants,
)

_TANH = (FUNCTION_DOMAIN, "Tanh_float64", "")
_TERMS = {"Add": 2, "Div": 1, "Identity": 1, "Neg": 1, "Squeeze": 1, "Sub": 2, "Unsqueeze": 1}
"""Number of first operands that are halved with the result."""

_PRODUCTS = frozenset({"Gemm", "MatMul", "Mul"})


def halve_arguments(model: ir.Model, scope: ModelScope) -> int:
    """Halve arguments of tanh in the steps of loops; return the number of calls replaced."""
    count = 0
    for node in list(all_nodes(model.graph)):
        if node.op_type == "Scan" and "scan_input_axes" not in node.attributes:
            count += _Loop(node, scope).halve()
    if count:
        store_constants(model.graph, scope)
        _drop_unused_definition(model)
    return count


def _drop_unused_definition(model: ir.Model) -> None:
    owners: list[GraphLike] = [model.graph, *model.functions.values()]
    if any(map(_is_tanh, chain.from_iterable(all_nodes(owner) for owner in owners))):
        return
    del model.functions[_TANH]
    if not model.functions:
        del model.graph.opset_imports[FUNCTION_DOMAIN]


def _is_tanh(node: ir.Node) -> bool:
    return node.op_identifier() == _TANH


class _WholeValueError(Exception):
    """Raised where half of a value would need another operator in each step."""


class _Loop:
    """A Scan, and the values of its steps that are halved.

    Attributes
    ----------
    n_states
        Number of states, which are the first inputs and outputs of a step.
    halves
        Values of the step that are computed at half their value.
    """

    def __init__(self, node: ir.Node, scope: ModelScope) -> None:
        self.node, self.body, self.scope = node, node.attributes["body"].as_graph(), scope
        self.n_states = len(self.body.inputs) - int_attribute(node, "num_scan_inputs", 0)
        self.halves: set[ir.Value] = set()

    def halve(self) -> int:
        """Halve the arguments of tanh where possible; return the number of calls replaced."""
        for call in filter(_is_tanh, self.body):
            before = set(self.halves)
            try:
                self._add(given(call.inputs[0]))
            except _WholeValueError:
                self.halves = before
        calls = [node for node in filter(_is_tanh, self.body) if node.inputs[0] in self.halves]
        if calls:
            self._halve_outer_operands()
            for call in calls:
                self._replace(call)
            self.body.remove(calls, safe=True)
        return len(calls)

    def _add(self, x: ir.Value) -> None:
        """Add a value, its operands, its uses and its state to the halves."""
        waiting = [x]
        while waiting:
            x = waiting.pop()
            if x.graph is self.body and x not in self.halves:
                self.halves.add(x)
                waiting += [*self._operands(x.producer()), *self._results(x)]
                for state in zip(
                    self.body.inputs[: self.n_states], self.body.outputs, strict=False
                ):
                    waiting += state if x in state else ()

    def _operands(self, node: ir.Node | None) -> list[ir.Value]:
        """Return the operands that are halved for the result of a node to be."""
        if node is None:
            return []
        operands = [given(x) for x in node.inputs]
        if _is_tanh(node):
            if operands[0].graph is not self.body:
                raise _WholeValueError
            return operands
        if node.domain:
            raise _WholeValueError
        if node.op_type in _PRODUCTS:
            outside = [x for x in operands[:2] if x.graph is not self.body]
            if len(outside) == 1:
                return [*outside, *operands[2:]]
        if node.op_type not in _TERMS:
            raise _WholeValueError
        return operands[: _TERMS[node.op_type]]

    def _results(self, x: ir.Value) -> Iterator[ir.Value]:
        """Yield the results of the step that are halved with a value."""
        for node, position in x.uses():
            if _is_tanh(node):
                continue
            is_term = position < _TERMS.get(node.op_type, 0) or (node.op_type, position) == (
                "Gemm",
                2,
            )
            if node.graph is not self.body or node.domain or not is_term:
                raise _WholeValueError
            yield node.outputs[0]

    def _halve_outer_operands(self) -> None:
        """Halve operands before the loop, and double its results after it."""
        graph, builder = self.node.graph, Builder(self.scope)
        done: dict[ir.Value, ir.Value] = {}
        assert graph is not None

        def half_of(x: ir.Value) -> ir.Value:
            if x not in done:
                done[x] = builder.Mul(x, 0.5)
            return done[x]

        for i, x in enumerate(self.body.inputs):
            if x in self.halves:
                self.node.replace_input_with(i, half_of(given(self.node.inputs[i])))
        for node in self.body:
            if not self.halves.isdisjoint(node.outputs):
                operands = self._operands(node)
                for i, x in enumerate(map(given, node.inputs)):
                    if x.graph is not self.body and x in operands:
                        node.replace_input_with(i, half_of(x))
        name_values(builder.nodes, self.scope.names)
        graph.insert_before(self.node, builder.nodes)
        for result, inner in zip(self.node.outputs, self.body.outputs, strict=True):
            if inner in self.halves and (result.uses() or result.is_graph_output()):
                self._double(graph, result)

    def _double(self, graph: ir.Graph, result: ir.Value) -> None:
        """Double a result of the loop before all its uses."""
        doubled = ir.Value(name=result.name, type=result.type, shape=result.shape)
        result.name = self.scope.names.unique("half")
        ir.convenience.replace_all_uses_with(result, doubled, replace_graph_outputs=True)
        graph.insert_after(self.node, [ir.Node("", "Add", [result, result], outputs=[doubled])])

    def _replace(self, call: ir.Node) -> None:
        """Replace a call whose argument is halved by the operators of the definition."""
        builder, (argument,), (result,) = Builder(self.scope), call.inputs, call.outputs
        builder.provenance = dict(call.metadata_props)
        t = builder.Tanh(argument)
        numerator = t if result in self.halves else builder.Add(t, t)
        quotient = builder.Div(numerator, builder.Add(builder.Mul(t, t), 1))
        put_before(self.body, call, builder, [quotient], self.scope.names)
