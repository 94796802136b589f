"""Replace nodes by others, in one walk over a graph or function and the bodies in it.

A function of a builder and a node emits the replacement and returns its results, or emits nothing
and returns None. The walk gives the results names, sizes and provenance, and removes the nodes that
have no use left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder, Operand
from pytensor_onnx.graph.names import (
    VARIABLE,
    Names,
    name_values,
    names_in,
    note_replacement,
    rename_in_subgraphs,
)
from pytensor_onnx.graph.scope import ModelScope, disconnect, live_nodes
from pytensor_onnx.graph.traversal import bodies_of
from pytensor_onnx.passes.matching import attributes_of

GraphLike = ir.Graph | ir.Function

Results = ir.Value | Sequence[ir.Value]
"""Values in place of the outputs of a node."""

Form = Callable[[Builder, ir.Node], Results]
"""Emits the replacement of a node."""

Replace = Callable[["NodeBuilder", ir.Node], Results | None]
"""Emits the replacement of a node, or returns None to keep the node."""


def emit_alike(
    build: Builder, node: ir.Node, operands: Sequence[Operand], **changed: Any
) -> list[ir.Value]:
    """Emit the operator of a node for other operands, with its other attributes."""
    attributes = attributes_of(node) | changed
    results = build.op(node.op_type, *operands, outputs=len(node.outputs), **attributes)
    return [results] if isinstance(results, ir.Value) else list(results)


class NodeBuilder(Builder):
    """Emits the replacement of a node.

    Attributes
    ----------
    within
        The loops and choices in whose bodies the node is, from the outermost one.
    """

    within: tuple[ir.Node, ...] = ()

    def credit(self, node: ir.Node, core: ir.Node) -> None:
        """Take the provenance of a node that the replaced node absorbs, but not its name."""
        name = {k: v for k, v in node.metadata_props.items() if k == VARIABLE}
        self.provenance = {**node.metadata_props, **core.metadata_props, **name}


class NodeWalk:
    """Walk over the nodes of a graph or function and of its bodies, which replaces some of them.

    Parameters
    ----------
    owner
        Graph or function.
    scope
        Names and constants of the model.
    replace
        Emits the replacement of a node.
    operators
        Standard operators to visit; all nodes if None.
    shaped
        Whether values of a function have shapes, which hold for every call.
    visits_new
        Whether to visit the nodes of replacements as well.

    Examples
    --------
    >>> text = "m (float[n] x) => (float[n] y) {z = Neg(x) y = Neg(z)}"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    >>> walk = NodeWalk(model.graph, ModelScope(21), lambda build, node: build.Abs(*node.inputs))
    >>> walk.run(), [node.op_type for node in model.graph]
    (2, ['Abs', 'Abs'])
    """

    def __init__(
        self,
        owner: GraphLike,
        scope: ModelScope,
        replace: Replace,
        operators: Collection[str] | None = None,
        *,
        shaped: bool = True,
        visits_new: bool = False,
    ) -> None:
        self._owner, self._scope = owner, scope
        self._replace, self._operators = replace, operators
        self._shaped, self._visits_new = shaped, visits_new
        self._unused: dict[ir.Node, None] = {}
        self._count = 0

    def run(self) -> int:
        """Replace nodes, and return their number."""
        self._visit(list(self._owner), ())
        unused = defaultdict(list)
        for node in self._unused:
            unused[node.graph].append(node)
        for graph, nodes in unused.items():
            if graph is not None:
                graph.remove(nodes)
        return self._count

    @cached_property
    def _names(self) -> Names:
        return names_in(self._owner) if isinstance(self._owner, ir.Function) else self._scope.names

    def _visit(self, nodes: Iterable[ir.Node], within: tuple[ir.Node, ...]) -> None:
        build = self._builder(within)
        for node in nodes:
            for body in bodies_of(node):
                self._visit(list(body), (*within, node))
            if self._operators is None or (node.op_type in self._operators and not node.domain):
                build.provenance = node.metadata_props
                results = self._replace(build, node)
                if results is not None:
                    listed = [results] if isinstance(results, ir.Value) else results
                    new_nodes = self._put_in_place(node, build, listed)
                    if self._visits_new:
                        self._visit(new_nodes, within)
                    build = self._builder(within)

    def _builder(self, within: tuple[ir.Node, ...]) -> NodeBuilder:
        in_function = isinstance(self._owner, ir.Function)
        build = NodeBuilder(self._scope, in_function=in_function, shaped=self._shaped)
        build.within = within
        return build

    def _put_in_place(
        self, node: ir.Node, build: Builder, results: Sequence[ir.Value]
    ) -> list[ir.Node]:
        """Put emitted nodes in the place of a node, and return them."""
        results = [
            build.Identity(new) if old.is_graph_output() and not _is_emitted(new) else new
            for old, new in zip(node.outputs, results, strict=True)
        ]
        for old, new in zip(node.outputs, results, strict=True):
            note_replacement(old, new)
            if _is_emitted(new):
                _take_over(node, old, new)
        ir.convenience.replace_all_uses_with(node.outputs, results, replace_graph_outputs=True)
        new_nodes = live_nodes(build.nodes, results)
        if build.in_function:
            # Names in bodies are unique in the model, but not in the function.
            rename_in_subgraphs(new_nodes, self._names)
        name_values(new_nodes, self._names)
        assert node.graph is not None
        node.graph.insert_before(node, new_nodes)
        self._discard(node)
        self._count += 1
        return new_nodes

    def _discard(self, node: ir.Node) -> None:
        """Detach a node without uses, and the nodes before it that have no other use."""
        waiting = [node]
        while waiting:
            unused = waiting.pop()
            if unused in self._unused:
                continue
            before = [value.producer() for value in unused.inputs if value is not None]
            self._unused[unused] = None
            disconnect(unused)
            waiting += [n for n in before if n is not None and not _is_used(n)]


def _is_emitted(value: ir.Value) -> bool:
    """Return whether a node that is not in a graph yet produces a value."""
    producer = value.producer()
    return producer is not None and producer.graph is None


def _is_used(node: ir.Node) -> bool:
    return any(value.uses() or value.is_graph_output() for value in node.outputs)


def _take_over(node: ir.Node, old: ir.Value, new: ir.Value) -> None:
    """Give a new result the size of an old one, and its name where this is the user's."""
    # The result of a branch has a name, also where the operator left it out.
    if old.name != "" and (old.is_graph_output() or VARIABLE in node.metadata_props):
        new.name = old.name
    if old.shape is not None:
        new.shape = old.shape
    if new.type is None:
        new.type = old.type
    old.name = None


def remove_unused(graph: ir.Graph) -> None:
    """Remove the nodes of a graph that nothing uses."""
    unused: set[ir.Node] = set()
    for node in reversed(list(graph)):
        users = (user for value in node.outputs for user in value.consumers())
        if unused.issuperset(users) and not any(v.is_graph_output() for v in node.outputs):
            unused.add(node)
    for node in unused:
        disconnect(node)
    graph.remove(unused, safe=True)
