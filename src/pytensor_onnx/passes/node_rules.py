"""Rules that replace single nodes of ONNX models, and the pass that applies them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes import PassResult

from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.passes.matching import store_constants
from pytensor_onnx.passes.model_pass import SCOPE, ScopedPass
from pytensor_onnx.passes.node_walk import GraphLike, NodeBuilder, NodeWalk, Replace, Results
from pytensor_onnx.rules import Family, Purpose, Rule, declare


@dataclass(frozen=True)
class NodeRule:
    """A rule that replaces single nodes.

    Attributes
    ----------
    rule
        Its entry in the ledger, with the operators of the nodes.
    replace
        Emits the replacement of a node, or returns None to keep the node.
    in_functions
        Whether it replaces nodes of functions as well. Most rules do not: definitions of functions
        are written in the operators that they should have.
    """

    rule: Rule
    replace: Replace
    in_functions: bool


def node_rule(
    *begins_at: str,
    family: Family,
    purpose: Purpose,
    identity: str,
    in_functions: bool = False,
    **description: str,
) -> Callable[[Replace], NodeRule]:
    """Declare a rule and make its function one that replaces nodes.

    Parameters
    ----------
    begins_at
        Standard operators of the nodes.
    in_functions
        Whether it replaces nodes of functions as well.
    family, purpose, identity, description
        Fields of the `Rule`; its name is that of the function.

    Examples
    --------
    ::

        @node_rule("Neg", family="elementwise", purpose="size", identity="-(-x) = x")
        def drop_double_negation(build, node):
            inner = producer_of(node.inputs[0], "Neg")
            return None if inner is None else inner.inputs[0]
    """

    def decorate(replace: Replace) -> NodeRule:
        name = replace.__name__
        rule = Rule(name, "pass", family, purpose, identity, begins_at=begins_at, **description)
        return NodeRule(declare(rule), replace, in_functions)

    return decorate


class NodeRules(ScopedPass):
    """A pass that replaces nodes by rules, all of them in one walk.

    Parameters
    ----------
    rules
        Rules in order: the first one with a replacement decides.
    """

    def __init__(self, *rules: NodeRule) -> None:
        self._rules = rules
        self.begins_at = tuple(op_type for each in rules for op_type in each.rule.begins_at)

    def call(self, model: ir.Model) -> PassResult:
        """Replace nodes of a model in place, by the rules that are not switched off."""
        scope = model.meta[SCOPE]
        rules = [each for each in self._rules if not each.rule.is_off]
        count = _apply(rules, model.graph, scope)
        rules = [each for each in rules if each.in_functions]
        count += sum(_apply(rules, function, scope) for function in model.functions.values())
        if count:
            store_constants(model.graph, scope)
        return PassResult(model, modified=bool(count))

    def __repr__(self) -> str:
        return ", ".join(each.rule.name for each in self._rules)


def _apply(rules: Iterable[NodeRule], owner: GraphLike, scope: ModelScope) -> int:
    """Replace the nodes of a graph or function, and of its bodies; return their number."""
    table: dict[str, list[NodeRule]] = defaultdict(list)
    for each in rules:
        for op_type in each.rule.begins_at:
            table[op_type].append(each)

    def replace(build: NodeBuilder, node: ir.Node) -> Results | None:
        for each in table[node.op_type]:
            results = each.replace(build, node)
            if results is not None:
                each.rule.note()
                return results
        return None

    return NodeWalk(owner, scope, replace, table).run() if table else 0
