"""Cut a program down to some of its outputs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass, RemoveUnusedNodesPass
from pytensor.graph.basic import Variable, clone_get_equiv
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors

from pytensor_onnx.encodings import Boundary
from pytensor_onnx.errors import ArgumentError, choose_of
from pytensor_onnx.exporting.program.selected_sizes import read_sizes_of
from pytensor_onnx.exporting.requests.row_metadata import FEATURE_NAMES, describe_rows
from pytensor_onnx.exporting.requests.signature import Signature
from pytensor_onnx.exporting.verification.converted_graph import Conversion
from pytensor_onnx.exporting.verification.pickling import values_by_name
from pytensor_onnx.exporting.verification.precision import Narrowing


def select_outputs(conversion: Conversion, names: str | Sequence[str]) -> Conversion:
    """Return the conversion of some of the outputs, and of the inputs that these depend on.

    States stay, with their next values.

    Parameters
    ----------
    conversion
        The conversion.
    names
        Names of outputs, or that of one.

    Raises
    ------
    ArgumentError
        If there is no such output.
    """
    signature, n_states = conversion.signature, len(conversion.states)
    chosen = _chosen(conversion, [names] if isinstance(names, str) else list(names))
    outputs = _tensors(signature.outputs, chosen, n_states)
    model = conversion.model.clone()
    results = [model.graph.outputs[i] for i in outputs]
    model.graph.outputs.clear()
    model.graph.outputs.extend(results)
    model = _pruned(model)
    used = _behind(outputs, conversion.reference, conversion.rewritten)
    if read_sizes_of(model.graph, used):
        model = _pruned(model)
    pairs = zip(model.graph.inputs, used, strict=True)
    used = [is_used or bool(v.uses()) or v.is_graph_output() for v, is_used in pairs]
    groups = signature.inputs.grouped(used[: len(used) - n_states])
    kept = [i for i, group in enumerate(groups) if any(group)]
    inputs = _tensors(signature.inputs, kept, n_states)
    for i in sorted(set(range(len(used))).difference(inputs), reverse=True):
        model.graph.inputs.pop(i)
    _cut_metadata(model)
    reference, _ = _cut(conversion.reference, inputs, outputs)
    rewritten, copies = _cut(conversion.rewritten, inputs, outputs)
    named = values_by_name(model)
    narrowing, request = conversion.narrowing, conversion.request
    single = isinstance(names, str)
    selected = Signature(
        Boundary(tuple(signature.inputs.types[i] for i in kept)),
        Boundary(tuple(signature.outputs.types[i] for i in chosen)),
        [signature.names[i] for i in kept],
        returns_single=single,
    )
    selected.describe_results(model)
    return replace(
        conversion,
        model=model,
        reference=reference,
        rewritten=rewritten,
        signature=selected,
        owners={name: copies[node] for name, node in conversion.owners.items() if node in copies},
        values={
            copies[v]: named[value.name]
            for v, value in conversion.values.items()
            if v in copies and value.name in named
        },
        narrowing=narrowing and _cut_narrowing(narrowing, inputs, outputs),
        request=request and request.part(kept, chosen, single=single),
    )


def _chosen(conversion: Conversion, names: Sequence[str]) -> list[int]:
    """Return the positions of the values to which the outputs of the given names belong."""
    signature = conversion.signature.outputs
    results = conversion.output_names[: signature.width]
    for name in names:
        if name not in results:
            raise ArgumentError(f"there is no output {name!r}: {choose_of(name, results)}")
    if not names:
        raise ArgumentError(f"no output is named: choose of {', '.join(results)}")
    owners = [i for i, group in enumerate(signature.grouped(results)) for _ in group]
    return list(dict.fromkeys(owners[results.index(name)] for name in names))


def _tensors(boundary: Boundary, values: Sequence[int], n_states: int) -> list[int]:
    """Return the positions of the tensors of some values, and of the states behind all values."""
    groups = boundary.grouped(range(boundary.width))
    return [
        *(j for i in values for j in groups[i]),
        *range(boundary.width, boundary.width + n_states),
    ]


def _pruned(model: ir.Model) -> ir.Model:
    """Return a model without the nodes, constants and functions that no output needs."""
    # Values remain in use by the bodies of loops that are removed, but not in a copy.
    while RemoveUnusedNodesPass()(model).modified:
        model = model.clone()
    RemoveUnusedFunctionsPass()(model)
    return model


def _behind(outputs: Sequence[int], *fgraphs: FunctionGraph) -> list[bool]:
    """Return for each input whether the outputs of PyTensor's graphs depend on it."""
    used = [set(ancestors(_results(fgraph, outputs))) for fgraph in fgraphs]
    return [
        any(v in among for v, among in zip(variables, used, strict=True))
        for variables in zip(*(fgraph.inputs for fgraph in fgraphs), strict=True)
    ]


