"""Programs with selected outputs, inputs and sizes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass, RemoveUnusedNodesPass
from pytensor.graph.basic import Variable, clone_get_equiv
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors

from pytensor_onnx.encodings import Boundary
from pytensor_onnx.errors import ArgumentError, choose_of
from pytensor_onnx.exporting.requests.file_interface import FEATURE_NAMES, describe_rows
from pytensor_onnx.exporting.requests.options import Request
from pytensor_onnx.exporting.requests.output_names import is_name
from pytensor_onnx.exporting.requests.signature import Signature
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.exporting.verification.pickling import values_by_name
from pytensor_onnx.exporting.verification.rounding import Narrowing
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.operators.dims import ComputedSize, Dim, dims_of, replace_parts
from pytensor_onnx.passes.spell_sizes import computed_sizes_of, keep_computed_sizes


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


def rename_axes(conversion: Conversion, names: Mapping[str, str]) -> Conversion:
    """Return a conversion whose model has other names of axes.

    Raises
    ------
    ArgumentError
        For names that the model does not have, or that cannot be given; the message has all.
    """
    _check(conversion.model, names)
    model = conversion.model.clone()
    computed = computed_sizes_of(conversion.model)

    def rename(name: Dim) -> Dim:
        if isinstance(name, ComputedSize):
            return replace_parts(name, rename)
        return names.get(name, name) if isinstance(name, str) else name

    texts, sizes = dict[str, str](), dict[str, ComputedSize]()
    for text, size in computed.items():
        new = rename(size)
        assert isinstance(new, ComputedSize)
        texts[text] = text.replace(str(size), str(new))
        sizes[texts[text]] = new
    _rename_dims(model, lambda dim: texts[dim] if dim in texts else rename(dim))
    keep_computed_sizes(model, sizes)
    named = values_by_name(model)
    return replace(
        conversion,
        model=model,
        values={v: named[x.name] for v, x in conversion.values.items() if x.name in named},
        request=conversion.request and _with_axes(conversion.request, model),
    )


def _check(model: ir.Model, names: Mapping[str, str]) -> None:
    known = list(dict.fromkeys(_names(model)))
    kept = {name for name in known if name not in names}
    problems = []
    for old, new in names.items():
        if old not in known:
            problems.append(f"there is no axis {old!r}: {choose_of(old, known)}")
        if not is_name(new):
            problems.append(f"{new!r} cannot name an axis")
        elif new in kept or list(names.values()).count(new) > 1:
            problems.append(f"{new!r} would name two axes, whose sizes may differ")
    if problems:
        raise ArgumentError("; ".join(problems))


def _names(model: ir.Model) -> Iterator[str]:
    """Yield the names of axes in a model, without computed sizes."""
    computed = computed_sizes_of(model)
    for value in _values(model):
        yield from (d for d in dims_of(value) or () if isinstance(d, str) and d not in computed)


def _values(model: ir.Model) -> Iterator[ir.Value]:
    yield from model.graph.inputs
    for node in all_nodes(model.graph):
        yield from node.outputs
        for body in bodies_of(node):
            yield from body.inputs


def _rename_dims(model: ir.Model, rename: Callable[[Dim], Dim]) -> None:
    for value in _values(model):
        dims = dims_of(value)
        if dims is not None:
            value.shape = ir.Shape([rename(dim) for dim in dims])


def _with_axes(request: Request, model: ir.Model) -> Request:
    """Return a request that gives the axes of inputs the names of a model."""
    axes = dict(request.axes)
    for name, value in zip(request.interface.input_tensors, model.graph.inputs, strict=True):
        axes[name] = {i: d for i, d in enumerate(dims_of(value) or ()) if isinstance(d, str)}
    return replace(request, axes=axes)


type Places = dict[Dim, tuple[ir.Value, int]]


def read_sizes_of(graph: ir.Graph, kept: Sequence[bool]) -> bool:
    """Read the sizes of what depends on other inputs from the kept ones, by the names of axes.

    Parameters
    ----------
    graph
        The graph, in which axes of equal names have equal sizes.
    kept
        For each input, whether the graph keeps it.

    Returns
    -------
    bool
        Whether any node changed.
    """
    named: Places = {
        dim: (value, axis)
        for value, is_kept in zip(graph.inputs, kept, strict=True)
        for axis, dim in enumerate((dims_of(value) or ()) if is_kept else ())
        if isinstance(dim, str)
    }
    dropped = {v for v, is_kept in zip(graph.inputs, kept, strict=True) if not is_kept}
    nodes = []
    for node in ir.traversal.RecursiveGraphIterator(graph):
        if not dropped.isdisjoint(node.inputs):
            if node.op_type == "Shape" and not node.outputs[0].is_graph_output():
                nodes.append(node)
            else:
                dropped.update(node.outputs)
    n_changed = sum(_read_again(node, named) for node in nodes)
    return n_changed > 0


def _read_again(node: ir.Node, named: Places) -> bool:
    """Replace the shape of an input by sizes of others, if these have all of them."""
    (shape,) = node.outputs
    start, end = (node.attributes.get_int(name, None) for name in ("start", "end"))
    dims = (dims_of(node.inputs[0]) or ())[start:end]
    if node.graph is None or not dims or any(isinstance(d, str) and d not in named for d in dims):
        return False
    parts = [_size(dim, named) for dim in dims]
    nodes = parts if len(parts) == 1 else [*parts, _concatenation(parts)]
    for i, new in enumerate(nodes):
        new.outputs[0].name = f"{shape.name}_of_kept_{i}"
    node.graph.insert_before(node, nodes)
    ir.convenience.replace_all_uses_with(shape, nodes[-1].outputs[0])
    node.graph.remove(node, safe=True)
    return True


def _size(dim: Dim, named: Places) -> ir.Node:
    """Return a node for a size, as a vector of one."""
    if isinstance(dim, int):
        return _of_one(ir.node("Constant", [], {"value": ir.tensor(np.array([dim]))}))
    value, axis = named[dim]
    return _of_one(ir.node("Shape", [value], {"start": axis, "end": axis + 1}))


def _concatenation(parts: Sequence[ir.Node]) -> ir.Node:
    node = ir.node("Concat", [part.outputs[0] for part in parts], {"axis": 0})
    return _of_one(node, len(parts))


def _of_one(node: ir.Node, length: int = 1) -> ir.Node:
    node.outputs[0].dtype = ir.DataType.INT64
    node.outputs[0].shape = ir.Shape([length])
    return node
