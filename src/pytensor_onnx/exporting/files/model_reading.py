"""Read ONNX files of any exporter, with one error for all that are not readable."""

from pathlib import Path

import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.graph.weights import weight_files


def read_model(file: Path) -> ir.Model:
    """Read an ONNX file.

    Raises
    ------
    PyTensorONNXError
        If the file is not a readable model.
    """
    if not file.stat().st_size:
        raise PyTensorONNXError(f"{file} cannot be read as an ONNX model: it is empty")
    try:
        model = ir.load(file)
        _ = model.graph.opset_imports
    except Exception as error:
        reason = " ".join(str(error).split())
        raise PyTensorONNXError(f"{file} cannot be read as an ONNX model: {reason}") from error
    if not model.graph.outputs and not len(model.graph):
        raise PyTensorONNXError(f"{file} cannot be read as an ONNX model: it has no graph")
    return model


def external_bytes(file: Path) -> int:
    """Return the size of the external weight files of a model.

    Raises
    ------
    PyTensorONNXError
        If the file is not a readable model, or one of its weight files is missing.
    """
    return sum(path.stat().st_size for path in weight_files(read_model(file), file))
