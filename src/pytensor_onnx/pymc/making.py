"""Make a program of graphs of a PyMC model: examples, names of axes, metadata, verification."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pytensor_onnx.exporting.arguments import check_keywords
from pytensor_onnx.exporting.export import export_onnx
from pytensor_onnx.exporting.paths import check_file
from pytensor_onnx.exporting.program import ONNXProgram
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.names import identifier
from pytensor_onnx.pymc.arguments import shared_name
from pytensor_onnx.pymc.graphs import POINT, ModelGraph
from pytensor_onnx.pymc.provenance import METADATA, provenance

Axes = Mapping[int, str] | Sequence[int]
_OPTIONS = frozenset(
    (
        *("opset_version", "target", "verify", "assume_finite", "inline_functions"),
        *("precision", "providers", "session_options"),
    )
)


class Inputs:
    """Inputs of a file: variables, the arrays that it is made for, and the axes that stay open."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.examples: list[np.ndarray] = []
        self.axes: dict[str, Axes] = {}
        self._free: set[Variable] = set()
        self._optional: set[Variable] = set()

    def add(
        self,
        variable: Variable,
        example: Any,
        axes: Axes | None = None,
        *,
        free: bool = False,
        optional: bool = False,
    ) -> None:
        """Add an input.

        Parameters
        ----------
        variable, example, axes
            The input, an array for it, and the axes of other sizes than the array's.
        free
            Whether it may have any real values.
        optional
            Whether it is left out of a file whose outputs do not depend on it.
        """
        self.variables.append(variable)
        self.examples.append(np.asarray(example, variable.type.dtype))
        if axes:
            self.axes[str(variable.name)] = axes
        if free:
            self._free.add(variable)
        if optional:
            self._optional.add(variable)

    def add_data(self, graph: ModelGraph) -> None:
        """Add the data containers, whose axes have the names of their dimensions."""
        for container, variable in graph.containers.items():
            default = [None] * variable.type.ndim
            dims = graph.model.named_vars_to_dims.get(str(variable.name), default)
            sizes = enumerate(zip(variable.type.shape, dims, strict=True))
            names = {i: dim or f"{variable.name}_{i}" for i, (n, dim) in sizes if n is None}
            self.add(variable, container.get_value(), names, optional=True)

    def add_values(self, graph: ModelGraph, *, vector: bool) -> None:
        """Add the free variables, the continuous ones as one vector if wanted."""
        for variable, start, axes in continuous_inputs(graph, vector=vector):
            self.add(variable, start, axes, free=not graph.is_constrained)
        for value in graph.discrete:
            self.add(value.variable, value.start, value.open_axes, optional=True)

    def drop_unused(self, outputs: Sequence[Variable]) -> None:
        """Remove the optional inputs on which no output depends."""
        unused = self._optional.difference(ancestors(outputs))
        kept = [i for i, v in enumerate(self.variables) if v not in unused]
        self.axes = {k: v for k, v in self.axes.items() if k not in {u.name for u in unused}}
        self.variables = [self.variables[i] for i in kept]
        self.examples = [self.examples[i] for i in kept]

    def moved(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the examples with other values of the free inputs."""
        return [
            (x + rng.uniform(-0.5, 0.5, x.shape)).astype(x.dtype) if v in self._free else x
            for v, x in zip(self.variables, self.examples, strict=True)
        ]


def continuous_inputs(
    graph: ModelGraph, *, vector: bool
) -> list[tuple[Variable, np.ndarray, Axes]]:
    """Return the inputs for the continuous values, their initial values and open axes."""
    if not vector:
        return [(value.variable, value.start, value.open_axes) for value in graph.continuous]
    if not graph.continuous:
        return []
    is_open = graph.point.type.shape == (None,)
    return [(graph.point, graph.start, {0: f"{POINT}_size"} if is_open else {})]


def check_options(function: str, path: str | os.PathLike | None, options: Mapping) -> None:
    """Raise for an unknown keyword or a path that cannot be written, before all work."""
    check_keywords(function, options, _OPTIONS)
    check_file(path)


def check_names(names: Sequence[str]) -> None:
    """Raise if a name stands for two of the inputs and outputs."""
    for name in names:
        if names.count(name) > 1:
            raise shared_name(name)


def make_program(
    graph: ModelGraph,
    inputs: Inputs,
    outputs: Mapping[str, Variable],
    path: str | os.PathLike | None,
    *,
    verify: bool = True,
    description: Mapping[str, Any],
    output_axes: Mapping[int, str] | None = None,
    **options: Any,
) -> ONNXProgram:
    """Export graphs of a model, with its description in the metadata.

    In names, ``_`` stands for characters that identifiers do not have. The model is verified at the
    initial point, which may be zero, and at one beside it.
    """
    inputs.drop_unused(list(outputs.values()))
    names = [*(str(v.name) for v in inputs.variables), *outputs]
    check_names([identifier(name) for name in names])
    program = export_onnx(
        inputs.variables,
        {identifier(name): variable for name, variable in outputs.items()},
        dynamic_axes=inputs.axes,
        example_inputs=inputs.examples,
        verify=False,
        **options,
    )
    program.model.metadata_props[METADATA] = provenance(
        graph, [str(v.name) for v in inputs.variables], **description
    )
    for value in program.model.graph.outputs:
        _name_axes(value, output_axes or {})
    if verify:
        from pytensor_onnx.exporting.verification import verify_program

        points = inputs.examples, inputs.moved(np.random.default_rng(1))
        program.verification = verify_program(program, [_as_inputs(program, p) for p in points])
    if path is not None:
        program.save(path)
    return program


def _as_inputs(program: ONNXProgram, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Cast arrays to the dtypes of a program's inputs, which `precision` makes narrower."""
    pairs = zip(arrays, program.inputs, strict=True)
    return [x.astype(v.dtype.numpy()) if v.dtype else x for x, v in pairs]


def _name_axes(value: ir.Value, names: Mapping[int, str]) -> None:
    """Name the axes of unknown size that a value has."""
    dims = list(dims_of(value) or ())
    for axis, name in names.items():
        if axis < len(dims) and not isinstance(dims[axis], int):
            dims[axis] = name
    value.shape = ir.Shape(dims)
