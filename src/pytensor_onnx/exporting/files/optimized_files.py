"""Files written anew: optimized for a target, or with weights in 8 bits."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError, UnsupportedTypeError, VerificationError
from pytensor_onnx.exporting.files.file_latency import measure_latency
from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.exporting.program.export import export_onnx
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.program.weight_files import write_model
from pytensor_onnx.exporting.requests.output_names import check_file
from pytensor_onnx.exporting.verification.array_differences import disagreement, relative_error
from pytensor_onnx.exporting.verification.file_vectors import METADATA
from pytensor_onnx.exporting.verification.sampling import KINDS, sample
from pytensor_onnx.graph.file_parts import as_arrays
from pytensor_onnx.graph.model_reading import external_bytes, read_model
from pytensor_onnx.graph.traversal import operator_counts
from pytensor_onnx.graph.weights import weight_files
from pytensor_onnx.importing.registry.imported_graph import ImportedGraph, from_onnx
from pytensor_onnx.importing.registry.narrow_types import NARROW
from pytensor_onnx.progress import working
from pytensor_onnx.running.session import Session


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
    UnsupportedTypeError
        If inputs or outputs are of types of few bits, such as bfloat16.
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
    for value in (*model.graph.inputs, *model.graph.outputs):
        if value.dtype is not None and value.dtype in NARROW:
            raise UnsupportedTypeError(
                f"{value.name} is of {value.dtype.name.lower()}, which PyTensor has no arrays of: "
                "the optimized file would have another type"
            )
    graph = from_onnx(file)
    given = {"updates": graph.updates, "dynamic_axes": graph.dynamic_axes, **options}
    program = export_onnx(graph.inputs, graph.outputs, **given)
    is_narrowed = program.conversion.narrowing is not None
    if not is_narrowed and not graph.updates:
        _check_results(program, file, graph)
    for name, text in model.metadata_props.items():
        if not (is_narrowed and name == METADATA):
            program.model.metadata_props.setdefault(name, text)
    if path is not None:
        program.save(path)
    return program


def _check_results(program: ONNXProgram, file: Path, graph: ImportedGraph) -> None:
    """Raise if a program gives other results than a file."""
    session = load(str(file))
    drawn, expected = run_on_sample(session, str(file))
    given = dict(zip(drawn.names, drawn.arrays, strict=True))
    if any(array.dtype == object for array in drawn.arrays):
        given |= graph.encode(given)
    runtime = program.session_of_file
    found = runtime.run({name: given[name] for name in runtime.input_names})
    for name, one, other in zip(session.output_names, found, expected, strict=True):
        labels = graph.labels.get(name)
        known = (
            other
            if labels is None
            else np.array([labels.index(x) for x in other.ravel()]).reshape(other.shape)
        )
        if text := disagreement(one, known):
            raise VerificationError(f"output {name!r} differs from that of {file}: {text}")


_SLACK = 0.05
_LEAST_SECONDS = 3e-6
_LEAST_BYTES = 4096
"""Differences that are noise of the clock, or the metadata of a file."""


@dataclass(frozen=True)
class FileComparison:
    """A file beside the optimized file that was made of it: first the one, then the other.

    Attributes
    ----------
    seconds
        Least times of a run in ONNX Runtime, with one thread.
    bytes
        Sizes with external weights.
    nodes
        Numbers of nodes, those of functions and subgraphs included.
    difference
        Largest difference of the results, relative to the largest number of an output, or None
        where the inputs are of other dtypes.
    """

    seconds: tuple[float, float]
    bytes: tuple[int, int]
    nodes: tuple[int, int]
    difference: float | None

    @property
    def is_better(self) -> bool:
        """Whether the other file is faster; if as fast, smaller; else of no more nodes.

        Examples
        --------
        >>> FileComparison((1e-3, 0.9e-3), (100_000, 120_000), (5, 9), 0.0).is_better
        True
        >>> FileComparison((1e-3, 1e-3), (100_000, 120_000), (9, 5), 0.0).is_better
        False
        """
        pairs = ((self.seconds, _LEAST_SECONDS), (self.bytes, _LEAST_BYTES), (self.nodes, 0))
        for (before, after), least in pairs:
            if abs(after - before) > max(_SLACK * before, least):
                return after < before
        return True


def compare_optimized(file: Path, optimized: Path, *, seconds: float = 0.5) -> FileComparison:
    """Compare a file with the optimized one in latency, size, nodes and results.

    Parameters
    ----------
    file, optimized
        The files, which take turns.
    seconds
        Time of the runs of each.

    Raises
    ------
    VerificationError
        If no sampled inputs fit.
    """
    files = (file, optimized)
    first, second = measure_latency(files, threads=1, seconds=seconds)
    models = [read_model(path) for path in files]
    nodes = [operator_counts(model).total() for model in models]
    sizes = [path.stat().st_size + external_bytes(path) for path in files]
    drawn, expected = run_on_sample(load(str(file)), str(file))
    inputs = {v.name: v.dtype for v in models[1].graph.inputs}
    difference = None
    if all(
        array.dtype == object or inputs.get(name) == ir.DataType.from_numpy(array.dtype)
        for name, array in zip(drawn.names, drawn.arrays, strict=True)
    ):
        given = dict(zip(drawn.names, drawn.arrays, strict=True))
        found = as_arrays(load(str(optimized)).run(given))
        difference = max(
            (
                float(np.mean(a != b)) if a.dtype == object else relative_error(a, b)
                for a, b in zip(found, expected, strict=True)
            ),
            default=0.0,
        )
    return FileComparison(
        (first.least_seconds, second.least_seconds),
        (sizes[0], sizes[1]),
        (nodes[0], nodes[1]),
        difference,
    )


_QUANTIZED = frozenset(("DequantizeLinear", "DynamicQuantizeLinear"))


@dataclass(frozen=True)
class Quantization:
    """A quantized file, with its size and its errors.

    Attributes
    ----------
    path
        The file.
    size, original_size
        Bytes of the file, and of the model that it was made of.
    errors
        For each output of floats the largest error, relative to the largest magnitude; for other
        outputs the share of elements that differ.
    """

    path: Path
    size: int
    original_size: int
    errors: Mapping[str, float]

    def __str__(self) -> str:
        """Describe the file in one line."""
        errors = ", ".join(f"{name} {error:.1e}" for name, error in self.errors.items())
        return f"{self.path}: {self.size:,} bytes of {self.original_size:,}; errors: {errors}"


def quantize_onnx(
    program: ONNXProgram,
    path: str | os.PathLike,
    *,
    calibration: Sequence[Sequence[Any] | Mapping[str, Any]] | None = None,
    per_channel: bool = True,
) -> Quantization:
    """Write a program with 8-bit weights, and compare its results with the results of the program.

    Weights and activations are uint8. Products of int8 saturate on x86-64 processors without VNNI:
    ONNX Runtime adds pairs of them in 16 bits there.

    Parameters
    ----------
    program
        Program in float32; ``precision="float32"`` exports others so.
    path
        File to write.
    calibration
        Inputs as the model will get them, one list or dict of arrays for each call. With them,
        activations are quantized too, by the ranges that they have there (static quantization);
        otherwise only at run time, by their own ranges (dynamic quantization). Errors are measured
        on these inputs, or on sampled ones.
    per_channel
        Whether each channel of a weight has its own scale.

    Returns
    -------
    Quantization
        The file, its size, and the errors of each output.

    Raises
    ------
    ArgumentError
        If the model has no weights that can be quantized, or the calibration data is empty.
    InputError
        If calibration data does not fit the inputs.
    VerificationError
        If results are not finite that were finite before.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx, quantize_onnx
    >>> x = pt.matrix("x", shape=(None, 64), dtype="float32")
    >>> weights = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    >>> program = export_onnx([x], (x @ weights).copy("y"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = quantize_onnx(program, folder + "/small.onnx")
    >>> result.size < 0.4 * result.original_size, result.errors["y"] < 0.02
    (True, True)
    """
    check_file(path)
    if calibration is not None and not len(calibration):
        raise ArgumentError("the calibration data is empty: give the inputs of some calls")
    feeds = [program.feed(*_arguments(call)) for call in calibration or ()]
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        file = Path(folder) / target.name
        with _quiet():
            _quantize(program, file, feeds, per_channel=per_channel)
        model = onnx.load(file)
        if not any(node.op_type in _QUANTIZED for node in model.graph.node):
            raise ArgumentError(
                "the model has no float32 weights of products or convolutions to quantize; a "
                'float64 graph needs precision="float32"'
            )
        errors = _errors(program, Session(file), feeds)
        os.replace(file, target)
    return Quantization(target, target.stat().st_size, program.proto.ByteSize(), errors)


def _arguments(call: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return ((), call) if isinstance(call, Mapping) else (call, {})


def _quantize(program: ONNXProgram, file: Path, feeds: Sequence[Any], *, per_channel: bool) -> None:
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    # The tools change a model that is given itself.
    original = write_model(file.with_suffix(".original.onnx"), program.model)
    prepared = file.with_suffix(".prepared.onnx")
    quant_pre_process(original, prepared, skip_symbolic_shape=True)
    unsigned = quantization.QuantType.QUInt8
    if not feeds:
        quantization.quantize_dynamic(prepared, file, per_channel=per_channel, weight_type=unsigned)
        return

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds: Iterator[Any] = iter(feeds)

        def get_next(self) -> Any:
            return next(self.feeds, None)

    quantization.quantize_static(
        prepared,
        file,
        Reader(),
        per_channel=per_channel,
        activation_type=unsigned,
        weight_type=unsigned,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log of the tools."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)


def _errors(
    program: ONNXProgram, session: Session, feeds: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, float]:
    names = [str(v.name) for v in program.model.graph.outputs]
    errors = dict.fromkeys(names, 0.0)
    state = {s.name: s.value for s in program.conversion.states}
    for feed in feeds or _sampled(program):
        given = {**feed, **state}
        pairs = zip(program.session.run(given), session.run(given), strict=True)
        for name, (exact, found) in zip(names, pairs, strict=True):
            errors[name] = max(errors[name], _error(name, exact, found))
    return errors


def _sampled(program: ONNXProgram) -> list[dict[str, np.ndarray]]:
    samples = [sample(program.inputs, kind=kind) for kind in KINDS[:2]]
    return [dict(zip(s.names, s.arrays, strict=True)) for s in samples]


def _error(name: str, exact: np.ndarray, found: np.ndarray) -> float:
    if exact.dtype.kind != "f":
        return float(np.mean(exact != found)) if exact.size else 0.0
    if not np.isfinite(found[np.isfinite(exact)]).all():
        raise VerificationError(f"{name} of the quantized model is not finite where it was")
    return float(relative_error(found, exact))
