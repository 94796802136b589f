"""Descriptions of pages that nobody described, of networks and of their training steps."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import onnx_ir as ir

from pytensor_onnx.graph.model_reading import EXAMPLES, state_pairs, stored_mapping
from pytensor_onnx.web.controls import is_probability, sizes_of

_SOUND = re.compile(r"sound|audio|wave|speech|pcm\b", re.IGNORECASE)
_PIXELS = re.compile(r"pixel|image|img|digit", re.IGNORECASE)
_RATE = re.compile(r"learning_rate|^lr$|^rate$")
_SHORTEST_SOUND, _LEAST_SIDE = 128, 6
_USUAL_RATE, _USUAL_LEARNING = 16_000, 0.005
_OF_BOXES = 6
_REPEAT = 10


def words(name: str) -> str:
    """Return a name as words.

    Examples
    --------
    >>> words("log_radon")
    'log radon'
    """
    return " ".join(name.replace("_", " ").split()) or name


def capital(text: str) -> str:
    """Return a text with a capital first."""
    return text[:1].upper() + text[1:]


def network_page(model: ir.Model) -> dict[str, Any]:
    """Return the options of inputs and outputs that the sizes do not tell.

    Windows of sound and images in a row of pixels are known by their names, boxes by their sizes
    beside an image, and classes by the metadata ``names``, ``classes`` or ``labels``, as exporters
    write them. The metadata ``sample_rate`` is the number of samples in a second.
    """
    graph, pairs = model.graph, state_pairs(model)
    examples = stored_mapping(model.metadata_props, EXAMPLES)
    given = [v for v in graph.inputs if v.name not in graph.initializers and v.name not in pairs]
    inputs = {str(v.name): _input(v, model.metadata_props, examples) for v in given}
    labels = class_names(model.metadata_props)
    image = next((str(v.name) for v in given if _is_image(v)), None)
    computed = [v for v in graph.outputs if v.name not in pairs.values()]
    outputs = {str(v.name): _output(v, labels, image) for v in computed}
    text = "The model runs here in the page: nothing that you give it is sent anywhere."
    return {"text": text, "inputs": inputs, "outputs": outputs}


def _is_image(value: ir.Value) -> bool:
    sizes = sizes_of(value)
    return len(sizes) == 4 and sizes[1] == 3 and min(n or 0 for n in sizes[2:]) >= _LEAST_SIDE


def _input(
    value: ir.Value, metadata: Mapping[str, str], examples: Mapping[str, Any]
) -> dict[str, Any]:
    """Return options of an input."""
    name, sizes = str(value.name), sizes_of(value)
    options: dict[str, Any] = {"label": capital(words(name))}
    is_float = value.dtype is not None and value.dtype.is_floating_point()
    last = sizes[-1] if sizes else 0
    is_row = bool(sizes) and all(n in {1, None} for n in sizes[:-1])
    if is_float and is_row and _SOUND.search(name) and (last or _SHORTEST_SOUND) >= _SHORTEST_SOUND:
        rate = metadata.get("sample_rate") or metadata.get("sampling_rate") or ""
        return options | {"kind": "sound", "rate": int(rate) if rate.isdigit() else _USUAL_RATE}
    side = isqrt(last or 0)
    if is_float and is_row and _PIXELS.search(name) and side**2 == last and side >= _LEAST_SIDE:
        return options | {"kind": "drawing"}
    if name in examples and _is_image(value):
        options |= {"example": examples[name]}
    elif name in examples and sizes:
        options |= {"kind": "table", "example": {**examples[name], "is_given": True}}
    return options


def _output(value: ir.Value, labels: Sequence[str], image: str | None) -> dict[str, Any]:
    """Return options of an output."""
    sizes = sizes_of(value)
    options: dict[str, Any] = {"label": capital(words(str(value.name)))}
    last = sizes[-1] if sizes else None
    if image and len(sizes) in {2, 3} and all(n == 1 for n in sizes[:-2]):
        options |= {"labels": labels} if labels else {}
        if last == _OF_BOXES:
            return options | {"kind": "boxes", "image": image}
        if labels and len(sizes) == 3 and sizes[1] == 4 + len(labels):
            return options | {"kind": "boxes", "image": image, "format": "columns"}
        options.pop("labels", None)
    if labels and last == len(labels) and (is_probability(value) or len(sizes) <= 2):
        options |= {"kind": "bars", "labels": labels}
    return options


def class_names(metadata: Mapping[str, str]) -> list[str]:
    """Return the names of classes in the metadata of a file, none where it has none.

    Examples
    --------
    >>> class_names({"names": "{0: 'person', 1: 'bicycle'}"}), class_names({"classes": '["a"]'})
    (['person', 'bicycle'], ['a'])
    """
    for key in ("names", "classes", "labels"):
        text = metadata.get(key, "")
        for read in (json.loads, ast.literal_eval):
            try:
                found = read(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            values = list(found.values()) if isinstance(found, dict) else found
            if isinstance(values, list) and values and all(isinstance(x, str) for x in values):
                return values
    return []


def training_page(model: ir.Model) -> dict[str, Any] | None:
    """Return the description of the page of a training step, None of another model."""
    graph, pairs = model.graph, state_pairs(model)
    given = [v for v in graph.inputs if v.name not in graph.initializers and v.name not in pairs]
    rates = [str(v.name) for v in given if not sizes_of(v) and _RATE.search(str(v.name))]
    losses = [str(v.name) for v in graph.outputs if v.name == "loss" and not sizes_of(v)]
    if not pairs or not losses:
        return None
    examples = stored_mapping(model.metadata_props, EXAMPLES)
    data = [v for v in given if str(v.name) not in rates]
    inputs: dict[str, dict[str, Any]] = {}
    for name in rates:
        rate = examples.get(name, {"numbers": [_USUAL_LEARNING]})["numbers"][0]
        largest = 10 * rate or _USUAL_LEARNING
        inputs[name] = {"label": "Learning rate", "value": rate, "min": 0, "max": largest}
        inputs[name]["step"] = largest / 100
    columns = [v for v in data if str(v.name) in examples and len(sizes_of(v)) == 1]
    for value in data:
        name = str(value.name)
        inputs[name] = _input(value, model.metadata_props, examples)
        if value in columns:
            numbers = examples[name]["numbers"]
            group = f"{len(numbers)} rows"
            inputs[name] = {"kind": "columns", "label": name, "value": numbers, "group": group}
    outputs: dict[str, dict[str, Any]] = {losses[0]: {"kind": "trace", "label": "Loss by step"}}
    for value in graph.outputs:
        name, sizes = str(value.name), sizes_of(value)
        if name in outputs or name in pairs.values():
            continue
        outputs[name] = {"label": capital(words(name))}
        if len(columns) == 2 and len(sizes) == 1:
            x, y = (str(v.name) for v in columns)
            outputs[name] |= {"kind": "lines", "x": x, "points": [x, y]}
    parameters = _parameters(model, pairs)
    named = " and ".join(words(str(v.name)) for v in data)
    return {
        "title": f"Training on {named}" if named else "Training",
        "text": "A network learns here in the page: each step moves its "
        f"{parameters}weights a little, so that the loss on the data falls. Run it repeatedly and "
        "watch; change the data or the rate meanwhile. The trained weights can be saved.",
        "inputs": inputs,
        "outputs": outputs,
        "repeat": _REPEAT,
        "starts": True,
        "button": f"Train {_REPEAT} steps",
    }


def _parameters(model: ir.Model, pairs: Mapping[str, str]) -> str:
    """Return the number of trained numbers as text, nothing where it is not known."""
    try:
        names = json.loads(model.metadata_props.get("parameters", "[]"))
    except ValueError:
        names = []
    count = 0
    for value in model.graph.inputs:
        if value.name in pairs and isinstance(names, list) and value.name in names:
            size = 1
            for n in sizes_of(value):
                size *= n or 0
            count += size
    return f"{count:,} " if count else ""
