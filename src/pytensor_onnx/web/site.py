"""Build the folder of a page around a model."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import onnx_ir as ir

from pytensor_onnx import native
from pytensor_onnx.errors import NoTapeError, PyTensorONNXError
from pytensor_onnx.graph.model_reading import state_pairs, stored_mapping
from pytensor_onnx.graph.weights import weight_files
from pytensor_onnx.web.automatic import automatic_page
from pytensor_onnx.web.configurations import read_configuration
from pytensor_onnx.web.controls import describe_input, describe_output, names_in, sizes_of
from pytensor_onnx.web.packages import (
    RUNTIME,
    WEBGPU_RUNTIME,
    Package,
    compressed,
    package_files,
)
from pytensor_onnx.web.single_file import Page, joined
from pytensor_onnx.web.tape_file import write_tape

_KEYS = {"title", "text", "inputs", "outputs", "run", "repeat", "links", "configuration"}
_GUIDE = "https://pytensor-onnx.github.io/pytensor-onnx/how-to/web.html"
_LARGEST = 2**31 - 1
_TOO_LARGE = "{} is too large for a browser, which takes up to 2 GB"


def build_site(
    model: str | os.PathLike,
    folder: str | os.PathLike,
    *,
    page: Mapping[str, Any] | None = None,
    engine: str = "auto",
    runtime: str = "npm",
    webgpu: bool = False,
    state: str | os.PathLike | None = None,
) -> Path:
    """Write a static page around a model.

    Parameters
    ----------
    model
        An ONNX file.
    folder
        Folder to write; it must be empty or missing, and appears complete or not at all.
    page
        Description of the page: ``title``, ``text``, ``run`` (``"change"``, or ``"button"`` to
        wait for it), ``repeat`` (the number of runs between two showings of the results, 1 unless
        given), ``links`` (addresses by their texts), and for each input and output its ``kind``,
        ``label`` and options; ``configuration`` is a file with names of classes or with the
        preprocessing, such as ``config.json`` of transformers.
    engine
        ``"tape"`` runs the model by a small module of WebAssembly, which must cover all nodes,
        ``"onnxruntime"`` by ONNX Runtime Web, and ``"auto"`` by the first that can.
    runtime
        ``"npm"`` copies ONNX Runtime Web into the folder, ``"cdn"`` links a public host, and
        ``"../runtime/"`` links a folder beside the page's, see `write_runtime`.
    webgpu
        Whether the page has the larger build of the runtime that can use WebGPU.
    state
        File of the first state of a model that updates one, as ``state_path`` writes it.

    Raises
    ------
    PyTensorONNXError
        If the folder is not empty, the description has unknown keys, an input has no control, or
        the engine cannot be had.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise PyTensorONNXError(f"{target} is a file: name a folder with -o")
    if target.exists() and any(target.iterdir()):
        raise PyTensorONNXError(
            f"{target} is not an empty folder: name another with -o, or replace a page by --force"
        )
    described = describe_page(Path(model), page or {}, state)
    package = WEBGPU_RUNTIME if webgpu else RUNTIME
    with _folder_beside(target) as temporary:
        site = temporary / "site"
        shutil.copytree(str(files("pytensor_onnx.web") / "static"), site)
        _write_model(Path(model), site / "model.onnx", described["fixed"])
        reason = _write_engine(engine, Path(model), site, webgpu)
        described["runtime"] = {"engine": "tape"}
        if reason:
            described["runtime"] = _runtime(package, site, runtime) | {"reason": reason}
        for entry in described["inputs"]:
            _add_example(entry, site / "examples")
        text = (site / "index.html").read_text(encoding="utf-8")
        host = "https://cdn.jsdelivr.net" if runtime == "cdn" else ""
        text = text.replace(" CDN", f" {host}" if host else "")
        (site / "index.html").write_text(text, encoding="utf-8")
        if state is not None:
            described["state"] |= _write_state(state, site / "state", described["state"]["pairs"])
        (site / "page.json").write_text(json.dumps(described, indent=1, allow_nan=False))
        if target.exists():
            target.rmdir()
        os.replace(site, target)
    target.chmod(0o755)
    return target


