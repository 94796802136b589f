"""Problems of an import as advice: unknown operators, and values and sizes that help."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import Problem, did_you_mean
from pytensor_onnx.importing.registry.operator_imports import import_of, imported_operators
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.operators.entries import MOVING
from pytensor_onnx.operators.inference import schema_of
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT

type Arguments = tuple[dict[str, Any], dict[str, Any]]
"""Values of inputs and sizes, by name of the input."""

_OF_STRINGS = MOVING | {
    "ArrayFeatureExtractor",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "Tokenizer",
}
"""Operators whose results are strings if their first operand is one."""
_SIZES = (1, 2, 16, 512, 64, 224, 256, 1024, 4096)
_SECONDS = 5.0
"""Time for the search of sizes that help."""

_STATIC = (
    "onnxruntime's quantize_static(quant_format=QuantFormat.QDQ) writes QuantizeLinear and "
    "DequantizeLinear in its place"
)
_SAVED = (
    "ONNX Runtime's optimizer wrote it: the file before, or one saved with "
    "graph_optimization_level=ORT_ENABLE_BASIC, has operators of the standard"
)
_HINTS = {
    "QEmbedLayerNormalization": _STATIC,
    **dict.fromkeys(("FusedActivation", "NhwcFusedConv"), _SAVED),
}


def unknown_operators(model: ir.Model, met: Iterable[ir.Node] = ()) -> list[Problem]:
    """Return the operators of a model, and of its functions, that have no import, each kind once.

    Parameters
    ----------
    model
        The model.
    met
        Such nodes that the import met, which may be of functions of the standard.

    Examples
    --------
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=(2,))
    >>> nodes = [ir.node("QLinearReduceMean", [x], domain="com.microsoft") for _ in range(7)]
    >>> graph = ir.Graph([x], [], nodes=nodes, opset_imports={"": 21, "com.microsoft": 1})
    >>> unknown_operators(ir.Model(graph, ir_version=10))[0].subject
    'com.microsoft.QLinearReduceMean, 7 nodes'
    """
    graphs = [(model.graph.all_nodes(), model.opset_imports)]
    graphs += [(f.all_nodes(), f.opset_imports) for f in model.functions.values()]
    kinds: dict[tuple[str, str], list[ir.Node]] = {}
    for nodes, opsets in graphs:
        for node in nodes:
            opset = node.version or opsets.get(_domain(node), 1)
            if node.op_identifier() not in model.functions and _is_unknown(node, opset):
                kinds.setdefault((_domain(node), node.op_type), []).append(node)
    for node in met:
        kinds.setdefault((_domain(node), node.op_type), [node])
    found = []
    for (domain, operator), alike in kinds.items():
        kind = f"{domain}.{operator}" if domain else operator
        node = alike[0]
        results = ", ".join(str(v.name) for v in node.outputs if v.name)
        if len(alike) > 1:
            subject, results = f"{kind}, {len(alike)} nodes", ""
        else:
            subject = f"{kind} {node.name}" if node.name else kind
        found.append(Problem(subject, results, "", *_advice(domain, operator)))
    return found


def numbers_of_strings(graph: ir.Graph) -> list[str]:
    """Return the names of the values that are computed of strings, and are no strings themselves.

    Encoders of categories make such values; the graph after them has numbers alone.

    Examples
    --------
    >>> city = ir.val("city", dtype=ir.DataType.STRING, shape=("n", 1))
    >>> flat = ir.node("Flatten", [city])
    >>> code = ir.node("OneHotEncoder", flat.outputs, domain="ai.onnx.ml")
    >>> flat.outputs[0].name, code.outputs[0].name = "column", "city_is"
    >>> numbers_of_strings(ir.Graph([city], code.outputs, nodes=[flat, code]))
    ['city_is']
    """
    strings = {value for value in graph.inputs if value.dtype == ir.DataType.STRING}
    found: dict[str, None] = {}
    for node in graph:
        if strings.isdisjoint(node.inputs):
            continue
        is_string = node.op_type in _OF_STRINGS or "values_strings" in node.attributes
        if is_string:
            strings.update(node.outputs)
        else:
            found |= dict.fromkeys(str(value.name) for value in node.outputs if value.name)
    return list(found)


def _domain(node: ir.Node) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _is_unknown(node: ir.Node, opset: int) -> bool:
    """Return whether an operator has neither an import nor a function in the standard."""
    if import_of(_domain(node), node.op_type, opset) is not None:
        return False
    schema = schema_of(node.op_type, opset, _domain(node))
    return schema is None or not (schema.has_function or schema.has_context_dependent_function)


def _advice(domain: str, operator: str) -> tuple[str, str]:
    """Return why an operator is not imported, and a way out."""
    if domain == MICROSOFT:
        known = _HINTS.get(operator) or (_STATIC if operator.startswith("QLinear") else "")
        other = "ONNX Runtime's tools wrote it: their input has operators of the standard"
        return "ONNX Runtime's own operator has no import", known or other
    if domain:
        return (
            f"operators of the domain {domain} have no definition in the file",
            "write it as a model-local function, or in operators of the standard",
        )
    return "no import is known", did_you_mean(operator, imported_operators(), "", similarity=0.8)


def helpful_arguments(
    model: ir.Model,
    given: Mapping[str, Any],
    shapes: Mapping[str, Any],
    is_imported: Callable[[dict[str, Any], dict[str, Any]], bool],
    *,
    with_sizes: bool = True,
) -> str:
    """Return a call with values and sizes with which a model is imported, empty if none is found.

    Parameters
    ----------
    model, given, shapes
        The model and the arguments of `from_onnx` with which it is not imported.
    is_imported
        Function that tells whether it is with others.
    with_sizes
        Whether to try sizes of open axes, too.
    """
    end = time.monotonic() + _SECONDS
    for inputs, sizes in _candidates(model, given, shapes):
        if time.monotonic() > end or (sizes and not with_sizes):
            return ""
        if is_imported({**given, **inputs}, {**shapes, **sizes}):
            needed = _smallest(inputs, sizes, given, shapes, is_imported)
            merged = [{**old, **new} for old, new in zip((given, shapes), needed, strict=True)]
            keywords = zip(("inputs", "shapes"), merged, strict=True)
            listing = ", ".join(f"{keyword}={_text(v)}" for keyword, v in keywords if v)
            return f"from_onnx(model, {listing})"
    return ""


def _candidates(
    model: ir.Model, given: Mapping[str, Any], shapes: Mapping[str, Any]
) -> Iterator[Arguments]:
    """Yield values that the model compares inputs with, and sizes of one input, then of all."""
    free = [v for v in model.graph.inputs if v.name not in given and not v.is_initializer()]
    values = _compared(model, free)
    if values:
        yield values, {}
    opened = [v for v in free if None in _known_sizes(v, shapes)]
    for chosen in (*([v] for v in opened), *([opened] if len(opened) > 1 else [])):
        for size in _SIZES:
            yield values, {str(v.name): _sizes_with(v, shapes, size) for v in chosen}


def _compared(model: ir.Model, free: Iterable[ir.Value]) -> dict[str, Any]:
    """Return the first number that each input of one integer is compared with."""
    names = {v.name for v in free if v.dtype in (ir.DataType.INT64, ir.DataType.INT32)}
    found: dict[str, Any] = {}
    for node in model.graph.all_nodes():
        if node.op_type == "Equal" and not node.domain:
            for a, b in (tuple(node.inputs), tuple(reversed(node.inputs))):
                number = ir.convenience.get_const_tensor(b) if b is not None else None
                if a is not None and a.name in names and number is not None and number.size == 1:
                    found.setdefault(str(a.name), int(np.ravel(number.numpy())[0]))
    return found


def _known_sizes(value: ir.Value, shapes: Mapping[str, Any]) -> list[int | None]:
    dims = dims_of(value) or ()
    given = shapes.get(str(value.name)) or [None] * len(dims)
    own = [d if isinstance(d, int) else shapes.get(d) if d else None for d in dims]
    return [d if n is None else n for n, d in zip(given, own, strict=True)]


def _sizes_with(value: ir.Value, shapes: Mapping[str, Any], size: int) -> tuple[int, ...]:
    """Return sizes of an input: 1 for an open first axis, another for further ones."""
    known = _known_sizes(value, shapes)
    is_row = len(known) > 1
    return tuple(
        n if n is not None else 1 if axis == 0 and is_row else size for axis, n in enumerate(known)
    )


def _smallest(
    inputs: dict[str, Any],
    sizes: dict[str, Any],
    given: Mapping[str, Any],
    shapes: Mapping[str, Any],
    is_imported: Callable[[dict[str, Any], dict[str, Any]], bool],
) -> Arguments:
    """Return the needed arguments."""
    for arguments, name in [*product([inputs], [*inputs]), *product([sizes], [*sizes])]:
        value = arguments.pop(name)
        if not is_imported({**given, **inputs}, {**shapes, **sizes}):
            arguments[name] = value
    return inputs, sizes


def _text(arguments: Mapping[str, Any]) -> str:
    texts = (
        f"{name!r}: {value if isinstance(value, int | tuple | list) else '...'}"
        for name, value in arguments.items()
    )
    return f"{{{', '.join(texts)}}}"
