"""Make a program from the source of an export: rewrites, conversion, verification, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.conversion import convert
from pytensor_onnx.dynamic_axes import named_axes
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.arguments import (
    check_outputs,
    read_examples,
    read_names,
    read_opset,
)
from pytensor_onnx.exporting.requests.interface import Interface
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.requests.reference_graph import reference_graph
from pytensor_onnx.exporting.requests.request import Request
from pytensor_onnx.exporting.requests.source import Source, warn_of_stored_values
from pytensor_onnx.exporting.verification.conversion import Conversion
from pytensor_onnx.exporting.verification.precision import narrowed_for
from pytensor_onnx.graph.origins import present, take_lines, take_owners
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.rewriting.declared_types import with_right_types
from pytensor_onnx.targets import get_profile
from pytensor_onnx.user_code import untraced


@untraced()
def export_source(source: Source, options: ExportOptions) -> ONNXProgram:
    """Export a source as a program."""
    get_profile(options.target)
    options.check_files(has_state=bool(source.updates))
    warn_of_stored_values(source)
    source.results = list(with_right_types(source.results))
    request = _request_for(source, options)
    source.dynamic = [request.axes.get(name, ()) for name in request.interface.inputs]
    graph = reference_graph(source, request.examples, options.static_state)
    conversion = convert_graph(graph, request)
    program = ONNXProgram(conversion, options.providers, options.session_options)
    if options.verify:
        program.verify(request.examples)
    if options.state_path is not None:
        program.save_state(options.state_path)
    if options.path is not None:
        program.save(options.path)
    return program


def _request_for(source: Source, options: ExportOptions) -> Request:
    interface = Interface.of(source, read_names(options.output_names))
    check_outputs(interface.output_tensors)
    return Request(
        interface,
        options,
        axes=named_axes(options.dynamic_axes),
        examples=read_examples(options.example_inputs, interface.inputs),
        state=tuple(interface.state.encode([source.values[v] for v in source.updates])),
        name=source.name or (Path(options.path).stem if options.path else "main_graph"),
    )


def convert_graph(written: FunctionGraph, request: Request) -> Conversion:
    """Convert a graph as written, for the target and in the floats that a request asks for."""
    interface, options = request.interface, request.options
    profile = get_profile(options.target)
    narrowing, notes = narrowed_for(written, options.precision, profile.precision)
    reference = narrowing.narrow if narrowing else written
    fgraph = interface.rewritten(reference)
    values = {
        variable: np.array(value, variable.type.dtype)
        for variable, value in zip(
            fgraph.inputs[interface.given.width :], request.state, strict=True
        )
    }
    converted = convert(
        fgraph,
        opset_version=read_opset(options.opset_version, profile),
        input_names=interface.input_tensors,
        output_names=interface.output_tensors,
        defaults=values if options.stores_state else {},
        dynamic_axes=request.axes,
        fixes_sizes=True,
        dim_names=True,
        constant_names=_constant_names(reference),
        name=request.name,
    )
    model = converted.model
    states = interface.states_of(model, list(values.values()))
    interface.describe(model, states)
    changes = prepare(
        converted,
        options.target,
        assume_finite=options.assume_finite,
        inline=options.inline_functions,
    )
    return Conversion(
        model,
        reference,
        rewritten=fgraph,
        signature=interface.signature(model),
        states=states,
        values={variable: present(value) for variable, value in converted.values.items()},
        owners=take_owners(model, fgraph),
        lines=take_lines(model),
        failures=converted.failures,
        changes=(*notes, *changes),
        target=options.target,
        narrowing=narrowing,
        request=request,
    )


def _constant_names(fgraph: FunctionGraph) -> dict[str, np.ndarray]:
    """Return the named constants of a graph."""
    return {
        constant.name: np.asarray(constant.data)
        for constant in fgraph.variables
        if isinstance(constant, Constant) and constant.name and is_tensor(constant.type)
    }
