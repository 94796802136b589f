"""Prediction graphs of pytensor-ml models, and decoding step by step with a cache."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, apply_ancestors, toposort
from pytensor.tensor.basic import ARange
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.dynamic_axes import DynamicAxes
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError
from pytensor_onnx.rewriting.engine.predicates import integer_of, size_of

BATCH = "batch"
_TRAINING_LAYERS = ("DropoutLayer", "BatchNormLayer")

Path = str | os.PathLike | None


class Request(NamedTuple):
    """Arguments of `export_onnx`, with a model replaced by its graph."""

    inputs: Sequence[Variable]
    outputs: Variable | Sequence[Variable]
    path: Path
    dynamic_axes: DynamicAxes | None


def expand_model(
    inputs: Any, outputs: Any, path: Path, dynamic_axes: DynamicAxes | None
) -> Request:
    """Replace a model among the arguments of `export_onnx` by its prediction graph.

    Parameters
    ----------
    inputs
        Variables, in order; or, without ``outputs``, a `pytensor_ml.model.Model` or the
        output of a network, whose inputs are found in the graph.
    outputs
        Variables; or a Model, whose inputs ``inputs`` then lists in order.
    path
        The file to write; it may be passed in place of ``outputs``.
    dynamic_axes
        Names of axes. Unless any are given, the first axis of a model's first input is ``batch``;
        axes that must have the same size share the name.

    Raises
    ------
    ArgumentError
        If the outputs are missing.
    """
    if isinstance(inputs, DecodingStep):
        named = {**inputs.dynamic_axes, **(dynamic_axes or {})}
        return Request(inputs.inputs, inputs.outputs, path or outputs, named)
    if path is None and isinstance(outputs, str | os.PathLike):
        outputs, path = None, outputs
    if outputs is not None and not is_model(outputs):
        return Request(inputs, outputs, path, dynamic_axes)
    model = inputs if outputs is None else outputs
    if not (is_model(model) or isinstance(model, Variable)):
        raise ArgumentError("the outputs are missing: give the inputs and then the outputs")
    computed = model.y if is_model(model) else model
    results = prediction(computed)
    if outputs is None:
        inputs = _data_inputs(computed)
    return Request(inputs, results, path, dynamic_axes or _name_of_batch(inputs))


def is_model(value: Any) -> bool:
    """Return whether a value is a Model of pytensor-ml, without importing pytensor-ml.

    Examples
    --------
    >>> is_model("a text")
    False
    """
    module = sys.modules.get("pytensor_ml.model")
    return module is not None and isinstance(value, module.Model)


def warn_of_training(outputs: Variable | Sequence[Variable]) -> None:
    """Warn of layers in training mode, whose results differ in prediction."""
    if "pytensor_ml" not in sys.modules:
        return
    names = {
        str(node.op.name)
        for node in apply_ancestors(_as_list(outputs))
        if type(node.op).__name__ in _TRAINING_LAYERS
        and type(node.op).__module__.startswith("pytensor_ml.")
    }
    if names:
        warnings.warn(
            f"{', '.join(sorted(names))}: exported as in training. Give the model, or "
            "pytensor_ml.pytensorf.rewrite_for_prediction(output), to export what it predicts with",
            UserWarning,
            stacklevel=3,
        )


def _data_inputs(outputs: Variable | Sequence[Variable]) -> list[Variable]:
    """Return the inputs of a graph, in the order in which its operations use them."""
    found: dict[Variable, None] = {}
    waiting = _as_list(outputs)[::-1]
    while waiting:
        variable = waiting.pop()
        if variable not in found:
            found[variable] = None
            if variable.owner is not None:
                waiting.extend(reversed(variable.owner.inputs))
    return [v for v in found if v.owner is None and not isinstance(v, Constant | SharedVariable)]


def _name_of_batch(inputs: Sequence[Variable]) -> DynamicAxes | None:
    first = inputs[0] if inputs else None
    if first is None or not first.name or first.type.shape[:1] != (None,):
        return None
    return {first.name: {0: BATCH}}


def _as_list(outputs: Variable | Sequence[Variable]) -> list[Variable]:
    return [outputs] if isinstance(outputs, Variable) else list(outputs)


_ATTENTION = ("pytensor_ml.layers.attention", "AttentionLayer")
_LENGTH_AXIS = -2


class DecodingStep(NamedTuple):
    """Graph of one decoding step, an argument of `export_onnx`.

    Attributes
    ----------
    inputs
        The tokens, then ``past_key_0``, ``past_value_0``, ``past_key_1``, …: one pair for each
        attention layer, of shape (batch, heads, earlier tokens, size).
    outputs
        The outputs for the new tokens, then ``present_key_0``, ``present_value_0``, …: the past of
        the next step.
    dynamic_axes
        Names of the axes of the inputs: ``batch``, ``new`` and ``past``.
    """

    inputs: list[Variable]
    outputs: list[Variable]
    dynamic_axes: dict[str, dict[int, str]]


def decoding_step(tokens: TensorVariable, outputs: Variable | Sequence[Variable]) -> DecodingStep:
    """Return the graph that computes outputs of new tokens from cached keys and values.

    The step computes the outputs of the whole model for the last tokens: attention includes the
    cached keys and values, and positions continue after the cached tokens. It takes any number of
    new tokens: a whole prompt with a past of length 0, then one token after the other.

    Parameters
    ----------
    tokens
        Input of the model, of shape (batch, length).
    outputs
        Outputs of the model, such as logits, computed with causal attention layers of
        pytensor-ml.

    Raises
    ------
    PyTensorONNXError
        If there is no causal attention, or one that is not causal: its result for earlier tokens
        would change with every new one.
    """
    predicted = prediction(outputs)
    results = [predicted] if isinstance(predicted, Variable) else list(predicted)
    nodes = list(toposort(results))
    layers = [node for node in nodes if _is_attention(node)]
    if not layers:
        raise PyTensorONNXError("a decoding step needs attention layers of pytensor-ml; none found")
    for node in layers:
        if not node.op.is_causal:
            raise PyTensorONNXError(
                f"{node.outputs[0]} is not causal: the keys and values of earlier tokens would "
                "change with every new one"
            )
    past = {node: _past_of(node, i) for i, node in enumerate(layers)}
    past_length = next(iter(past.values()))[0].shape[_LENGTH_AXIS]
    present: list[Variable] = []
    known: dict[Variable, Variable] = {}
    for node in nodes:
        inputs = [known.get(v, v) for v in node.inputs]
        if node in past:
            i = len(present) // 2
            q, k, v, *mask = inputs
            for j, (name, new) in enumerate((("key", k), ("value", v))):
                joined = pt.concatenate([past[node][j], new], axis=_LENGTH_AXIS)
                joined.name = f"present_{name}_{i}"
                present.append(joined)
            made = [node.op(q, *present[-2:], *mask)]
        elif _counts_positions(node, tokens):
            made = [_later_positions(node, tokens, past_length)]
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            made = node.clone_with_new_inputs(inputs, strict=False).outputs
        else:
            continue
        for old, new in zip(node.outputs, made, strict=True):
            new.name = old.name
            known[old] = new
    earlier = [variable for pair in past.values() for variable in pair]
    return DecodingStep(
        inputs=[tokens, *earlier],
        outputs=[*(known.get(v, v) for v in results), *present],
        dynamic_axes={tokens.name or "input_0": {0: "batch", 1: "new"}}
        | {str(v.name): {0: "batch", 2: "past"} for v in earlier},
    )


def _is_attention(node: Apply) -> bool:
    return (type(node.op).__module__, type(node.op).__qualname__) == _ATTENTION


def _past_of(node: Apply, i: int) -> list[TensorVariable]:
    """Return inputs for the cached keys and values of a layer."""
    return [
        pt.tensor(
            f"past_{name}_{i}",
            dtype=v.type.dtype,
            shape=(*(None,) * (v.type.ndim - 3), v.type.shape[-3], None, v.type.shape[-1]),
        )
        for name, v in zip(("key", "value"), node.inputs[1:3], strict=True)
    ]


def _counts_positions(node: Apply, tokens: Variable) -> bool:
    """Return whether a node enumerates the positions of the tokens from 0."""
    if not isinstance(node.op, ARange):
        return False
    start, stop, step = node.inputs
    from_zero = (integer_of(start), integer_of(step)) == (0, 1)
    return from_zero and any(_is_length(v, tokens) for v in ancestors([stop]))


def _is_length(variable: Variable, tokens: Variable) -> bool:
    """Return whether a variable is the size of the second axis of the tokens."""
    return size_of(variable) == (tokens, 1)


def _later_positions(node: Apply, tokens: Variable, past_length: TensorVariable) -> TensorVariable:
    """Return the positions of the new tokens; checks of their number include the past."""
    stop = node.inputs[1]
    total = pt.lscalar()
    lengths = [v for v in ancestors([stop]) if _is_length(v, tokens)]
    last = clone_replace([stop], dict.fromkeys(lengths, total))[0]
    new = tokens.shape[1]
    last = clone_replace([last], {total: past_length + new})[0]
    return (pt.arange(new) + (last - new)).astype(node.op.dtype)


def prediction(outputs: Variable | Sequence[Variable]) -> Variable | Sequence[Variable]:
    """Return outputs in prediction mode: without dropout, with running statistics."""
    if "pytensor_ml" not in sys.modules:
        return outputs
    from pytensor_ml.pytensorf import rewrite_for_prediction

    return rewrite_for_prediction(outputs)
