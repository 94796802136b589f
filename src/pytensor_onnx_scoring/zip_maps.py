"""Probabilities of classifiers as scikit-learn's converters write them: a map for each row.

The session does not tell the classes, so they are read from the bytes of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_ZIP_MAP = b"ZipMap"
_IDENTITY = b"Identity"

# Fields of ONNX's messages.
_GRAPH = 7
_NODE = 1
_INPUT, _OUTPUT, _OP_TYPE, _ATTRIBUTE = 1, 2, 4, 5
_NAME, _INTS, _STRINGS = 1, 8, 9

_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
"""Kinds of fields in a message of Protocol Buffers."""

Labels = tuple[int | str, ...]


def value_type(text: str) -> str | None:
    """Return the type of the values of an output of maps, None for other types.

    Examples
    --------
    >>> value_type("seq(map(int64,tensor(float)))"), value_type("tensor(float)")
    ('float', None)
    """
    for key in ("int64", "string"):
        start, end = f"seq(map({key},tensor(", ")))"
        if text.startswith(start) and text.endswith(end):
            return text[len(start) : -len(end)]
    return None


def labels_of(model: str | bytes) -> dict[str, Labels]:
    """Return the classes of a file's operators ZipMap, by the names of the outputs.

    Parameters
    ----------
    model
        Path of a file, or its bytes.
    """
    data = memoryview(Path(model).read_bytes() if isinstance(model, str) else model)
    found: dict[str, Labels] = {}
    for field, graph in _fields(data):
        if field == _GRAPH and isinstance(graph, memoryview):
            for node in (part for number, part in _fields(graph) if number == _NODE):
                _add_node(found, node)
    return found


def probabilities(maps: Sequence[Mapping[Any, Any]], labels: Labels, dtype: np.dtype) -> np.ndarray:
    """Return the matrix of maps, with a column for each class.

    Examples
    --------
    >>> probabilities([{"a": 0.25, "b": 0.75}], ("b", "a"), np.dtype("float32"))
    array([[0.75, 0.25]], dtype=float32)
    """
    rows = [[row[label] for label in labels] for row in maps]
    return np.array(rows, dtype).reshape(len(rows), len(labels))


def _add_node(found: dict[str, Labels], node: Any) -> None:
    """Note the classes of a node's output, if it is a ZipMap or the copy of one."""
    parts: dict[int, list[memoryview]] = {}
    for field, value in _fields(node):
        if isinstance(value, memoryview):
            parts.setdefault(field, []).append(value)
    operator = bytes(parts[_OP_TYPE][-1])
    if operator not in (_ZIP_MAP, _IDENTITY):
        return
    given, made = (str(bytes(parts[field][0]), "utf-8") for field in (_INPUT, _OUTPUT))
    if operator == _IDENTITY and given in found:
        found[made] = found[given]
    elif operator == _ZIP_MAP:
        found[made] = tuple(x for part in parts.get(_ATTRIBUTE, ()) for x in _labels(part))


def _labels(attribute: memoryview) -> Iterator[int | str]:
    """Yield the integers or the strings of an attribute."""
    for field, value in _fields(attribute):
        if field == _STRINGS:
            yield str(bytes(value), "utf-8")
        elif field == _INTS and isinstance(value, int):
            yield _signed(value)
        elif field == _INTS:
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                yield _signed(number)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield number and value of the fields of a message of Protocol Buffers."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(kind, 0)
        if kind == _SIZED:
            size, at = _varint(message, at)
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and the place after it."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
