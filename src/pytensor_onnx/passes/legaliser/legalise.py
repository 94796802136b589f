"""Replace nodes so that a model runs exactly on a target: the legaliser.

For every node it asks the target's profile whether there is a kernel, and the table of defects
whether it is right. If not, the node is replaced: by its definition, by the decomposition in the
table, or by the same operator between casts that lose nothing. float64 is never narrowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import onnx_ir as ir

from pytensor_onnx.changes import Change, changes_of
from pytensor_onnx.errors import UnsupportedCase, UnsupportedOpError
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import LocalFunction, ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.passes.legaliser.choice import Chooser, Decompositions
from pytensor_onnx.passes.legaliser.missing_kernels import Refusal, describe_refusals, main_dtype
from pytensor_onnx.passes.legaliser.small_words import split_words
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import GraphLike, NodeWalk, Results
from pytensor_onnx.passes.stored_constants import store_constants
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
    splits_words: bool = False,
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
    splits_words
        Whether words of random generators are computed in parts; see `split_words`.

    Returns
    -------
    list of str
        Changes, one line for each kind.

    Raises
    ------
    UnsupportedOpError
        If the target can run a node in no form; all such nodes are listed.
    """
    if splits_words:
        split_words(model.graph, scope)
    chooser = Chooser(profile, scope.opset_version, decompositions, assume_finite)
    legaliser = _Legaliser(chooser, scope)
    legaliser.visit(model.graph)
    done: set[int] = set()
    while new := [local for local in scope.functions.values() if id(local) not in done]:
        done.update(map(id, new))
        for local in new:
            legaliser.visit(local.function, local)
    used = _used_functions(model, scope)
    model.functions.clear()
    for function in used:
        model.functions[function.identifier()] = function
    scope.import_domains(model.graph, used)
    store_constants(model.graph, scope)
    if legaliser.refused:
        listing = describe_refusals(legaliser.refused, model)
        raise UnsupportedOpError(
            f"the target {profile.name!r} cannot run these operations:\n{listing}{profile.way_out}"
        )
    return changes_of(legaliser.changes)


class _Legaliser:
    def __init__(self, chooser: Chooser, scope: ModelScope) -> None:
        self.chooser = chooser
        self.scope = scope
        self.changes: Counter[str] = Counter()
        self.refused: list[Refusal] = []

    def visit(self, owner: GraphLike, local: LocalFunction | None = None) -> None:
        """Legalise the nodes of a graph or function, and their replacements."""
        shaped = local is None or any(v.shape is not None for v in local.function.inputs)
        replace = partial(self._replace, local=local)
        NodeWalk(owner, self.scope, replace, shaped=shaped, visits_new=True).run()

    def _replace(
        self, build: Builder, node: ir.Node, local: LocalFunction | None
    ) -> Results | None:
        if local is None:
            for value in node.outputs:
                self.scope.name_dims(value)
        is_standard = not node.domain and node.op_type not in _CONTAINERS
        dtype = main_dtype(node, self.scope.opset_version) if is_standard else None
        if dtype is None:
            return None
        in_definition = local is not None and local.is_definition
        form, change = self.chooser.choose(node, dtype, in_definition)
        if form is None:
            if change:
                self._refuse(change, node, local)
            return None
        try:
            results = form(build, node)
        except UnsupportedCase as case:
            self._refuse(case.reason, node, local)
            return None
        self.changes[change] += 1
        return results

    def _refuse(self, reason: str, node: ir.Node, local: LocalFunction | None) -> None:
        function = None if local is None else local.function
        self.refused.append(Refusal(reason, node, function))


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
