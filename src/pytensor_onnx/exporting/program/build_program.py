"""From a request to a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pytensor.compile.executor import Function
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.dynamic_axes import named_axes
from pytensor_onnx.encodings import has_tensors
from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.exporting.program.converting import convert_graph, fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.arguments import as_function, read_arguments, read_examples
from pytensor_onnx.exporting.requests.file_interface import (
    Interface,
    Source,
    Updates,
    check_features,
    check_inputs,
    read_updates,
    warn_of_stored_values,
    with_noise,
)
from pytensor_onnx.exporting.requests.options import ExportOptions, Request
from pytensor_onnx.exporting.requests.output_names import check_outputs, read_names
from pytensor_onnx.exporting.requests.reference_graph import reference_graph
from pytensor_onnx.ml.model import warn_of_training
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.operators.dims import AS_IN_FILE, ENCODER
from pytensor_onnx.progress import working
from pytensor_onnx.rewriting.query.registration import with_right_types
from pytensor_onnx.running.fingerprint import FINGERPRINT
from pytensor_onnx.user_code import untraced


@untraced()
@fewer_collections()
@working("exporting")
def export_source(source: Source, options: ExportOptions) -> ONNXProgram:
    """Export a source as a program."""
    profile = options.profile
    options.check_files(has_state=bool(source.updates))
    warn_of_stored_values(source)
    source.results = list(with_right_types(source.results))
    request = _request_for(source, options)
    source.dynamic = [request.axes.get(name, ()) for name in request.interface.inputs]
    graph = _graph_of(source, request, options.static_state, profile.is_portable)
    if profile.why_no_draws and request.interface.has_generator_states:
        raise UnsupportedOpError(
            f"the target {options.target!r} has no random draws, since {profile.why_no_draws}: "
            'export with rng="inputs", which makes the noise of draws inputs'
        )
    if profile.splits_words and request.interface.has_generators:
        graph, state = request.interface.in_small_words(graph, request.state)
        request = replace(request, state=tuple(state))
    conversion = convert_graph(graph, request)
    program = ONNXProgram(conversion, options.providers, options.session_options)
    if options.session_options is not None and options.session_options.reproducible:
        found = program.fingerprint().checked()
        program.model.metadata_props[FINGERPRINT] = found.sha256
    if options.verify:
        program.verify(request.examples)
    if options.state_path is not None:
        program.save_state(options.state_path)
    if options.path is not None:
        program.save(options.path)
    return program


def _graph_of(
    source: Source, request: Request, static_state: bool, is_portable: bool
) -> FunctionGraph:
    """Return the graph to export; a portable one has a state of known shapes, if it keeps them."""
    graph = reference_graph(source, request.examples, static_state or is_portable)
    if is_portable and not static_state:
        width = len(graph.outputs) - len(request.state)
        kept = [np.shape(value) for value in request.state]
        if [getattr(v.type, "shape", ()) for v in graph.outputs[width:]] != kept:
            return reference_graph(source, request.examples)
    return graph


def _request_for(source: Source, options: ExportOptions) -> Request:
    interface = Interface.of(source, read_names(options.output_names))
    check_outputs(interface.output_tensors)
    check_features(options.feature_names, [*interface.input_tensors, *interface.output_tensors])
    return Request(
        interface,
        options,
        axes=named_axes(options.dynamic_axes),
        examples=read_examples(options.example_inputs, interface.inputs),
        state=tuple(interface.state.encode([source.values[v] for v in source.updates])),
        name=source.name or (Path(options.path).stem if options.path else "main_graph"),
        is_as_in_file=source.is_as_in_file,
        **_parts_of_file(source, interface, options),
    )


def _parts_of_file(source: Source, interface: Interface, options: ExportOptions) -> dict[str, Any]:
    """Return maps of outputs and encoders of strings, none where the graph or a runtime differs."""
    if options.target != "onnxruntime" or options.precision is not None or not source.is_as_in_file:
        return {}
    maps = {interface.output_tensors[i]: made for i, made in source.maps.items()}
    encoder = source.encoder
    has_all = encoder is not None and {*encoder.outputs} <= {*interface.input_tensors}
    return {"maps": maps, "encoder": encoder if has_all else None}


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
    origins = [getattr(v.tag, AS_IN_FILE, False) for v in request.results]
    source = Source(
        # What no tensor can hold stays an input, which the conversion then refuses with all else.
        inputs=[*request.inputs, *opaque],
        results=request.results,
        updates=updated,
        # Tensors are copied into the constants and the state.
        values={v: v.get_value(borrow=is_tensor(v.type)) for v in {*shared, *updated}},
        returns_single=request.returns_single,
        is_as_in_file=all(origins),
        maps={i: made for i, made in enumerate(origins) if not isinstance(made, bool)},
        encoder=next((e for v in request.inputs if (e := getattr(v.tag, ENCODER, None))), None),
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
