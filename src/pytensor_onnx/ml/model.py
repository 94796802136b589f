"""Extract the prediction graph of a pytensor-ml model."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import apply_ancestors

from pytensor_onnx.dynamic_axes import DynamicAxes
from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.ml.decoding import DecodingStep
from pytensor_onnx.ml.prediction import prediction

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