def make_page(
    model: str | os.PathLike,
    *,
    page: Mapping[str, Any] | None = None,
    state: str | os.PathLike | None = None,
    height: int = 640,
) -> Page:
    """Return a page around a model as one HTML file, which opens without a server.

    Parameters
    ----------
    model, page, state
        As in `build_site`.
    height
        Pixels of the page in a notebook.

    Raises
    ------
    NoTapeError
        If the kernels do not cover the model, as one file cannot hold ONNX Runtime Web.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "site"
        try:
            build_site(model, folder, page=page, engine="tape", state=state)
        except NoTapeError as error:
            reason = f"{error}. A page in one file runs tapes only: name a folder, -o site"
            raise type(error)(reason) from None
        return joined(folder, height)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield the path of a new folder, which takes the place of a page at the end.

    Raises
    ------
    PyTensorONNXError
        If the folder has files that are no page.
    """
    files = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if files and not {"page.json", "index.html", "model.onnx"} <= files:
        raise PyTensorONNXError(
            f"{folder} has files, and no page that could be replaced: name another with -o"
        )
    if not files:
        yield folder
        return
    with _folder_beside(folder) as temporary:
        yield temporary / "site"
        os.replace(folder, temporary / "before")
        os.replace(temporary / "site", folder)


@contextmanager
def _folder_beside(target: Path) -> Iterator[Path]:
    """Yield a temporary folder beside a path, from which a folder moves to the path."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # `Path("..")` has no name.
        prefix = f".{target.resolve().name}."
        temporary = tempfile.TemporaryDirectory(dir=target.parent, prefix=prefix)
    except OSError as error:
        raise PyTensorONNXError(
            f"{target} cannot be written: name another folder with -o ({error.strerror})"
        ) from None
    with temporary as folder:
        yield Path(folder)


def describe_page(
    model: Path,
    page: Mapping[str, Any],
    state: str | os.PathLike | None = None,
) -> dict[str, Any]:
    """Return the description of a page that its scripts read."""
    if model.stat().st_size > _LARGEST:
        raise PyTensorONNXError(_TOO_LARGE.format(model))
    loaded = ir.load(model)
    native.refuse_regions(loaded)
    if page.get("configuration"):
        loaded.metadata_props.update(read_configuration(Path(page["configuration"])))
    graph = loaded.graph
    unknown = sorted(set(page) - _KEYS)
    if unknown:
        raise PyTensorONNXError(
            f"unknown keys in the description of the page: {', '.join(unknown)}; "
            f"it has {', '.join(sorted(_KEYS))}"
        )
    pairs = state_pairs(loaded)
    if pairs and state is None and not all(name in graph.initializers for name in pairs):
        raise PyTensorONNXError("the model has a state: give its first values by --state FILE")
    encodings = stored_mapping(loaded.metadata_props, "encodings").get("inputs", {})
    encoded = {
        part: entry["encoding"] for entry in encodings.values() for part in entry["parts"].values()
    }
    inputs = [v for v in graph.inputs if v.name not in graph.initializers and v.name not in pairs]
    automatic = automatic_page(loaded, model.stem)
    # Who describes inputs or outputs has a page of single controls and views.
    is_described = any(page.get(kind) for kind in ("inputs", "outputs"))
    carried, fixed = (
        {} if is_described else automatic.get(key) or {} for key in ("carried", "fixed")
    )
    handed = {
        str(v.name): {
            "next": carried[str(v.name)],
            "dtype": v.dtype.numpy().name,
            "dims": [n or 1 for n in sizes_of(v)],
        }
        for v in inputs
        if v.name in carried and v.dtype
    }
    inputs = [v for v in inputs if v.name not in {*carried, *fixed}]
    outputs = [v for v in graph.outputs if v.name not in {*pairs.values(), *carried.values()}]
    page = {**({"title": automatic["title"]} if is_described else automatic), **page}
    repeat = page.get("repeat", 1)
    if not isinstance(repeat, int) or repeat < 1:
        raise PyTensorONNXError(f"repeat is a number of runs from 1 on, not {repeat!r}")
    given = {kind: page.get(kind) or {} for kind in ("inputs", "outputs")}
    for kind, values in (("inputs", inputs), ("outputs", outputs)):
        unknown = sorted(set(given[kind]) - {str(v.name) for v in values})
        if unknown:
            raise PyTensorONNXError(f"the model has no {kind} {', '.join(unknown)}")
    described_inputs = [
        describe_input(v, given["inputs"].get(v.name) or {}, encoded.get(str(v.name)))
        for v in inputs
    ]
    described_outputs = [describe_output(v, given["outputs"].get(v.name) or {}) for v in outputs]
    return {
        "title": page["title"],
        "text": page.get("text") or "",
        "links": _links(page.get("links") or {}),
        "run": page.get("run") or ("button" if pairs else "change"),
        "repeat": repeat,
        "inputs": described_inputs,
        "outputs": described_outputs,
        "shown": _shown(described_inputs, described_outputs),
        "state": {"pairs": pairs, "carried": handed},
        "button": page.get("button") or "Run",
        "starts": bool(page.get("starts")),
        "predictor": page.get("predictor"),
        "fixed": fixed,
    }


def _write_model(model: Path, target: Path, fixed: Mapping[str, Any]) -> None:
    """Copy a model; weights of another file, and fixed inputs, are written into this one."""
    loaded = ir.load(model)
    for value in [v for v in loaded.graph.inputs if v.name in fixed]:
        assert value.dtype is not None
        number = np.array(fixed[str(value.name)], value.dtype.numpy())
        value.const_value = ir.tensor(number, name=value.name)
        loaded.graph.inputs.remove(value)
        loaded.graph.register_initializer(value)
    external = weight_files(loaded, model)
    if sum(path.stat().st_size for path in external) > _LARGEST:
        raise PyTensorONNXError(_TOO_LARGE.format(model))
    if external:
        ir.external_data.load_to_model(loaded)
    if external or fixed:
        ir.save(loaded, target)
    else:
        shutil.copyfile(model, target)


def write_runtime(folder: Path, *, webgpu: bool = False) -> Path:
    """Write the files of ONNX Runtime Web that several pages share into a folder."""
    for file in package_files(WEBGPU_RUNTIME if webgpu else RUNTIME):
        # Not every server compresses the large file, and the page can open it.
        _copy(compressed(file) if file.suffix == ".wasm" else file, folder)
    return folder


def _shown(inputs: Sequence[dict[str, Any]], outputs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the inputs that views need, after a check of all names in views."""
    known = {entry["name"] for entry in inputs}
    names = {entry["name"]: names_in(entry["view"]) for entry in outputs}
    for output, used in names.items():
        unknown = sorted(set(used) - known - set(names))
        if unknown:
            raise PyTensorONNXError(
                f"output {output}: the model has no input or output {', '.join(unknown)}"
            )
    return sorted(known & {name for used in names.values() for name in used})


