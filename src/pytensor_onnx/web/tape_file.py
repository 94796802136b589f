"""Write a model as a tape, which a page runs by a small module of WebAssembly."""

from __future__ import annotations

import gzip
import hashlib
import json
import runpy
import struct
import subprocess
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from pytensor_onnx import native
from pytensor_onnx.errors import MissingEngineError
from pytensor_onnx.graph.model_reading import state_pairs
from pytensor_onnx.kernels.graph_scope import constants_of, operator_numbers
from pytensor_onnx.kernels.regions import region_of_all

FORMAT = 3
MAGIC = b"PTTAPE\0\0"
MODULE = "tape.wasm"
CORE = "core.wasm"
"""The module without rare kernels, for models that do not need them."""
_ALIGNMENT = 8
_FOLDER = Path(__file__).parents[1] / "kernels"
_BUILD = Path(__file__).parents[3] / "native" / "build.py"


def write_tape(model: Path, folder: Path, *, of_any_size: bool = False) -> None:
    """Write a model as a tape, with the module and the script that run it.

    Parameters
    ----------
    model
        An ONNX file, which remains the source of the tape: the tape has its digest.
    folder
        Folder to write ``model.tape``, ``tape.wasm.gz`` and ``tape.js`` into.
    of_any_size
        Whether the model may have convolutions for which ONNX Runtime is faster.

    Raises
    ------
    UncoveredError
        If the kernels do not cover the whole model; the message has the nodes and the reasons.
    MissingEngineError
        If this installation has no kernels, or no module of WebAssembly.
    """
    content, is_whole = _content_of(model, of_any_size=of_any_size)
    module = wasm_module(MODULE if is_whole else CORE)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.tape").write_bytes(gzip.compress(content, mtime=0))
    (folder / f"{MODULE}.gz").write_bytes(gzip.compress(module.read_bytes(), mtime=0))
    script = files("pytensor_onnx.web") / "static" / "tape.js"
    (folder / "tape.js").write_bytes(script.read_bytes())


def wasm_module(name: str = MODULE) -> Path:
    """Return a module of WebAssembly, which a clone builds by ziglang when it is first needed.

    Parameters
    ----------
    name
        ``tape.wasm``, or ``core.wasm``, which lacks rare kernels.

    Raises
    ------
    MissingEngineError
        If the installation lacks the module, and cannot build it.
    """
    module = _FOLDER / name
    if _BUILD.exists():
        try:
            runpy.run_path(str(_BUILD))["build_wasm"](_FOLDER)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = "ziglang fails" if isinstance(error, subprocess.CalledProcessError) else error
            raise MissingEngineError(f"{name} cannot be compiled: {reason}") from error
    if module.exists():
        return module
    raise MissingEngineError(
        f"this installation has no {name}: run pip install ziglang, and the command once more"
        if _BUILD.exists()
        else f"this installation has no {name}, as it was built without ziglang: build it again "
        "where ziglang can be installed, without PYTENSOR_ONNX_TAPE=0"
    )


def tape_of(path: Path) -> bytes:
    """Return a model as the content of a file ``model.tape``, which is compressed.

    The content has eight bytes of a mark, the size of a header in JSON, the digest of all that
    follows, the header, the tape and the constants.

    Raises
    ------
    UncoveredError
        If the kernels do not cover the whole model.
    """
    return _content_of(path)[0]


def _content_of(path: Path, *, of_any_size: bool = False) -> tuple[bytes, bool]:
    """Return the content of a tape, and whether it needs the module with all kernels."""
    model = onnx.load(path)
    graph, region = region_of_all(model, of_any_size=of_any_size)
    data = _Data()
    tape = region.attribute[0].s
    is_whole = not native.handle().pytensor_onnx_core_runs(tape, len(tape))
    header = {
        "format": FORMAT,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "operators": list(operator_numbers()),
        "whole": is_whole,
        "tape": data.add(tape),
        "inputs": _inputs(model.graph, data),
        "outputs": [_described(x) for x in model.graph.output],
        "operands": _operands(graph, region, data),
        "results": list(region.output),
        "state": state_pairs(ir.from_proto(model)),
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    size = len(text)
    text += b"".join(data.parts)
    return MAGIC + struct.pack("<II", size, zlib.crc32(text)) + text, is_whole


class _Data:
    """The bytes after the header."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, content: bytes) -> list[int]:
        """Add bytes, and return where they begin, and their number."""
        place = [self.size, len(content)]
        padded = content + bytes(-len(content) % _ALIGNMENT)
        self.parts.append(padded)
        self.size += len(padded)
        return place

    def array(self, value: np.ndarray) -> dict[str, Any]:
        """Add an array, and return its description."""
        little = value.astype(value.dtype.newbyteorder("<"), copy=False)
        dims = list(value.shape)
        return {"dtype": value.dtype.name, "dims": dims, "data": self.add(little.tobytes())}


def _described(value: onnx.ValueInfoProto) -> dict[str, Any]:
    """Return the name, dtype and sizes of a value: a number, the name of a size, or None."""
    tensor = value.type.tensor_type
    dims = [_size(d) for d in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    return {"name": value.name, "dtype": dtype, "dims": dims}


def _size(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    """Return a size or its name, None of an open one, which some exporters write as -1 or "?"."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param if dim.dim_param.strip("?") else None


def _inputs(graph: onnx.GraphProto, data: _Data) -> list[dict[str, Any]]:
    """Describe the inputs, with their default values."""
    values = {x.name: numpy_helper.to_array(x) for x in graph.initializer}
    return [
        _described(x) | ({"default": data.array(values[x.name])} if x.name in values else {})
        for x in graph.input
    ]


def _operands(
    graph: onnx.GraphProto, region: onnx.NodeProto, data: _Data
) -> list[str | dict[str, Any]]:
    """Return the operands of the tape: names of inputs, and constants."""
    constants = constants_of(graph)
    return [data.array(constants[x]) if x in constants else x for x in region.input]
