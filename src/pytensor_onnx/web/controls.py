"""Controls of a page."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.late_names import require
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.operators.entries import entry_of
from pytensor_onnx.operators.facts import FIRST

CONTROLS = {
    "slider": {"min", "max", "step", "value", "least", "more"},
    "sliders": {"min", "max", "step", "value", "labels", "size", "more"},
    "grid": {"min", "max", "size"},
    "checkbox": {"value", "more"},
    "seed": {"value", "size", "advance", "more"},
    "drawing": {"scale"},
    "image": {"scale", "size", "example", "layout", "mean", "std"},
    "sound": {"rate", "hop", "window", "rows"},
    "bytes": {"first", "last", "padding", "value"},
    "table": {"value", "columns", "example", "more"},
    "columns": {"value", "group", "labels", "column", "more"},
    "covariate": set[str](),
}
"""Kinds of controls, and the options of each; every kind has a label."""

VIEWS = {
    "number": {"digits", "percent"},
    "bars": {"labels", "percent", "top"},
    "lines": {"x", "series", "points"},
    "band": {"x", "lower", "upper", "interval", "points"},
    "trace": set[str](),
    "histogram": {"bins", "keep"},
    "table": {"columns"},
    "boxes": {"image", "labels", "threshold", "format"},
    "points": {"image", "labels"},
    "picture": {"scale"},
    "timeline": {"step", "percent", "labels"},
    "posterior": {"labels", "keep", "prior"},
    "summary": {"of", "keep"},
    "pairs": {"of", "keep"},
    "hidden": {"keep"},
}
"""Kinds of views of outputs, and the options of each; every kind has a label."""

DTYPES = frozenset(
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    ]
)
"""Dtypes that the page's scripts know."""

_LARGEST_DRAWING = 64
_LEAST_SIDE = 6
_MOST_SLIDERS = 12
_FEW = 32
_MANY_CLASSES, _TOP = 12, 5
_SMALLEST_PICTURE = 8
_OPEN = 10
"""Size of an open axis of an example."""
_LARGEST_EXAMPLE = 20_000
_MOST_LINES = 8


def describe_input(value: ir.Value, given: Mapping[str, Any], encoding: str | None) -> dict:
    """Return the name, dtype, dimensions and control of an input.

    Parameters
    ----------
    value
        The input.
    given
        Options from the page's description; the kind may be among them.
    encoding
        Name of the encoding that the input belongs to.

    Raises
    ------
    PyTensorONNXError
        If no control can give such a value, or an option is none of the control.
    """
    name, dims = str(value.name), sizes_of(value)
    dtype = _dtype(value)
    if dtype not in DTYPES:
        raise PyTensorONNXError(f"input {name}: no control gives values of type {value.dtype}")
    has_list = isinstance(given.get("value"), list)
    kind = given.get("kind") or _control(name, dtype, dims, encoding, has_list=has_list)
    control = {"kind": kind, "label": name, **_checked(f"input {name}", kind, given, CONTROLS)}
    if kind == "image" and len(dims) == 4 and dims[1] not in {1, 3} and dims[3] == 3:
        control.setdefault("layout", "last")
    if kind == "table" and "value" not in control:
        control.setdefault("example", _example(dtype, dims))
    return {"name": name, "dtype": dtype, "dims": dims, "control": control}


def describe_output(value: ir.Value, given: Mapping[str, Any]) -> dict:
    """Return the name, dtype, dimensions and view of an output."""
    name, dims = str(value.name), sizes_of(value)
    dtype = _dtype(value)
    kind = given.get("kind") or _view(dims, has_shares=is_probability(value))
    view = {"kind": kind, "label": name, **_checked(f"output {name}", kind, given, VIEWS)}
    if "percent" in VIEWS[kind]:
        view.setdefault("percent", is_probability(value))
    if kind == "bars" and view["percent"] and (dims[-1] or 0) > _MANY_CLASSES:
        view.setdefault("top", _TOP)
    return {"name": name, "dtype": dtype, "dims": dims, "view": view}


def names_in(view: Mapping[str, Any]) -> list[str]:
    """Return the inputs and outputs that a view names.

    Examples
    --------
    >>> names_in({"kind": "lines", "x": "age", "points": [[1.0, 2.0]]})
    ['age']
    """
    named = [view.get(key) for key in ("x", "lower", "upper", "interval", "points", "image")]
    points = view.get("points")
    named += points if isinstance(points, list) else []
    return [name for name in named if isinstance(name, str)]


def is_probability(value: ir.Value) -> bool:
    """Return whether a softmax or a sigmoid computes a value, or a mean of such values."""
    node = value.producer()
    if node is None:
        return False
    if node.op_type.split("_")[0] in {"Softmax", "Sigmoid"} or _is_written_softmax(node):
        return True
    if node.op_type == "If":
        bodies = (
            x.as_graph() for x in node.attributes.values() if x.type == ir.AttributeType.GRAPH
        )
        return all(is_probability(body.outputs[value.index() or 0]) for body in bodies)
    source = node.inputs[0] if node.inputs else None
    return source is not None and _keeps_shares(node) and is_probability(source)


def _keeps_shares(node: ir.Node) -> bool:
    return entry_of(node).moves == FIRST or node.op_type in {"Cast", "Identity", "ReduceMean"}


def _is_written_softmax(node: ir.Node) -> bool:
    """Return whether a node divides exponentials by their sum."""
    if node.op_type != "Div" or None in node.inputs:
        return False
    above, below = node.inputs[0], _origin(node.inputs[1])
    exponential = above.producer() if above is not None else None
    if exponential is None or below is None:
        return False
    is_sum = below.op_type == "ReduceSum" and below.inputs[0] is above
    return is_sum and exponential.op_type == "Exp"


