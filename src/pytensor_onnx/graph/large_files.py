"""Read a file whose large weights never are in memory twice.

A parser of messages holds the bytes of a file and the weights that it copies from them. Here the
message without the large weights is parsed, and each of these is read from its place in the file.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnx_ir as ir

LARGE = 2**20
"""Bytes of a weight that is read from its place."""

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
"""Numbers of the fields of a model, of a graph and of a tensor."""
_LENGTH, _FIXED = 2, {1: 8, 5: 4}
"""Kinds of fields: those with a length, and those of a fixed number of bytes."""


class _Field(NamedTuple):
    number: int
    first: int
    start: int
    end: int


def read_apart(file: Path) -> ir.Model | None:
    """Return the model of a file, None if it has no large weights or is none.

    Parameters
    ----------
    file
        The file. Its weights in other files stay there.
    """
    if file.stat().st_size < LARGE:
        return None
    try:
        with (
            file.open("rb") as handle,
            mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            small, places = _without_large(data)
    except (IndexError, ValueError):
        return None  # it is no message, which the parser will say
    if not places:
        return None
    proto = onnx.ModelProto()
    proto.ParseFromString(small)
    model = ir.serde.deserialize_model(proto)
    for name, (start, end) in places.items():
        value = model.graph.initializers.get(name)
        tensor = None if value is None else value.const_value
        if tensor is None or value is None or tensor.dtype.itemsize < 1:
            return None
        count = int(np.prod(tensor.shape.numpy()))
        dtype = tensor.dtype.numpy()
        if dtype.itemsize * count != end - start:
            return None
        array = np.fromfile(file, dtype, count, offset=start).reshape(tensor.shape.numpy())
        value.const_value = ir.Tensor(array, dtype=tensor.dtype, name=name)
    return model


def _without_large(data: mmap.mmap) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Return a model without the bytes of its large weights, and their places by name."""
    places: dict[str, tuple[int, int]] = {}
    model = bytearray()
    for field in _fields(data, 0, len(data)):
        if field.number != _GRAPH:
            model += data[field.first : field.end]
            continue
        graph = bytearray()
        for inner in _fields(data, field.start, field.end):
            if inner.number == _INITIALIZER and inner.end - inner.start >= LARGE:
                graph += _message(_INITIALIZER, _weight(data, inner, places))
            else:
                graph += data[inner.first : inner.end]
        model += _message(_GRAPH, graph)
    return bytes(model), places


def _weight(data: mmap.mmap, weight: _Field, places: dict[str, tuple[int, int]]) -> bytes:
    """Return a weight without its bytes, and note their place."""
    kept = bytearray()
    place = None
    for field in _fields(data, weight.start, weight.end):
        if field.number == _RAW_DATA and field.end - field.start >= LARGE:
            place = (field.start, field.end)
        else:
            kept += data[field.first : field.end]
    if place is not None:
        places[onnx.TensorProto.FromString(bytes(kept)).name] = place
    return bytes(kept)


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[_Field]:
    """Yield the fields of a message: number, first byte, and where its value starts and ends."""
    place = start
    while place < end:
        first = place
        tag, place = _number(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            _, after = _number(data, place)
        elif kind == _LENGTH:
            length, place = _number(data, place)
            after = place + length
        elif kind in _FIXED:
            after = place + _FIXED[kind]
        else:
            raise ValueError("no field of a message")
        if after > end:
            raise ValueError("the message ends within a field")
        yield _Field(number, first, place, after)
        place = after


def _number(data: mmap.mmap, place: int) -> tuple[int, int]:
    """Return a number, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7


def _message(number: int, content: bytes | bytearray) -> bytes:
    """Return a field that holds a message."""
    return _encoded(number << 3 | _LENGTH) + _encoded(len(content)) + bytes(content)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
