"""Configurations that lie beside files of networks: classes, samples in a second, preprocessing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import PyTensorONNXError

_ENTRIES = {
    "names": ("names", "classes", "labels", "id2label", "target_labels_space"),
    "sample_rate": ("sample_rate", "sampling_rate"),
    "window": ("window",),
    "hop": ("hop", "hop_length"),
    "keypoints": ("keypoints",),
    "image_mean": ("image_mean",),
    "image_std": ("image_std",),
    "image_size": ("image_size", "size"),
    "first_bytes": ("first_bytes", "beg_size"),
    "last_bytes": ("last_bytes", "end_size"),
    "padding": ("padding", "padding_token"),
    "title": ("title",),
}
"""Entries of the metadata, and the keys that configurations have for them."""


def read_configuration(path: Path) -> dict[str, str]:
    """Return the facts of a configuration as entries of the metadata of a file.

    Parameters
    ----------
    path
        A file in JSON, such as ``config.json`` or ``preprocessor_config.json`` of transformers, or
        a text with the name of a class in each line.

    Raises
    ------
    PyTensorONNXError
        If the file tells nothing that a page uses.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PyTensorONNXError(
            f"{path} is neither JSON nor a text with names of classes"
        ) from None
    if path.suffix != ".json":
        content: Any = [line.strip() for line in text.splitlines() if line.strip()]
    else:
        try:
            content = json.loads(text)
        except ValueError as error:
            raise PyTensorONNXError(f"{path} is no JSON: {error}") from None
    found = facts_of(content)
    if not found:
        keys = ", ".join(key for keys in _ENTRIES.values() for key in keys)
        raise PyTensorONNXError(f"{path} has nothing that a page uses, which is one of {keys}")
    return found


def facts_of(content: Any) -> dict[str, str]:
    """Return the entries of the metadata that the content of a configuration gives.

    Examples
    --------
    >>> facts_of({"id2label": {"1": "dog", "0": "cat"}, "sampling_rate": 8000, "layers": 3})
    {'names': '["cat", "dog"]', 'sample_rate': '8000'}
    >>> facts_of(["cat", "dog"])
    {'names': '["cat", "dog"]'}
    """
    if isinstance(content, list):
        content = {"names": content}
    if not isinstance(content, Mapping):
        return {}
    found = {}
    for entry, keys in _ENTRIES.items():
        value = next((content[key] for key in keys if content.get(key) is not None), None)
        if entry in {"names", "keypoints"}:
            value = _names(value)
        elif entry == "image_size":
            value = _size(value)
        if value is not None:
            found[entry] = value if isinstance(value, str) else json.dumps(value)
    return found


def _names(value: Any) -> list[str] | None:
    """Return the names of a list, or of a mapping from numbers, in the order of these."""
    if isinstance(value, Mapping):
        if not all(str(key).isdigit() for key in value):
            return None
        value = [value[key] for key in sorted(value, key=int)]
    return list(map(str, value)) if isinstance(value, list) and value else None


def _size(value: Any) -> list[int] | None:
    """Return height and width of a size as transformers writes it."""
    if isinstance(value, Mapping):
        side = value.get("shortest_edge")
        value = [value.get("height", side), value.get("width", side)]
    elif isinstance(value, int):
        value = [value, value]
    is_size = isinstance(value, list) and len(value) == 2 and all(isinstance(n, int) for n in value)
    return value if is_size else None