def _cut(
    fgraph: FunctionGraph, inputs: Sequence[int], outputs: Sequence[int]
) -> tuple[FunctionGraph, dict]:
    """Return a copy of a graph with some of the inputs and outputs, and the copy of each part."""
    results = _results(fgraph, outputs)
    copies = clone_get_equiv(fgraph.inputs, results, copy_orphans=False)
    given = [copies[fgraph.inputs[i]] for i in inputs]
    return FunctionGraph(given, [copies[v] for v in results], clone=False), copies


def _results(fgraph: FunctionGraph, outputs: Sequence[int]) -> list[Variable]:
    """Return some outputs of a graph; a loaded program has no graph, and gives none."""
    return [fgraph.outputs[i] for i in outputs] if fgraph.outputs else []


def _cut_narrowing(
    narrowing: Narrowing, inputs: Sequence[int], outputs: Sequence[int]
) -> Narrowing:
    """Return the graphs of both precisions for some of the inputs and outputs."""
    written, of_written = _cut(narrowing.written, inputs, outputs)
    narrow, of_narrow = _cut(narrowing.narrow, inputs, outputs)
    pairs = narrowing.variables.items()
    variables = {
        of_written[v]: of_narrow[new] for v, new in pairs if v in of_written and new in of_narrow
    }
    return replace(narrowing, written=written, narrow=narrow, variables=variables)


def _cut_metadata(model: ir.Model) -> None:
    """Remove inputs and outputs that the model does not have from the metadata."""
    told = json.loads(model.metadata_props.get("encodings", "{}"))
    for side, values in (("inputs", model.graph.inputs), ("outputs", model.graph.outputs)):
        names = {value.name for value in values}
        encoded = told.get(side, {}).items()
        told[side] = {k: v for k, v in encoded if names.issuperset(v["parts"].values())}
    if "encodings" in model.metadata_props:
        model.metadata_props["encodings"] = json.dumps(told)
    describe_rows(model, json.loads(model.metadata_props.get(FEATURE_NAMES, "{}")))
    if "pymc" in model.metadata_props:
        description = json.loads(model.metadata_props["pymc"])
        renamed = description.get("renamed", {})
        names = {value.name for value in model.graph.inputs}
        for name, data in description["data"].items():
            data["input"] = renamed.get(name, name) in names
        if isinstance(outputs := description.get("outputs"), dict):
            names = {value.name for value in model.graph.outputs}
            description["outputs"] = _kinds_of(outputs, names, renamed)
        model.metadata_props["pymc"] = json.dumps(description)


def _kinds_of(
    outputs: Mapping[str, Sequence[str]],
    names: Collection[str | None],
    renamed: Mapping[str, str],
) -> dict[str, list[str]]:
    """Return the kinds of outputs that a predictor has of each variable, by names of outputs."""

    def is_kept(name: str, kind: str) -> bool:
        output = name if kind == "draws" else f"{name}_{kind}"
        return renamed.get(output, output) in names

    kinds = {name: [k for k in kinds if is_kept(name, k)] for name, kinds in outputs.items()}
    return {name: kept for name, kept in kinds.items() if kept}
