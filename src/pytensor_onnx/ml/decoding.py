"""Build the decoding step of a language model, with cached keys and values of earlier tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.basic import ARange
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.ml.prediction import prediction
from pytensor_onnx.rewriting.engine.predicates import integer_of, size_of

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
