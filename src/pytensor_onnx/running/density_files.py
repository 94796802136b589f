"""Files of log-densities, which the native library opens without Python (``density.h``)."""

from __future__ import annotations

import shutil
import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx

from pytensor_onnx import native
from pytensor_onnx.kernels.graph_scope import constants_of, operator_numbers
from pytensor_onnx.kernels.regions import region_of_all

MARK = b"PTDENS\0\1"
_UNIT = 8
_ENDINGS = {"win32": ".dll", "darwin": ".dylib"}


def write_density(
    folder: Path,
    density: onnx.ModelProto,
    variables: onnx.ModelProto,
    start: np.ndarray,
    names: Sequence[Sequence[str]],
) -> Path:
    """Write a log-density with the library that runs it and its header; return its file.

    Parameters
    ----------
    folder
        Folder to write into; it is made if it is missing.
    density, variables
        Models of a vector, the only input: of the log-density and its gradient, and of all
        variables.
    start
        A vector to begin with.
    names
        Names of the elements of the vector, and of those of the variables.

    Raises
    ------
    UncoveredError
        If the kernels do not cover a whole model.
    MissingEngineError
        If this installation has no native library.
    """
    sections = [
        *map(_texts, (operator_numbers(), *names)),
        start.astype("<f8").tobytes(),
        *_sections_of(density),
        *_sections_of(variables),
    ]
    content = b"".join(map(_padded, sections))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.density"
    path.write_bytes(MARK + struct.pack("<Q", zlib.crc32(content)) + content)
    (folder / "density.h").write_bytes((files(__package__) / "density.h").read_bytes())
    ending = _ENDINGS.get(sys.platform, ".so")
    shutil.copyfile(str(native.library()), folder / f"libpytensor_onnx{ending}")
    return path


def _texts(texts: Iterable[str]) -> bytes:
    return b"".join(text.encode() + b"\0" for text in texts)


def _padded(content: bytes) -> bytes:
    """Return a section: its size, its content, and zeros up to whole units."""
    return struct.pack("<Q", len(content)) + content + bytes(-len(content) % _UNIT)


def _sections_of(model: onnx.ModelProto) -> list[bytes]:
    """Return the sections of a model: its tape, the places of its outputs, and its operands."""
    graph, region = region_of_all(model)
    outputs = [x.name for x in model.graph.output]
    [point] = model.graph.input
    dtype = point.type.tensor_type.elem_type
    shape = [d.dim_value for d in point.type.tensor_type.shape.dim]
    constants = constants_of(graph)
    sections = [region.attribute[0].s, _integers(map(outputs.index, region.output))]
    sections.append(_integers([len(region.input)]))
    for name in region.input:
        if name == point.name:
            sections += [_integers([1, dtype, *shape]), b""]
        else:
            array = np.asarray(constants[name])
            number = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            sections += [_integers([0, number, *array.shape]), little.tobytes()]
    return sections


def _integers(numbers: Iterable[int] | Sequence[int]) -> bytes:
    return np.fromiter(numbers, "<i8").tobytes()