def _origin(value: ir.Value | None) -> ir.Node | None:
    """Return the node that computes the elements of a value."""
    node = value.producer() if value is not None else None
    while node is not None and entry_of(node).moves == FIRST:
        moved = node.inputs[0]
        node = moved.producer() if moved is not None else None
    return node


def _dtype(value: ir.Value) -> str:
    return value.dtype.numpy().name if value.dtype else "?"


def sizes_of(value: ir.Value) -> list[int | None]:
    """Return sizes, with None for sizes that are known at a call only."""
    # Some exporters write -1 for an open size.
    return [dim if isinstance(dim, int) and dim >= 0 else None for dim in dims_of(value) or ()]


def _control(
    name: str, dtype: str, dims: list[int | None], encoding: str | None, *, has_list: bool
) -> str:
    is_whole = dtype in {"int64", "int32", "uint32"} and len(dims) <= 1
    if encoding == "generator" or (name == "seed" and is_whole):
        return "seed"
    sizes = [1 if n is None else n for n in dims]
    count = 1
    for n in sizes:
        count *= n
    if count == 1 and None not in dims[1:] and not has_list:
        return "checkbox" if dtype == "bool" else "slider"
    if len(dims) == 4 and None not in dims[2:]:
        is_small = max(sizes[2:]) <= _LARGEST_DRAWING
        if dims[1] == 3 or (dims[1] == 1 and not is_small):
            return "image"
        if dims[1] == 1:
            return "drawing"
    if len(dims) == 4 and dims[3] == 3 and min(n or 0 for n in dims[1:3]) >= _LEAST_SIDE:
        return "image"
    if (
        None not in dims[-1:]
        and dims.count(None) <= 1
        and count <= _MOST_SLIDERS
        and dtype.startswith("float")
    ):
        return "sliders"
    return "table"


def _view(dims: list[int | None], *, has_shares: bool) -> str:
    sizes = [n for n in dims if n != 1]
    if len(dims) == 4 and dims[1] in {1, 3} and min(n or 0 for n in dims[2:]) >= _SMALLEST_PICTURE:
        return "picture"
    is_row = len(dims) <= 2 or dims[:-1].count(1) >= len(dims) - 2
    if has_shares and is_row and dims[-1] is not None and dims[-1] > 1:
        return "bars"
    if not sizes:
        return "number"
    if len(dims) == len(sizes) == 2 and dims[0] is not None:
        return "lines" if dims[0] > _FEW and (dims[1] or inf) <= _MOST_LINES else "table"
    if len([n for n in dims[1:] if n != 1]) <= 1 and isinstance(sizes[-1], int):
        return "bars" if sizes[-1] <= _FEW and len(sizes) <= 2 else "lines"
    return "lines" if len(sizes) == 1 else "table"


def _example(dtype: str, dims: list[int | None]) -> dict[str, Any] | None:
    """Return numbers to start with: zeros for whole ones, which may be indices, or normal ones."""
    sizes = [_OPEN if n is None else n for n in dims]
    if prod(sizes) > _LARGEST_EXAMPLE:
        return None
    if dtype.startswith("float"):
        numbers = np.random.default_rng(0).normal(size=sizes).round(2)
    else:
        numbers = np.zeros(sizes, int)
    return {"dims": sizes, "numbers": numbers.ravel().tolist()}


def _checked(
    owner: str, kind: str, given: Mapping[str, Any], kinds: Mapping[str, set[str]]
) -> dict[str, Any]:
    if kind not in kinds:
        raise PyTensorONNXError(f"{owner}: kind is one of {', '.join(kinds)}, not {kind!r}")
    known = {"kind", "label"} | kinds[kind]
    unknown = sorted(set(given) - known)
    if unknown:
        raise PyTensorONNXError(
            f"{owner}: {', '.join(map(repr, unknown))} is no option of {kind}, "
            f"which has {', '.join(sorted(known))}"
        )
    _check_numbers(owner, kind, given)
    return dict(given)


def _check_numbers(owner: str, kind: str, given: Mapping[str, Any]) -> None:
    keys = ["min", "max", "step", *(["value"] if kind == "slider" else [])]
    for key in keys:
        x = given.get(key, 0)
        if isinstance(x, bool) or not isinstance(x, int | float):
            raise PyTensorONNXError(f"{owner}: {key} is a number, not {x!r}")
    if kind != "grid" and given.get("min", -inf) >= given.get("max", inf):
        raise PyTensorONNXError(f"{owner}: min is less than max")


def read_description(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, with the paths of images relative to it.

    Raises
    ------
    MissingExtraError
        If PyYAML is missing.
    PyTensorONNXError
        If the file is no mapping in YAML.
    """
    require("web", "the description of a page")
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise PyTensorONNXError(f"{path} is no YAML: {reason}") from None
    if not isinstance(content, dict):
        raise PyTensorONNXError(f"{path} has no keys such as title, text, inputs, outputs")
    for key in ("inputs", "outputs"):
        entries = content.get(key) or {}
        if not isinstance(entries, dict) or not all(
            isinstance(entry, dict) for entry in entries.values()
        ):
            raise PyTensorONNXError(
                f"{path}: {key} is a mapping from names to options, as in "
                f"{key}: {{x: {{label: height}}}}"
            )
    for entry in (content.get("inputs") or {}).values():
        if "example" in entry:
            entry["example"] = str(path.parent / str(entry["example"]))
    if "configuration" in content:
        content["configuration"] = str(path.parent / str(content["configuration"]))
    return content