def _add_example(entry: dict[str, Any], folder: Path) -> None:
    """Copy the image that a control starts with."""
    example = entry["control"].get("example")
    # The example of a table is in the description.
    if not isinstance(example, str):
        return
    if not Path(example).is_file():
        raise PyTensorONNXError(f"input {entry['name']}: there is no file {example}")
    _copy(Path(example), folder)
    entry["control"]["example"] = f"{folder.name}/{Path(example).name}"


def _write_engine(engine: str, model: Path, site: Path, webgpu: bool) -> str:
    """Write the copy of a model as a tape, or return why ONNX Runtime Web runs it."""
    if engine == "onnxruntime":
        return "as the engine of the page"
    if webgpu:
        if engine == "tape":
            raise PyTensorONNXError("a tape does not use WebGPU: leave out one of the two")
        return "for WebGPU"
    try:
        write_tape(site / "model.onnx", site, of_any_size=engine == "tape")
    except NoTapeError as error:
        if engine == "tape":
            raise type(error)(f"{model}: {error}") from None
        return str(error)
    return ""


def _runtime(package: Package, site: Path, source: str) -> dict[str, str]:
    name, *_, binary = (Path(file).name for file in package.files)
    backend = "webgpu" if package is WEBGPU_RUNTIME else "wasm"
    if source == "npm":
        write_runtime(site / "runtime", webgpu=backend == "webgpu")
    folder = {"npm": "runtime/", "cdn": package.cdn}.get(source, source)
    binary = binary if source == "cdn" else f"{binary}.gz"
    return {
        "engine": "onnxruntime",
        "folder": folder,
        "module": name,
        "binary": binary,
        "backend": backend,
    }


def _links(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return texts and addresses of links, those to the model and to the guide too."""
    for text, address in given.items():
        if not isinstance(address, str) or not re.match(r"https?://|[^:]*$", address):
            raise PyTensorONNXError(
                f"link {text}: {address!r} is neither an https address nor a path"
            )
    return [("Model file", "model.onnx"), *given.items(), ("About such pages", _GUIDE)]


def _copy(file: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, folder / file.name)


def _write_state(
    path: str | os.PathLike, folder: Path, pairs: Mapping[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """Write the first state as raw little-endian files, and describe them."""
    folder.mkdir()
    described = []
    if not is_zipfile(path):
        raise PyTensorONNXError(f"{path} is no state, which state_path or the page writes as .npz")
    with np.load(path) as arrays:
        missing = sorted(set(pairs) - set(arrays.files))
        if missing:
            raise PyTensorONNXError(f"{path} lacks the state {', '.join(missing)}")
        for i, name in enumerate(pairs):
            array = arrays[name]
            (folder / f"{i}.bin").write_bytes(array.astype(array.dtype.newbyteorder("<")).tobytes())
            entry = {"name": name, "file": f"state/{i}.bin", "dims": list(array.shape)}
            described.append(entry | {"dtype": array.dtype.name})
    return {"values": described}
