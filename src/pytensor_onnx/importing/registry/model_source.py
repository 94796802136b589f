"""A model with its weights as variables, and which of them are trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir
import pytensor
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pytensor_onnx.errors import ArgumentError, did_you_mean
from pytensor_onnx.graph.model_reading import state_pairs
from pytensor_onnx.importing.registry.model_walk import constant_array
from pytensor_onnx.importing.registry.narrow_types import NARROW, marked

type Trainable = bool | str | Sequence[str] | Callable[[str, np.ndarray], bool]

_STATISTICS = {"BatchNormalization": (3, 4)}
"""Operands that training computes from data, and does not move along a gradient."""


@dataclass
class ModelSource:
    """A model, with its weights and states as variables, which all graphs of it share.

    Attributes
    ----------
    model
        The model, its nodes in order.
    trainable, shapes
        As in `from_onnx`.
    weights, state
        The variables by name, as they are used.
    """

    model: ir.Model
    trainable: Trainable
    shapes: dict[str, Any]
    weights: dict[str, Variable] = field(default_factory=dict)
    state: dict[str, SharedVariable] = field(default_factory=dict)

    def constant(self, name: str, tensor: ir.TensorProtocol) -> Variable:
        """Return the variable of a constant of the file."""
        if name not in self.weights:
            array, narrow = constant_array(tensor), tensor.dtype if tensor.dtype in NARROW else None
            if self._is_trained(name, array):
                self.weights[name] = pytensor.shared(np.array(array), name=name, shape=array.shape)
            else:
                type_ = TensorType(array.dtype.name, array.shape)
                self.weights[name] = TensorConstant(type_, np.asarray(array), name=name)
            marked(self.weights[name], narrow)
        return self.weights[name]

    def _is_trained(self, name: str, array: np.ndarray) -> bool:
        if callable(self.trainable):
            return bool(self.trainable(name, array))
        is_weight = array.dtype.kind == "f" and array.ndim > 0 and name not in self._statistics
        if isinstance(self.trainable, bool) or not is_weight:
            return self.trainable is True and is_weight
        matching = [p for p in self._patterns if fnmatchcase(name, p.removeprefix("!"))]
        return bool(matching) and not matching[-1].startswith("!")

    @property
    def _patterns(self) -> Sequence[str]:
        if isinstance(self.trainable, bool) or callable(self.trainable):
            return []
        return [self.trainable] if isinstance(self.trainable, str) else self.trainable

    def check_patterns(self) -> None:
        """Raise for a pattern that matches no weight."""
        for pattern in self._patterns:
            text = pattern.removeprefix("!")
            if not any(fnmatchcase(name, text) for name in self.weights):
                arrays = {k: v.type.ndim for k, v in self.weights.items() if v.type.ndim}
                raise ArgumentError(
                    f"no weight matches trainable={pattern!r}: "
                    + did_you_mean(text, arrays, f"they are {', '.join(list(arrays)[:20])}")
                )

    @cached_property
    def _statistics(self) -> set[str]:
        return {
            str(value.name)
            for node in self.model.graph.all_nodes()
            for position in _STATISTICS.get(node.op_type, ())
            if (value := node.inputs[position]) is not None
        }

    @cached_property
    def state_outputs(self) -> dict[str, str]:
        """Names of the outputs that are the next states, by the names of their inputs."""
        return state_pairs(self.model)
