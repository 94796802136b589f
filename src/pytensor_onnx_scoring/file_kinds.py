"""Kinds of files that are mistaken for ONNX models, with the way out of each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile, ZipFile

_READ = 2**14
"""Bytes that are read of a file."""

_SHOWN = 40
"""Characters of a text that a message shows."""

_EXPORT = "export the model by torch.onnx.export, and give that file"
_PYTORCH = f"it is a file of PyTorch: {_EXPORT}"
_UNPACK = "unpack it, and give the file in it"

_BEGINNINGS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x1f\x8b", f"it is compressed by gzip: {_UNPACK}"),
    (0, b"BZh", f"it is compressed by bzip2: {_UNPACK}"),
    (0, b"\xfd7zXZ\0", f"it is compressed by xz: {_UNPACK}"),
    (0, b"\x28\xb5\x2f\xfd", f"it is compressed by zstd: {_UNPACK}"),
    (0, b"7z\xbc\xaf\x27\x1c", f"it is an archive of 7-Zip: {_UNPACK}"),
    (257, b"ustar", f"it is an archive of tar: {_UNPACK}"),
    (0, b"\x89HDF", "it is in HDF5, as Keras writes it: convert the model by tf2onnx"),
    (4, b"TFL3", "it is a model of TensorFlow Lite: convert it by tf2onnx --tflite"),
    (4, b"ORTM", "it is in ONNX Runtime's format .ort: give the .onnx that it was made from"),
    (0, b"GGUF", "it is a file of weights in GGUF, which has no graph"),
    (0, b"\x93NUMPY", "it is an array of NumPy"),
    (0, b"PAR1", "it is a table in Parquet"),
    (0, b"\x89PNG", "it is an image"),
    (0, b"\xff\xd8\xff", "it is an image"),
    (0, b"%PDF", "it is a PDF"),
    (0, b"\x7fELF", "it is a program or a library"),
    (0, b"MZ", "it is a program or a library"),
)
"""Offset, bytes at the offset, and name of the kind of file."""


def why_no_model(source: str | os.PathLike[str] | bytes) -> str:
    r"""Name the kind of a file that is no readable ONNX model, with the way out.

    Parameters
    ----------
    source
        Path of the file, or its bytes. It was not readable as a model, or has no graph.

    Returns
    -------
    str
        A clause such as "it is empty"; empty for bytes of no known kind.

    Examples
    --------
    >>> why_no_model(b"<!DOCTYPE html><html></html>")
    'it is a page in HTML, such as of a login or an error: download the file itself'
    >>> why_no_model(b"\x08\x0a")
    ''
    """
    if isinstance(source, bytes | bytearray | memoryview):
        beginning, path = bytes(source[:_READ]), None
    else:
        path = Path(source)
        if path.is_dir():
            return _of_folder(path)
        try:
            with path.open("rb") as file:
                beginning = file.read(_READ)
        except OSError:
            return ""
    kinds: tuple[Callable[[bytes], str], ...] = (_of_beginning, _of_safetensors, _of_text)
    if beginning.startswith(b"PK\x03\x04"):
        return _of_archive(path)
    return next((text for kind in kinds if (text := kind(beginning))), "")


def is_pointer(file: Path) -> bool:
    """Return whether a file is a pointer of Git LFS, which stands for another file."""
    return file.stat().st_size < 1024 and file.read_bytes().startswith(b"version https://git-lfs")


def _of_folder(folder: Path) -> str:
    if (folder / "saved_model.pb").exists():
        return "it is a SavedModel of TensorFlow: convert it by tf2onnx --saved-model"
    models = sorted(file.name for file in folder.glob("*.onnx"))
    return f"it is a folder: give a file in it{f', such as {models[0]}' if models else ''}"


def _of_beginning(beginning: bytes) -> str:
    if not beginning:
        return "it is empty"
    # Pickles begin with their protocol, and a frame, a call, a mapping or a list.
    if (
        beginning[0] == 0x80
        and beginning[1:2] in b"\2\3\4\5"
        and beginning[2:3] in b"\x95cC}]X(\x8a"
    ):
        is_pytorch = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19" in beginning
        return _PYTORCH if is_pytorch else "it is a pickle of Python: export the model to ONNX"
    found = (text for at, mark, text in _BEGINNINGS if beginning[at:].startswith(mark))
    return next(found, "")


def _of_archive(path: Path | None) -> str:
    """Name the kind of file that a ZIP archive holds."""
    names: list[str] = []
    if path is not None:
        try:
            with ZipFile(path) as archive:
                names = archive.namelist()
        except (BadZipFile, OSError, ValueError):
            return "it is a damaged archive of ZIP"
    if any(name.endswith(("data.pkl", "constants.pkl")) for name in names):
        return _PYTORCH
    if "model.weights.h5" in names:
        return "it is a model of Keras: write it by model.export(path, format='onnx')"
    if any(name.endswith(".npy") for name in names):
        return "it is a file of NumPy's arrays (.npz)"
    models = [name for name in names if name.endswith(".onnx")]
    return f"it is an archive of ZIP: {_UNPACK}{f', {models[0]}' if models else ''}"


def _of_safetensors(beginning: bytes) -> str:
    length = int.from_bytes(beginning[:8], "little")
    if beginning[8:9] == b"{" and b'"' in beginning[9:12] and 2 < length < 2**27:
        return "it is a file of weights in safetensors, which has no graph"
    return ""


def _of_text(beginning: bytes) -> str:
    encoding = "utf-16" if beginning.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = beginning.decode(encoding)
    except UnicodeDecodeError as error:
        # The last character may be cut.
        if error.start < len(beginning) - 4 or len(beginning) < _READ:
            return ""
        text = beginning[: error.start].decode(encoding)
    if any(not (x.isprintable() or x in "\t\n\r\f") for x in text):
        return ""
    text = text.strip()
    start = text[:1000].lower()
    if start.startswith("version https://git-lfs"):
        return "it is a pointer of Git LFS: git lfs pull downloads the file"
    if start.startswith("<!doctype html") or "<html" in start:
        return "it is a page in HTML, such as of a login or an error: download the file itself"
    if start.startswith("<?xml") or start.startswith("<net"):
        return "it is XML, as models of OpenVINO are"
    if not text:
        return "it is a text of blanks"
    kind = "JSON" if _is_json(text) else "text"
    line = " ".join(text.split())
    return f"it is {kind}: {line[:_SHOWN]!r}{' ...' if len(line) > _SHOWN else ''}"


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except ValueError as error:
        # A long text is cut.
        return getattr(error, "pos", 0) >= len(text) - 1
    except RecursionError:
        return True
    return True
