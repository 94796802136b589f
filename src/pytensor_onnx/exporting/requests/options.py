"""A request for an export: graph, options, names and paths."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from pytensor_onnx.dynamic_axes import DynamicAxes, NamedAxes
from pytensor_onnx.exporting.requests.arguments import check_keywords, check_state_path
from pytensor_onnx.exporting.requests.file_interface import FeatureNames, Interface
from pytensor_onnx.exporting.requests.output_names import check_file
from pytensor_onnx.exporting.requests.state_files import check_state_file
from pytensor_onnx.running.session import SessionOptions
from pytensor_onnx.targets import Profile, get_profile

_OWN = frozenset(("state_defaults", "static_state"))


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of `export_onnx`, and two of training steps.

    Attributes
    ----------
    state_defaults
        Whether inputs of the state have the present values as defaults.
    static_state
        Whether the state keeps the shapes of the present values.

    Examples
    --------
    >>> ExportOptions.of("export_onnx", {"taget": "web"})
    Traceback (most recent call last):
    pytensor_onnx.errors.ArgumentError: export_onnx has no argument 'taget': did you mean target?
    """

    path: str | os.PathLike | None = None
    output_names: Sequence[str] | None = None
    state_path: str | os.PathLike | None = None
    state_defaults: bool = True
    static_state: bool = False
    dynamic_axes: DynamicAxes | None = None
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None
    feature_names: FeatureNames | None = None
    opset_version: int | str | None = None
    target: str = "onnxruntime"
    runtime_version: str | None = None
    verify: bool = True
    assume_finite: bool = False
    inline_functions: bool = False
    precision: str | None = None
    providers: str | Sequence[str] = "cpu"
    session_options: SessionOptions | None = None

    @classmethod
    def of(
        cls,
        function: str,
        given: Mapping[str, Any],
        *,
        others: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> Self:
        """Return the options of the keywords that a user gives to a function.

        Parameters
        ----------
        function
            Name of the function, for the message.
        given
            The keywords.
        others
            Further keywords of the function, which a misspelt one may mean.
        without
            Options that the function does not take.

        Raises
        ------
        ArgumentError
            If there is no such option; the message has the most similar one.
        """
        known = {field.name for field in fields(cls)} - _OWN - {*without}
        check_keywords(function, given, known | {*others})
        return cls(**given)

    def check_files(self, *, has_state: bool) -> None:
        """Raise if a file cannot be written, or the target needs one for the state."""
        check_file(self.path)
        check_state_file(self.state_path, self.path)
        if has_state:
            check_state_path(self.target, self.path, self.state_path)

    @property
    def profile(self) -> Profile:
        """Profile of the target."""
        return get_profile(self.target, self.runtime_version)

    @property
    def stores_state(self) -> bool:
        """Whether the model has the present values of the state."""
        refused = self.profile.refuses_defaults
        return self.state_defaults and self.state_path is None and not refused

    @property
    def stores_start(self) -> bool:
        """Whether the metadata of the model has the present values of the state."""
        return self.state_path is None and self.profile.is_portable


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
    is_as_in_file
        Whether the graph is that of an imported file, as it is: its user wrote no operation.
    maps
        The nodes that make maps of outputs in files, by the names of these.
    encoder
        The part of a file that makes numbers of strings, None without one.
    """

    interface: Interface
    options: ExportOptions
    axes: NamedAxes
    examples: Sequence[Any] | None
    state: tuple[np.ndarray, ...]
    name: str
    is_as_in_file: bool = False
    maps: Mapping[str, Any] = field(default_factory=dict)
    encoder: Any = None

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
