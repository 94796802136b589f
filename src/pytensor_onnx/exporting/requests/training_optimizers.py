"""Read the optimizer of a training step: a rule, a function of the learning rate, or updates."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError

Updates = Mapping[SharedVariable, Variable]
Rule = Callable[[Variable, Sequence[SharedVariable]], Updates]
LEARNING_RATE = "learning_rate"


def updates_of(
    optimizer: Rule | Callable[..., Rule] | Updates,
    loss: TensorVariable,
    params: Sequence[SharedVariable],
) -> dict[SharedVariable, Variable]:
    """Return the updates of an optimizer; see `export_training_step` for its forms.

    Raises
    ------
    ArgumentError
        If it is none, or gives no updates.
    """
    if isinstance(optimizer, Mapping | list | tuple):
        return dict(optimizer)
    if not callable(optimizer):
        raise ArgumentError(
            f"the optimizer must be a rule or updates, not a {type(optimizer).__name__}"
        )
    rule: Callable[..., Any] = optimizer
    signature = inspect.signature(optimizer)
    rate = _rate_argument(signature)
    if rate is not None:
        rule = partial(rule, **{rate: pt.scalar(rate, dtype=pytensor.config.floatX)})
        # A function that requires the loss and the parameters is a rule already.
        if not _required(signature, rate):
            rule = rule()
    updates = rule(loss, params) if callable(rule) else rule
    if not isinstance(updates, Mapping | list | tuple):
        raise ArgumentError(
            f"the optimizer {optimizer!r} gives no updates, but a {type(updates).__name__}: give a "
            "rule (loss, params) -> updates, or a function of the learning rate that returns one"
        )
    return dict(updates)


def _rate_argument(signature: inspect.Signature) -> str | None:
    """Return the name of the learning rate argument, None without one.

    It is called ``learning_rate``, or is the first argument of a function without a second required
    one: an update rule needs the loss and the parameters.
    """
    kinds = [argument.kind for argument in signature.parameters.values()]
    if LEARNING_RATE in signature.parameters:
        return LEARNING_RATE
    if not kinds or kinds[0] is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return None
    first = next(iter(signature.parameters))
    return None if _required(signature, first) else first


def _required(signature: inspect.Signature, name: str) -> list[str]:
    """Return the names of required arguments except the given one."""
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        argument.name
        for argument in signature.parameters.values()
        if argument.default is argument.empty and argument.kind not in optional
        if argument.name != name
    ]
