"""Export graphs and functions with their options: the sources of programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytensor.compile.executor import Function

from pytensor_onnx.encodings import has_tensors
from pytensor_onnx.exporting.program.build_program import export_source
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.arguments import (
    as_function,
    read_arguments,
)
from pytensor_onnx.exporting.requests.noise import with_noise
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.requests.source import Source, Updates, check_inputs, read_updates
from pytensor_onnx.ml.model import warn_of_training
from pytensor_onnx.named_dims import is_tensor


def export_graph(
    inputs: Any,
    outputs: Any,
    options: ExportOptions,
    *,
    updates: Updates | None = None,
    rng: str = "state",
) -> ONNXProgram:
    """Export a graph; see `export_onnx`."""
    request = read_arguments(
        inputs, outputs, options.path, options.dynamic_axes, options.output_names
    )
    if not updates:
        warn_of_training(request.results)
    request, updated = with_noise(rng, request, read_updates(updates))
    shared = check_inputs(request.inputs, [*request.results, *updated.values()])
    opaque = [v for v in shared if v not in updated and not has_tensors(v.type)]
    source = Source(
        # What no tensor can hold stays an input, which the conversion then refuses with all else.
        inputs=[*request.inputs, *opaque],
        results=request.results,
        updates=updated,
        # Tensors are copied into the constants and the state.
        values={v: v.get_value(borrow=is_tensor(v.type)) for v in {*shared, *updated}},
        returns_single=request.returns_single,
    )
    options = replace(
        options,
        path=request.path,
        output_names=request.names,
        dynamic_axes=request.dynamic_axes,
    )
    return export_source(source, options)


def export_function(function: Function, options: ExportOptions) -> ONNXProgram:
    """Export a compiled function; see `export_function_onnx`."""
    function = as_function(function)
    maker = function.maker
    fgraph = maker.fgraph.clone(check_integrity=False)
    updates = {
        fgraph.inputs[position]: fgraph.outputs[output]
        for output, position in (maker.fgraph.update_mapping or {}).items()
    }
    source = Source(inputs=[], results=fgraph.outputs[: len(maker.outputs)], updates=updates)
    source.returns_single = function.unpack_single
    source.name = function.name
    for variable, spec, container in zip(
        fgraph.inputs, maker.inputs, function.input_storage, strict=True
    ):
        if variable in updates or (spec.implicit and has_tensors(variable.type)):
            source.values[variable] = container.data
        else:
            variable.name = spec.name or variable.name
            source.inputs.append(variable)
    return export_source(source, options)
