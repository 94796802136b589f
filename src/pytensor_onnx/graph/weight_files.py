"""Files beside a model that hold its weights."""

from pathlib import Path

import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError


def weight_files(model: ir.Model, file: Path) -> list[Path]:
    """Return the files of the weights of a model that are not in its own file.

    Parameters
    ----------
    model, file
        The model, and the file that it was read from.

    Raises
    ------
    PyTensorONNXError
        If there is no such file.

    Examples
    --------
    >>> weight_files(ir.Model(ir.Graph([], [], nodes=[]), ir_version=10), Path("model.onnx"))
    []
    """
    constants = [value.const_value for value in model.graph.initializers.values()]
    files = sorted({Path(c.path) for c in constants if isinstance(c, ir.ExternalTensor)})
    for path in files:
        if not path.is_file():
            raise PyTensorONNXError(f"{file} has weights in {path}, and there is no such file")
    return files
