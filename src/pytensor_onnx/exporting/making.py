"""Make a program from the source of an export: rewrites, conversion, verification, files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant

from pytensor_onnx.conversion import convert, names_of
from pytensor_onnx.dynamic_axes import DynamicAxes, named_axes
from pytensor_onnx.encodings import Boundary
from pytensor_onnx.exporting.arguments import (
    check_names,
    check_state_path,
    read_examples,
    read_names,
    read_opset,
)
from pytensor_onnx.exporting.paths import check_file
from pytensor_onnx.exporting.precision import narrowed_for
from pytensor_onnx.exporting.program import ONNXProgram
from pytensor_onnx.exporting.reference_graph import reference_graph
from pytensor_onnx.exporting.signature import Signature
from pytensor_onnx.exporting.source import Source, warn_of_stored_values
from pytensor_onnx.exporting.state_files import State, check_state_file
from pytensor_onnx.graph.origins import take_lines, take_owners
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.running.linker import ONNX, OPSET_VERSION
from pytensor_onnx.running.session import SessionOptions
from pytensor_onnx.targets import get_profile
from pytensor_onnx.user_code import untraced


@untraced()
def export_source(
    source: Source,
    path: str | os.PathLike | None = None,
    *,
    output_names: Sequence[str] | None = None,
    state_path: str | os.PathLike | None = None,
    state_defaults: bool = True,
    static_state: bool = False,
    dynamic_axes: DynamicAxes | None = None,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    opset_version: int | str = OPSET_VERSION,
    target: str = "onnxruntime",
    verify: bool = True,
    assume_finite: bool = False,
    inline_functions: bool = False,
    precision: str | None = None,
    providers: str | Sequence[str] = "cpu",
    session_options: SessionOptions | None = None,
) -> ONNXProgram:
    """Export a source as a program; see `export_onnx` for the options."""
    profile = get_profile(target)
    check_file(path)
    check_state_file(state_path)
    if source.updates:
        check_state_path(target, path, state_path)
    warn_of_stored_values(source)
    input_names = names_of(source.inputs, "input")
    state_names = [v.name or f"state_{i}" for i, v in enumerate(source.updates)]
    results = read_names(output_names)
    check_names(results, source.results, {*input_names, *state_names})
    axes = named_axes(dynamic_axes)
    examples = read_examples(example_inputs, input_names)
    source.dynamic = [axes.get(name, ()) for name in input_names]
    reference = reference_graph(source, examples, static_state)
    narrowing, notes = narrowed_for(reference, precision, profile.precision)
    if narrowing:
        reference = narrowing.narrow
    fgraph = reference.clone(check_integrity=False)
    given, returned = Boundary.of(source.inputs), Boundary.of(source.results)
    state = Boundary.of(source.updates)
    fgraph.update_mapping = {returned.width + i: given.width + i for i in range(state.width)}
    ONNX.optimizer.rewrite(fgraph)

    state_inputs = fgraph.inputs[given.width :]
    encoded = state.encode([source.values[v] for v in source.updates])
    values = [np.asarray(x, v.type.dtype) for x, v in zip(encoded, state_inputs, strict=True)]
    result_names = results or names_of(source.results, "output")
    next_names = [f"{name}_next" for name in state_names]
    converted = convert(
        fgraph,
        opset_version=read_opset(opset_version, profile),
        input_names=[*given.names(input_names), *state.names(state_names)],
        output_names=[*returned.names(result_names), *state.names(next_names)],
        defaults=dict(zip(state_inputs, values, strict=True))
        if state_defaults and state_path is None and not profile.refuses_defaults
        else {},
        dynamic_axes=axes,
        dim_names=True,
        constant_names={
            constant.name: np.asarray(constant.data)
            for constant in reference.variables
            if isinstance(constant, Constant) and constant.name and is_tensor(constant.type)
        },
        name=source.name or (Path(path).stem if path else "main_graph"),
    )
    model = converted.model
    graph = model.graph
    pairs = zip(graph.inputs[given.width :], graph.outputs[returned.width :], values, strict=True)
    states = [State(str(now.name), str(then.name), value) for now, then, value in pairs]
    if states:
        model.metadata_props["state"] = json.dumps({s.name: s.next_name for s in states})
    tensors = [str(value.name) for value in graph.inputs]
    next_tensors = [str(value.name) for value in graph.outputs]
    encodings = {
        "inputs": (given + state).described([*input_names, *state_names], tensors),
        "outputs": (returned + state).described([*result_names, *next_names], next_tensors),
    }
    if any(encodings.values()):
        model.metadata_props["encodings"] = json.dumps(encodings)
    options = {"assume_finite": assume_finite, "inline": inline_functions}
    changes = notes + prepare(converted, target, **options)
    program = ONNXProgram(
        model,
        reference=reference,
        rewritten=fgraph,
        states=states,
        signature=Signature(
            given, returned, given.value_names(input_names, tensors), source.returns_single
        ),
        failures=converted.failures,
        lines=take_lines(model),
        owners=take_owners(model, fgraph),
        values=converted.values,
        changes=changes,
        target=target,
        narrowing=narrowing,
        providers=providers,
        session_options=session_options,
    )
    if verify:
        program.verify(examples)
    if state_path is not None:
        program.save_state(state_path)
    if path is not None:
        program.save(path)
    return program
