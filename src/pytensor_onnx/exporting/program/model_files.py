"""Files of models."""

import os
import tempfile
from pathlib import Path

import onnx_ir as ir

from pytensor_onnx.exporting.requests.paths import check_file
from pytensor_onnx.graph.weights import is_large


def write_model(path: str | os.PathLike, model: ir.Model) -> Path:
    """Write a model to a file, which appears complete or not at all.

    Parameters
    ----------
    path
        The file. Weights above 2 GB go to a second file beside it, ``<name>.data``.
    model
        The model.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    check_file(path)
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        file = Path(folder) / target.name
        data = f"{target.name}.data"
        if is_large(model):
            ir.save(model, file, external_data=data)
            os.replace(file.with_name(data), target.with_name(data))
        else:
            ir.save(model, file)
        os.replace(file, target)
    return target
