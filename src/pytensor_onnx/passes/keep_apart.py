"""Guard a model against wrong rewrites of a runtime's optimizer.

Such an optimizer matches small patterns, and sees them through functions, constant conditions and
folded constants and sizes. The guards in the table of defects replace nodes by forms that the
optimizer leaves alone, with the same results and at most the cost of a copy.
"""

from collections import Counter

import onnx_ir as ir

from pytensor_onnx.changes import Change, changes_of
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.passes.defects import Guard, defects_by_operator
from pytensor_onnx.passes.forms.guard_forms import Inlined
from pytensor_onnx.passes.matching import store_constants
from pytensor_onnx.passes.model_pass import model_pass
from pytensor_onnx.passes.node_walk import Form, GraphLike, NodeWalk, Results
from pytensor_onnx.targets import Profile


@model_pass(
    family="structure",
    purpose="correctness",
    identity="f(g(x)) = f(max(g(x)))",
    requires="a pattern of the table of defects",
    ensures="ONNX Runtime's optimizer leaves the nodes alone",
    measured="docs/reference/defects.md, Optimizer",
)
def keep_apart(model: ir.Model, scope: ModelScope, profile: Profile) -> list[Change]:
    """Replace nodes by guarded forms where the runtime's optimizer would change results.

    Parameters
    ----------
    model
        Model to change in place, with its functions and subgraphs. No pass that rewrites operators
        may follow, as it does not know the guarded forms; equal nodes may be merged.
    scope
        Names and constants of the model.
    profile
        Kernels and defects of the runtime.

    Returns
    -------
    list of Change
        Changes, one line for each kind.
    """
    guards = {
        operator: [d.treatment for d in defects if isinstance(d.treatment, Guard)]
        for operator, defects in defects_by_operator(profile.name).items()
    }
    if not any(guards.values()):
        return []
    inlined = Inlined(model)
    changes: Counter[str] = Counter()
    forms: dict[ir.Node, Form] = {}
    for node in nodes_of_model(model):
        for guard in guards.get(node.op_type, ()) if not node.domain else ():
            form = guard.rule(node, inlined)
            if form is not None:
                forms[node] = form
                changes[guard.change.format(op=node.op_type)] += 1
                break

    def replace(build: Builder, node: ir.Node) -> Results | None:
        return forms[node](build, node) if node in forms else None

    if forms:
        owners: list[GraphLike] = [model.graph, *model.functions.values()]
        for owner in owners:
            NodeWalk(owner, scope, replace, guards).run()
        store_constants(model.graph, scope)
    return changes_of(changes)
