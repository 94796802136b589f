"""A request for a model: names, options, and the values of the state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytensor_onnx.dynamic_axes import NamedAxes
from pytensor_onnx.exporting.requests.interface import Interface
from pytensor_onnx.exporting.requests.options import ExportOptions


@dataclass(frozen=True)
class Request:
    """All that a model is made by, but for the graph.

    Attributes
    ----------
    interface
        Names and types of inputs, results and states.
    options
        Options of the export.
    axes
        Names of axes, by the names of inputs and results.
    examples
        Example inputs, in the order of the inputs.
    state
        Tensors of the state's values.
    name
        Name of the graph.
    """

    interface: Interface
    options: ExportOptions
    axes: NamedAxes
    examples: Sequence[Any] | None
    state: tuple[np.ndarray, ...]
    name: str

    def part(self, inputs: Sequence[int], results: Sequence[int], *, single: bool) -> Request:
        """Return the request for some of the inputs and results."""
        interface = self.interface.part(inputs, results, single=single)
        names = {*interface.input_tensors, *interface.output_tensors}
        return replace(
            self,
            interface=interface,
            axes={name: axes for name, axes in self.axes.items() if name in names},
            examples=self.examples and [self.examples[i] for i in inputs],
        )
