"""Passes over ONNX models as objects, each with its entry in the ledger of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult, PreconditionError

from pytensor_onnx.changes import Change
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.rules import Family, Purpose, Rule, declare

SCOPE = "pytensor_onnx.scope"
"""Entry of a model's `meta` with its `ModelScope`, while passes run."""


class ScopedPass(InPlacePass):
    """A pass that changes a model in place and needs its scope.

    Attributes
    ----------
    begins_at
        Operators without which the pass changes nothing; none if it looks at all of them.
    changes
        Descriptions of the changes of the last run, of a pass that describes them.
    """

    begins_at: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    def requires(self, model: ir.Model) -> None:
        """Raise an error if the model has no scope."""
        if SCOPE not in model.meta:
            raise PreconditionError(f"the model of {self!r} has no scope in its meta data")


class ModelPass(ScopedPass):
    """A pass that one function of the model makes.

    Parameters
    ----------
    rule
        Its entry in the ledger.
    change
        Function of the model, its scope and the options. It returns the number of changes, or
        their descriptions.
    options
        Further arguments of the function, such as the profile of the target.
    """

    def __init__(
        self, rule: Rule, change: Callable[..., int | list[Change]], **options: Any
    ) -> None:
        self.rule = rule
        self.begins_at = rule.begins_at
        self._change = change
        self._options = options
        self.__doc__ = change.__doc__

    def given(self, **options: Any) -> ModelPass:
        """Return the pass with options."""
        return ModelPass(self.rule, self._change, **options)

    def call(self, model: ir.Model) -> PassResult:
        """Change a model in place, unless the rule is switched off."""
        if self.rule.is_off:
            return PassResult(model, modified=False)
        result = self._change(model, model.meta[SCOPE], **self._options)
        self.changes = tuple(result) if isinstance(result, list) else ()
        if result:
            self.rule.note()
        return PassResult(model, modified=bool(result))

    def __repr__(self) -> str:
        return self.rule.name


def model_pass(
    *, family: Family, purpose: Purpose, identity: str, **description: Any
) -> Callable[[Callable[..., int | list[Change]]], ModelPass]:
    """Declare a rule and make its function a pass.

    Parameters
    ----------
    family, purpose, identity, description
        Fields of the `Rule`; its name is that of the function.
    """

    def decorate(change: Callable[..., int | list[Change]]) -> ModelPass:
        rule = Rule(change.__name__, "pass", family, purpose, identity, **description)
        return ModelPass(declare(rule), change)

    return decorate


class Passes:
    """Runs passes on a model, each where the model has an operator that it begins at.

    Parameters
    ----------
    model, scope
        Model, with its names and constants.

    Attributes
    ----------
    changes
        Descriptions of the changes of all passes so far.
    """

    def __init__(self, model: ir.Model, scope: ModelScope) -> None:
        self.changes: list[Change] = []
        self._model, self._scope = model, scope
        self._present = self._operators()

    def run(self, *passes: ScopedPass) -> bool:
        """Run passes in turn, and return whether one of them changed the model."""
        modified = [self._run(each) for each in passes]
        return any(modified)

    def _run(self, each: ScopedPass) -> bool:
        if each.begins_at and self._present.isdisjoint(each.begins_at):
            return False
        self._model.meta[SCOPE] = self._scope
        try:
            modified = each(self._model).modified
        finally:
            del self._model.meta[SCOPE]
        self.changes += each.changes
        if modified:
            self._present = self._operators()
        return modified

    def _operators(self) -> set[str]:
        return {node.op_type for node in nodes_of_model(self._model)}
