"""The options that the exports of a PyMC model share, as one object."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import pymc as pm

from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.requests.paths import check_file
from pytensor_onnx.pymc.model_arguments import LAYOUTS, read_choice
from pytensor_onnx.pymc.model_graphs import ModelGraph

_NOT_TAKEN = ("output_names", "state_path", "dynamic_axes", "example_inputs")


def read_options(
    function: str, path: str | os.PathLike | None, verify: bool, given: Mapping[str, Any]
) -> ExportOptions:
    """Return the options of an export of a model, before all work.

    Raises
    ------
    ArgumentError, MissingFolderError
        For an unknown keyword, or a path that cannot be written.
    """
    options = ExportOptions.of(
        function, {"path": path, "verify": verify, **given}, without=_NOT_TAKEN
    )
    check_file(path)
    return options


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of `export_logp`, `export_transforms` and `export_model`.

    Attributes
    ----------
    export
        Options of the export.
    vector
        Whether all continuous variables are one input.
    data
        Which data containers become inputs.
    batch
        Whether the file computes any number of points at once.
    constrained
        Whether the inputs are the variables themselves.
    jacobian, propto
        Which terms the density has.
    """

    export: ExportOptions
    vector: bool
    data: str | Iterable[str]
    batch: bool
    constrained: bool = False
    jacobian: bool = True
    propto: bool = False

    @classmethod
    def of(cls, export: ExportOptions, inputs: str, **shared: Any) -> Self:
        """Return the options of a layout of the inputs, ``"vector"`` or ``"named"``."""
        vector = read_choice(inputs, LAYOUTS, "inputs") == "vector"
        return cls(export=export, vector=vector, **shared)

    def graph_of(self, model: pm.Model) -> ModelGraph:
        """Return the graphs of a model."""
        return ModelGraph(model, constrained=self.constrained, data=self.data)
