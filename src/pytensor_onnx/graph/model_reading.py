"""Read ONNX files of any exporter, with one error for all that are not readable."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.graph.file_parts import deserialized
from pytensor_onnx.graph.weights import weight_files


def read_model(file: Path) -> ir.Model:
    """Read an ONNX file; its weights may be in files beside it, which are not read.

    Raises
    ------
    PyTensorONNXError
        If the file is no readable model; the message names the kind of another file.
    OSError
        If there is no such file, or it may not be read.
    """
    if file.is_dir():
        raise _unreadable(str(file), file)
    try:
        try:
            model = ir.load(file)
        except ir.serde.SerdeError:
            model = deserialized(file)
        _check(model)
    except OSError:
        raise
    except Exception as error:
        raise _unreadable(str(file), file, error) from error
    return model


def parse_model(data: bytes) -> ir.Model:
    """Return the model in the bytes of an ONNX file.

    Raises
    ------
    PyTensorONNXError
        If the bytes are no model, or its weights are in files.

    Examples
    --------
    >>> parse_model(b"hello")
    Traceback (most recent call last):
    pytensor_onnx.errors.PyTensorONNXError: the bytes cannot be read as an ONNX model: it is text...
    """
    import onnx

    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
        model = deserialized(proto)
        _check(model)
    except Exception as error:
        raise _unreadable("the bytes", data, error) from error
    if any(isinstance(v.const_value, ir.ExternalTensor) for v in model.graph.initializers.values()):
        raise PyTensorONNXError("the bytes have weights in other files: give the path of the model")
    return model


def _check(model: ir.Model) -> None:
    """Refuse what parses as an empty model, as any short file may."""
    _ = model.graph.opset_imports
    if not model.graph.outputs and not len(model.graph):
        raise ValueError("it has no graph")


def _unreadable(name: str, source: Path | bytes, error: Exception | None = None) -> Exception:
    from pytensor_onnx_scoring.file_kinds import why_no_model

    reason = why_no_model(source)
    if not reason and type(error).__name__ == "DecodeError":
        reason = "it is damaged, or was not copied to its end"
    reason = reason or " ".join(str(error).split())
    return PyTensorONNXError(f"{name} cannot be read as an ONNX model: {reason}")


def external_bytes(file: Path) -> int:
    """Return the size of the external weight files of a model.

    Raises
    ------
    PyTensorONNXError
        If the file is no readable model, or one of its weight files is missing.
    """
    return sum(path.stat().st_size for path in weight_files(read_model(file), file))


EXAMPLES = "example_inputs"
"""Entry of the metadata with the example inputs of a page."""


def stored_mapping(metadata: Mapping[str, str], key: str) -> dict[str, Any]:
    """Return a mapping that this package stored in the metadata of a model, as JSON.

    It is empty where there is none: other exporters use the same keys for other texts.

    Examples
    --------
    >>> stored_mapping({"state": '{"x": "y"}'}, "state"), stored_mapping({"state": "new"}, "state")
    ({'x': 'y'}, {})
    """
    try:
        found = json.loads(metadata.get(key, "{}"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def state_pairs(model: ir.Model) -> dict[str, str]:
    """Return the output with the next value of each input that is a state of a model."""
    inputs, outputs = ({v.name for v in x} for x in (model.graph.inputs, model.graph.outputs))
    pairs = stored_mapping(model.metadata_props, "state").items()
    return {
        name: after
        for name, after in pairs
        if name in inputs and isinstance(after, str) and after in outputs
    }
