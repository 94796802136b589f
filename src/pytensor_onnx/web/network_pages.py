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
_BYTES = re.compile(r"bytes|content|text", re.IGNORECASE)
_RATE = re.compile(r"learning_rate|^lr$|^rate$")
_SAMPLE_RATE = re.compile(r"^(sr|(sample|sampling)_?rate)$", re.IGNORECASE)
_INTERNAL = re.compile(
    r"(input|output|x|y|dense|softmax|sigmoid|conv\w*d|fetch_name|save_infer_model.*|"
    r"(serving_default|StatefulPartitionedCall).*|)[\W_\d]*"
)
"""Names that exporters make."""
_NEXT = ("{}n", "{}N", "{}_n", "{}_next", "next_{}", "{}_out", "{}_new", "new_{}", "out_{}")
"""Names of the next value of a state."""
_SHORTEST_SOUND, _LEAST_SIDE, _FEWEST_BYTES = 128, 6, 16
_RATES = ("sample_rate", "sampling_rate")
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
    beside an image, and the rest by the metadata, as exporters or `read_configuration` write them:
    names of classes and of key points, samples in a second, samples between two windows, means and
    deviations of colours, and bytes of the beginning and the end of a file.
    """
    graph, facts, pairs = model.graph, model.metadata_props, state_pairs(model)
    examples = stored_mapping(facts, EXAMPLES)
    carried = carried_states(model)
    free = [v for v in graph.inputs if v.name not in graph.initializers and v.name not in pairs]
    rate = rate_of(facts)
    fixed = {
        str(v.name): rate
        for v in free
        if _SAMPLE_RATE.search(str(v.name)) and not sizes_of(v) and _is_whole(v)
    }
    given = [v for v in free if v.name not in {*carried, *fixed}]
    inputs = {str(v.name): _input(v, facts, examples, given) for v in given}
    labels = class_names(facts)
    image = next((str(v.name) for v in given if image_layout(v)), None)
    sound = next((x for x in inputs.values() if x.get("kind") == "sound"), {})
    states = [sizes_of(v) for v in free if v.name in carried]
    if "hop" in sound and states and not any(None in sizes for sizes in states):
        # States of one sequence, whose windows are the rows.
        sound["rows"] = any(None in sizes_of(v)[:1] for v in given)
    computed = [v for v in graph.outputs if v.name not in {*pairs.values(), *carried.values()}]
    outputs = {str(v.name): _output(v, facts, labels, image) for v in computed}
    if "hop" in sound:
        outputs = {
            name: {"kind": "timeline", "label": labels[0] if len(labels) == 1 else view["label"]}
            | {"step": sound["hop"] / sound["rate"], "percent": is_probability(value)}
            | ({"labels": labels} if len(labels) > 1 else {})
            for (name, view), value in zip(outputs.items(), computed, strict=True)
        }
    text = "The model runs here in the page: nothing that you give it is sent anywhere."
    title = {"title": facts["title"]} if facts.get("title") else {}
    page = {"text": text, "inputs": inputs, "outputs": outputs}
    return {**title, **page, "carried": carried, "fixed": fixed if sound else {}}


def carried_states(model: ir.Model) -> dict[str, str]:
    """Return the outputs with the next values of inputs that are states, by their names and sizes.

    Only windows of sound that follow each other have one: their metadata have ``hop``.

    Examples
    --------
    >>> h, n = (ir.val(x, dtype=ir.DataType.FLOAT, shape=(2, 1, 8)) for x in ("state", "stateN"))
    >>> graph = ir.Graph([ir.val("x"), h], [ir.val("y"), n], nodes=[])
    >>> model = ir.Model(graph, ir_version=10)
    >>> model.metadata_props["hop"] = "512"
    >>> carried_states(model)
    {'state': 'stateN'}
    """
    if not model.metadata_props.get("hop", "").isdigit():
        return {}
    outputs = {str(v.name): v for v in model.graph.outputs}
    found = {}
    for value in model.graph.inputs:
        names = [form.format(value.name) for form in _NEXT]
        after = next((outputs[name] for name in names if name in outputs), None)
        if after is not None and after.dtype == value.dtype and None not in sizes_of(value)[:1]:
            found[str(value.name)] = str(after.name)
    return found


def image_layout(value: ir.Value) -> str | None:
    """Return where the three colours of an image are: "first" or "last"; None of another array."""
    sizes = sizes_of(value)
    if len(sizes) != 4 or value.dtype is None or not value.dtype.is_floating_point():
        return None
    for layout, axis in (("first", 1), ("last", 3)):
        others = [n for i, n in enumerate(sizes) if i not in {0, axis}]
        if sizes[axis] == 3 and min(n or _LEAST_SIDE for n in others) >= _LEAST_SIDE:
            return layout
    return None


def rate_of(facts: Mapping[str, str]) -> int:
    """Return the samples of sound in a second."""
    return next((n for key in _RATES if (n := _number_of(facts, key))), _USUAL_RATE)


def _is_whole(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_integer()


def _label(value: ir.Value, noun: str) -> str:
    """Return the name of a value as words, or a noun where an exporter made the name."""
    name = str(value.name)
    return noun if _INTERNAL.fullmatch(name) else capital(words(name))


def _number_of(facts: Mapping[str, str], name: str) -> int | None:
    text = facts.get(name) or ""
    return int(text) if text.isdigit() else None


def _numbers_of(facts: Mapping[str, str], name: str) -> list[float] | None:
    """Return the numbers of an entry of the metadata, None where it has none."""
    try:
        found = json.loads(facts.get(name) or "null")
    except ValueError:
        return None
    is_list = isinstance(found, list) and all(isinstance(x, int | float) for x in found)
    return found if is_list and found else None


def _input(
    value: ir.Value,
    facts: Mapping[str, str],
    examples: Mapping[str, Any],
    given: Sequence[ir.Value],
) -> dict[str, Any]:
    """Return options of an input."""
    name, sizes = str(value.name), sizes_of(value)
    is_float = value.dtype is not None and value.dtype.is_floating_point()
    is_told = any(facts.get(key) for key in _RATES)
    # A last axis of one is that of channels.
    row = sizes[:-1] if len(sizes) > 2 and sizes[-1] == 1 else sizes
    last = row[-1] if row else 0
    is_row = bool(row) and all(n in {1, None} for n in row[:-1])
    is_sound = _SOUND.search(name) or (is_told and value is given[0])
    if is_float and is_row and is_sound and (last or _SHORTEST_SOUND) >= _SHORTEST_SOUND:
        options = {"label": _label(value, "Sound"), "kind": "sound", "rate": rate_of(facts)}
        size, hop = last or _number_of(facts, "window"), _number_of(facts, "hop")
        return options | ({"hop": hop, "window": size} if hop and size and hop <= size else {})
    if not is_float and is_row and (last or 0) >= _FEWEST_BYTES and _BYTES.search(name):
        keys = {"first": "first_bytes", "last": "last_bytes", "padding": "padding"}
        found = {key: _number_of(facts, entry) for key, entry in keys.items()}
        options = {key: n for key, n in found.items() if n is not None}
        return {"kind": "bytes", "label": "Text or file", **options}
    side = isqrt(last or 0)
    if is_float and is_row and _PIXELS.search(name) and side**2 == last and side >= _LEAST_SIDE:
        return {"label": capital(words(name)), "kind": "drawing"}
    if layout := image_layout(value):
        return {"label": _label(value, "Image"), **_image(value, layout, facts, examples)}
    options = {"label": capital(words(name))}
    numbers = examples[name]["numbers"] if name in examples else []
    if (
        len(numbers) == 1
        and all(n in {1, None} for n in sizes)
        and not isinstance(numbers[0], bool)
    ):
        return options | {"value": numbers[0], **_range_around(numbers[0])}
    if name in examples and sizes:
        options |= {"kind": "table", "example": {**examples[name], "is_given": True}}
    return options


def _range_around(number: float) -> dict[str, float]:
    """Return the range of a slider from zero to twice a number, rounded to one digit.

    Examples
    --------
    >>> _range_around(260), _range_around(-0.04)
    ({'min': 0, 'max': 500}, {'min': -0.08, 'max': 0})
    """
    end = float(f"{2 * number:.0e}")
    end = int(end) if end.is_integer() else end
    if not end:
        return {}
    return {"min": 0, "max": end} if end > 0 else {"min": end, "max": 0}


def _image(
    value: ir.Value, layout: str, facts: Mapping[str, str], examples: Mapping[str, Any]
) -> dict[str, Any]:
    """Return options of an image."""
    sizes = sizes_of(value)[2:] if layout == "first" else sizes_of(value)[1:3]
    options: dict[str, Any] = (
        {"example": examples[str(value.name)]} if value.name in examples else {}
    )
    if None in sizes:
        size = _numbers_of(facts, "image_size")
        if size is None:
            return options
        options["size"] = size
    options |= {"kind": "image"} | ({"layout": layout} if layout == "last" else {})
    for key, entry in (("mean", "image_mean"), ("std", "image_std")):
        numbers = _numbers_of(facts, entry)
        options |= {key: numbers} if numbers and len(numbers) == 3 else {}
    return options


def _output(
    value: ir.Value, facts: Mapping[str, str], labels: Sequence[str], image: str | None
) -> dict[str, Any]:
    """Return options of an output."""
    sizes = sizes_of(value)
    noun = "Probability" if is_probability(value) else "Result"
    options: dict[str, Any] = {"label": _label(value, noun)}
    last = sizes[-1] if sizes else None
    points = class_names({"names": facts.get("keypoints", "")})
    if image and points and len(sizes) <= 2 and last == 2 * len(points):
        label = _label(value, "Key points")
        return {"kind": "points", "label": label, "image": image, "labels": points}
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
        inputs[name] = _input(value, model.metadata_props, examples, data)
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
