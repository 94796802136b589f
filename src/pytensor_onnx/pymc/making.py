"""Make a program of graphs of a PyMC model: examples, names of axes, metadata, verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pytensor_onnx.errors import VerificationError
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.program.sources import export_graph
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.requests.row_metadata import describe_rows
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.names import Names, identifier
from pytensor_onnx.named_dims import is_named, tensor_of, without_named
from pytensor_onnx.pymc.batches import check_batch, of_batch
from pytensor_onnx.pymc.inputs import BATCH, Inputs
from pytensor_onnx.pymc.model_arguments import shared_name
from pytensor_onnx.pymc.model_graphs import ModelGraph
from pytensor_onnx.pymc.provenance import METADATA, RENAMED, provenance


@dataclass(frozen=True)
class Details:
    """Names beside those of inputs and outputs, and the length of the data to verify on.

    Attributes
    ----------
    output_axes
        Names of the axes of unknown size that all outputs begin with.
    columns
        Names of the columns, by the names of inputs and outputs in the model; others than those
        of the file do not count.
    verified_length
        Length of the data that the model is verified on, if the examples are longer and may be
        shorter.
    """

    output_axes: Mapping[int, str] = field(default_factory=dict)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    verified_length: int | None = None


def file_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of inputs and outputs in a file, by their names in the model.

    Raises
    ------
    ArgumentError
        If a name stands for two of the inputs and outputs.

    Examples
    --------
    >>> file_names(["1|group", "scale(x)", "scale_x"])
    {'1|group': '1_group', 'scale(x)': 'scale_x_1', 'scale_x': 'scale_x'}
    """
    taken = Names()
    for name in names:
        if names.count(name) > 1:
            raise shared_name(name)
        if identifier(name) == name:
            taken.reserve(name)
    return {name: name if identifier(name) == name else taken.unique(name) for name in names}


def make_program(
    graph: ModelGraph,
    inputs: Inputs,
    outputs: Mapping[str, Variable],
    options: ExportOptions,
    *,
    description: Mapping[str, Any],
    details: Details = Details(),
    batch: bool = False,
) -> ONNXProgram:
    """Export graphs of a model, with its description in the metadata.

    In names, ``_`` stands for characters that identifiers do not have; the metadata have the names
    that differ from those of the model. The model is verified at the initial point, which may be
    zero, and at one beside it. In the model of a batch, these points are two of one, which is
    compared with the graphs of a single point, too.
    """
    inputs.drop_unused(list(outputs.values()))
    output_axes = details.output_axes
    if batch:
        inputs, outputs = _of_batch(inputs, outputs, options.verify)
        output_axes = {0: BATCH, **output_axes}
    given = [str(v.name) for v in inputs.variables]
    names = file_names([*given, *outputs])
    known = {names[k]: v for k, v in details.columns.items() if k in names}
    features = {**known, **(options.feature_names or {})}
    inputs, outputs = _renamed(inputs, outputs, names)
    program = export_graph(
        inputs.variables,
        list(outputs.values()),
        replace(
            options,
            path=None,
            output_names=[names[name] for name in outputs],
            dynamic_axes=inputs.axes,
            example_inputs=inputs.examples,
            feature_names=features,
            verify=False,
        ),
    )
    renamed = {name: new for name, new in names.items() if name != new}
    program.model.metadata_props[METADATA] = provenance(
        graph, given, **{RENAMED: renamed}, **description
    )
    for value in program.model.graph.outputs:
        _name_axes(value, output_axes)
    describe_rows(program.model, features)
    if options.verify:
        _verify(program, inputs, details.verified_length)
    if options.path is not None:
        program.save(options.path)
    return program


def _verify(program: ONNXProgram, inputs: Inputs, size: int | None) -> None:
    """Verify a program on short data, or else at the examples and at a point beside them.

    With a size of short data, the verification names the number of rows that were compared.
    """
    rows = inputs.longest
    if (short := inputs.shortened(size) if size else None) is not None:
        try:
            program.verify_on([_as_inputs(program, short)])
        except VerificationError as error:
            # Data may have to fit each other, and fail when they are shorter.
            if error.verification is not None:
                raise
        else:
            part = f"{size:,} of {rows:,} rows"
            program.verification = replace(program.verification, part=part)
            return
    points = [inputs.examples, inputs.moved(np.random.default_rng(1))]
    if all(map(np.array_equal, *points)):
        points.pop()
    tails = [_as_inputs(program, point) for point in inputs.tails()]
    program.verify_on([_as_inputs(program, point) for point in points], tails=tails)
    if size and rows:
        part = f"{rows:,} of {rows:,} rows"
        program.verification = replace(program.verification, part=part)


def _of_batch(
    inputs: Inputs, outputs: Mapping[str, Variable], verify: bool
) -> tuple[Inputs, dict[str, Variable]]:
    """Return inputs and outputs for a batch of points."""
    inputs, outputs = _as_tensors(inputs, outputs)
    new, points = inputs.of_batch()
    batched = dict(zip(outputs, of_batch(list(outputs.values()), points), strict=True))
    if verify:
        check_batch(outputs, batched, inputs.variables, points, new.examples)
    return new, batched


def _renamed(
    inputs: Inputs, outputs: Mapping[str, Variable], names: Mapping[str, str]
) -> tuple[Inputs, Mapping[str, Variable]]:
    """Return inputs with their names in the file, and the outputs as graphs of them."""
    new = {
        v: v.type(name=names[str(v.name)]) for v in inputs.variables if v.name != names[str(v.name)]
    }
    if not new:
        return inputs, outputs
    graphs = clone_replace(list(outputs.values()), new)
    return inputs.replaced(new), dict(zip(outputs, graphs, strict=True))


def _as_tensors(
    inputs: Inputs, outputs: Mapping[str, Variable]
) -> tuple[Inputs, Mapping[str, Variable]]:
    """Return tensors in place of inputs with named dimensions, which have no place for an axis."""
    tensors = {v: tensor_of(v).type(name=v.name) for v in inputs.variables if is_named(v.type)}
    if not tensors:
        return inputs, outputs
    given = {v: v.type.filter_variable(tensor) for v, tensor in tensors.items()}
    graphs = clone_replace(list(outputs.values()), given, rebuild_strict=False)
    return inputs.replaced(tensors), dict(zip(outputs, without_named(graphs), strict=True))


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
