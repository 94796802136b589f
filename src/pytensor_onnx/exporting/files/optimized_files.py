"""Write ONNX files of any exporter anew, optimized for a target."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import VerificationError
from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.exporting.program.export import export_onnx
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.paths import check_file
from pytensor_onnx.exporting.verification.array_differences import disagreement
from pytensor_onnx.exporting.verification.file_vectors import METADATA
from pytensor_onnx.graph.model_reading import read_model
from pytensor_onnx.graph.weights import weight_files
from pytensor_onnx.importing.registry.imported_graph import from_onnx
from pytensor_onnx.progress import working


@working("optimizing")
def optimize_onnx(
    source: str | os.PathLike,
    path: str | os.PathLike | None = None,
    **options: Any,
) -> ONNXProgram:
    """Optimize an ONNX file of any exporter for a target.

    The file is imported as a PyTensor graph, which is exported again: with PyTensor's rewrites,
    with fused operators, and with the operators that the target lacks replaced. The results are
    compared with those of the file before anything is written. Metadata stays, but test vectors
    where the precision changes.

    Parameters
    ----------
    source
        The file.
    path
        File to write; none unless given.
    options
        Those of `export_onnx`, such as ``target`` and ``precision``.

    Returns
    -------
    ONNXProgram
        The optimized model.

    Raises
    ------
    UnsupportedOpError
        If the file has operators that cannot be imported, or parts that the target cannot run.
    VerificationError
        If the results differ from those of the file beyond rounding. In another precision, they are
        compared with those of the imported graph alone.
    PyTensorONNXError
        If the file is no readable model, or its weights are missing.

    Examples
    --------
    >>> import tempfile, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx, optimize_onnx
    >>> x = pt.dvector("x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = export_onnx([x], pt.log(x).copy("y"), folder + "/log.onnx")
    ...     optimize_onnx(folder + "/log.onnx", folder + "/web.onnx", target="web")
    ONNXProgram(x: float32[x_dim0] -> y: float32[x_dim0])
    """
    check_file(path)
    file = Path(source)
    model = read_model(file)
    weight_files(model, file)
    graph = from_onnx(file)
    given = {"updates": graph.updates, "dynamic_axes": graph.dynamic_axes, **options}
    program = export_onnx(graph.inputs, graph.outputs, **given)
    is_narrowed = program.conversion.narrowing is not None
    if not is_narrowed and not graph.updates:
        _check_results(program, file)
    for name, text in model.metadata_props.items():
        if not (is_narrowed and name == METADATA):
            program.model.metadata_props.setdefault(name, text)
    if path is not None:
        program.save(path)
    return program


def _check_results(program: ONNXProgram, file: Path) -> None:
    """Raise if a program gives other results than a file."""
    session = load(str(file))
    drawn, expected = run_on_sample(session, str(file))
    found = program.session_of_file.run(dict(zip(drawn.names, drawn.arrays, strict=True)))
    for name, one, other in zip(session.output_names, found, expected, strict=True):
        if text := disagreement(one, other):
            raise VerificationError(f"output {name!r} differs from that of {file}: {text}")
