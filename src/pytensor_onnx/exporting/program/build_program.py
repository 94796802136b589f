"""Make a program from the source of an export: rewrites, conversion, verification, files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.dynamic_axes import named_axes
from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.exporting.program.converting import convert_graph
from pytensor_onnx.exporting.program.garbage_collection import fewer_collections
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.arguments import read_examples
from pytensor_onnx.exporting.requests.interface import Interface
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.requests.output_names import check_outputs, read_names
from pytensor_onnx.exporting.requests.reference_graph import reference_graph
from pytensor_onnx.exporting.requests.request import Request
from pytensor_onnx.exporting.requests.row_metadata import check_features
from pytensor_onnx.exporting.requests.source import Source, warn_of_stored_values
from pytensor_onnx.progress import working
from pytensor_onnx.rewriting.engine.declared_types import with_right_types
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
    )
