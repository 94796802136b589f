"""Replace nodes so that a model runs exactly on a target: the legaliser.

For every node it asks the target's profile whether there is a kernel, and the table of defects
whether it is right. If not, the node is replaced: by its definition, by the decomposition in the
table, or by the same operator between casts that lose nothing. float64 is never narrowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import onnx_ir as ir

from pytensor_onnx.changes import Change, changes_of
from pytensor_onnx.errors import UnsupportedCase, UnsupportedOpError
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import Names, names_in
from pytensor_onnx.graph.scope import LocalFunction, ModelScope
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.passes.legaliser.choice import Chooser, Decompositions
from pytensor_onnx.passes.legaliser.missing_kernels import main_dtype
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_rules import GraphLike, replace_node, store_constants
from pytensor_onnx.targets import Profile

_CONTAINERS = frozenset({"Constant", "If", "Loop", "Scan"})


@model_pass(
    family="structure",
    purpose="conversion",
    identity="f(x) = a form in operators that the target runs",
    requires="no kernel, or one of the table of defects",
    ensures="every node has a correct kernel",
    measured="docs/reference/defects.md, Kernels",
)
def legalise(
    model: ir.Model,
    scope: ModelScope,
    profile: Profile,
    *,
    decompositions: Decompositions,
    assume_finite: bool = False,
) -> list[Change]:
    """Change a model in place so that the target runs it, with the same results.

    Parameters
    ----------
    model
        Model of standard operators and model-local functions.
    scope
        Names, constants and functions of the model.
    profile
        Kernels and defects of the target.
    decompositions
        Functions of a builder and the operands, by the operator that they decompose.
    assume_finite
        Whether to leave out the guards against runtimes that drop NaN.

    Returns
    -------
    list of str
        Changes, one line for each kind.

    Raises
    ------
    UnsupportedOpError
        If the target can run a node in no form; all such nodes are listed.
    """
    chooser = Chooser(profile, scope.opset_version, decompositions, assume_finite)
    legaliser = _Legaliser(chooser, scope)
    legaliser.visit(model.graph, _Place(scope.names))
    done: set[int] = set()
    while True:
        new = [local for local in scope.functions.values() if id(local) not in done]
        if not new:
            break
        done.update(map(id, new))
        for local in new:
            legaliser.visit(local.function, _place_in(local))
    used = _used_functions(model, scope)
    model.functions.clear()
    for function in used:
        model.functions[function.identifier()] = function
    model.graph.opset_imports.update((function.domain, 1) for function in used)
    store_constants(model.graph, scope)
    if legaliser.refused:
        listing = "\n".join(f"- {line}" for line in dict.fromkeys(legaliser.refused))
        raise UnsupportedOpError(
            f"the target {profile.name!r} cannot run these operators:\n{listing}"
        )
    return changes_of(legaliser.changes)


class _Place(NamedTuple):
    """Graph or function that contains nodes, with its used names."""

    names: Names
    function: str = ""
    shaped: bool = True
    in_definition: bool = False

    @property
    def in_function(self) -> bool:
        return bool(self.function)

    @property
    def description(self) -> str:
        return f" of function {self.function}" if self.function else ""


def _place_in(local: LocalFunction) -> _Place:
    function = local.function
    shaped = any(value.shape is not None for value in function.inputs)
    name = f"{function.domain}::{function.name}"
    return _Place(names_in(function), name, shaped, local.is_definition)


class _Legaliser:
    def __init__(self, chooser: Chooser, scope: ModelScope) -> None:
        self.chooser = chooser
        self.scope = scope
        self.changes: Counter[str] = Counter()
        self.refused: list[str] = []

    def visit(self, owner: GraphLike, place: _Place) -> None:
        """Legalise the nodes of a graph and of its subgraphs, and their replacements."""
        self._visit_nodes(owner, list(owner), place)

    def _visit_nodes(self, owner: GraphLike, nodes: Iterable[ir.Node], place: _Place) -> None:
        for node in nodes:
            for body in bodies_of(node):
                self.visit(body, place)
            if not place.in_function:
                for value in node.outputs:
                    self.scope.name_dims(value)
            if node.domain == "" and node.op_type not in _CONTAINERS:
                self._visit_node(owner, node, place)

    def _visit_node(self, owner: GraphLike, node: ir.Node, place: _Place) -> None:
        dtype = main_dtype(node, self.scope.opset_version)
        if dtype is None:
            return
        form, change = self.chooser.choose(node, dtype, place.in_definition)
        if form is None:
            if change:
                self.refused.append(f"{change} (node {node.name!r}{place.description})")
            return
        builder = Builder(self.scope, in_function=place.in_function, shaped=place.shaped)
        builder.provenance = dict(node.metadata_props)
        try:
            result = form(builder, node)
        except UnsupportedCase as case:
            self.refused.append(f"{case.reason} (node {node.name!r}{place.description})")
            return
        results = [result] if isinstance(result, ir.Value) else result
        new_nodes = replace_node(owner, node, builder, results, place.names)
        self.changes[change] += 1
        self._visit_nodes(owner, new_nodes, place)


def _used_functions(model: ir.Model, scope: ModelScope) -> list[ir.Function]:
    """Return the functions that the graph calls, directly or not, callees first.

    Readers such as the reference evaluator of ONNX need this order.
    """
    known = {f.function.identifier(): f.function for f in scope.functions.values()}

    def calls(graph: GraphLike) -> Iterator[ir.Function]:
        found = (known.get(node.op_identifier()) for node in all_nodes(graph))
        return (function for function in found if function is not None)

    used: dict[ir.OperatorIdentifier, ir.Function] = {}

    def add(function: ir.Function) -> None:
        if function.identifier() not in used:
            for inner in calls(function):
                add(inner)
            used[function.identifier()] = function

    for function in calls(model.graph):
        add(function)
    return list(used.values())
