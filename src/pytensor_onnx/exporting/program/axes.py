"""Rename the axes of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError, choose_of
from pytensor_onnx.exporting.requests.output_names import is_name
from pytensor_onnx.exporting.requests.request import Request
from pytensor_onnx.exporting.verification.converted_graph import Conversion
from pytensor_onnx.exporting.verification.pickling import values_by_name
from pytensor_onnx.graph.computed_sizes import ComputedSize
from pytensor_onnx.graph.dims import Dim, dims_of, replace_parts
from pytensor_onnx.graph.traversal import all_nodes, bodies_of
from pytensor_onnx.passes.spell_sizes import computed_sizes_of, keep_computed_sizes


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
