"""Differences of two ONNX files: interfaces, operators, weights, and results on sampled inputs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.verification.array_differences import disagreement
from pytensor_onnx.graph.model_reading import read_model
from pytensor_onnx.graph.traversal import function_sizes, operator_counts
from pytensor_onnx.graph.weights import weight_files
from pytensor_onnx.operators.dims import dims_of


@dataclass(frozen=True)
class FileDifferences:
    """Differences of two ONNX files, one line each; empty where they are equal.

    It is true if there are any.

    Attributes
    ----------
    interface
        Inputs and outputs: names, dtypes and shapes.
    operators
        Operator sets, numbers of nodes of each operator, and numbers of nodes of each function.
    weights
        Stored arrays by name: dtypes, shapes and values.
    results
        Results that differ beyond the rounding of their dtype.
    sample
        The inputs on which results were compared; empty where the files have different inputs.
    """

    interface: tuple[str, ...]
    operators: tuple[str, ...]
    weights: tuple[str, ...]
    results: tuple[str, ...]
    sample: str

    def __bool__(self) -> bool:
        return any((self.interface, self.operators, self.weights, self.results))


def diff_onnx(first: str | os.PathLike, second: str | os.PathLike) -> FileDifferences:
    """Compare two ONNX files of any exporter.

    Results are compared on the same sampled inputs in ONNX Runtime, if both files have the same
    inputs but for the names of axes.

    Parameters
    ----------
    first, second
        The files.

    Returns
    -------
    FileDifferences
        The differences, which is false where there are none.

    Raises
    ------
    PyTensorONNXError
        If a file is no readable model, or its weights are missing.
    VerificationError
        If ONNX Runtime refuses a file, or no sampled inputs fit the first one.
    RunError
        If the second file fails on inputs that the first one runs on.

    Examples
    --------
    >>> import tempfile, pytensor.tensor as pt
    >>> from pytensor_onnx import diff_onnx, export_onnx
    >>> x = pt.vector("x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     a, b = folder + "/a.onnx", folder + "/b.onnx"
    ...     _ = export_onnx([x], pt.exp(x).copy("y"), a), export_onnx([x], abs(x).copy("y"), b)
    ...     differences = diff_onnx(a, b)
    >>> differences.interface, differences.operators
    ((), ('Exp: 1 -> 0', 'Abs: 0 -> 1'))
    >>> differences.results  # doctest: +ELLIPSIS
    ('y: largest difference ...',)
    """
    files = Path(first), Path(second)
    models = [read_model(file) for file in files]
    for model, file in zip(models, files, strict=True):
        weight_files(model, file)
    if [_signature(v) for v in _given(models[0])] == [_signature(v) for v in _given(models[1])]:
        sample, results = _compare_results(*files)
    else:
        sample, results = "", ()
    return FileDifferences(
        interface=tuple(_changes(_interface(models[0]), _interface(models[1]))),
        operators=tuple(_changes(_operators(models[0]), _operators(models[1]), absent=0)),
        weights=tuple(_weight_changes(_weights(models[0]), _weights(models[1]))),
        results=results,
        sample=sample,
    )


def _given(model: ir.Model) -> list[ir.Value]:
    return [value for value in model.graph.inputs if not value.is_initializer()]


def _signature(value: ir.Value) -> tuple[Any, ...]:
    """Return what two inputs have in common that take the same arrays."""
    dims = dims_of(value)
    fixed = None if dims is None else [d if isinstance(d, int) else None for d in dims]
    return value.name, value.dtype, fixed


def _interface(model: ir.Model) -> dict[str, str]:
    kinds = {"input": model.graph.inputs, "output": model.graph.outputs}
    return {
        f"{kind} {value.name}": describe(value).partition(": ")[2]
        + (", with a default" if value.is_initializer() else "")
        for kind, values in kinds.items()
        for value in values
    }


def _operators(model: ir.Model) -> dict[str, int]:
    sets = {f"operator set {k or 'onnx'}": v for k, v in model.graph.opset_imports.items()}
    functions = {f"function {name}": size for name, size in function_sizes(model)}
    return {**sets, **dict(sorted(operator_counts(model).items())), **functions}


def _weights(model: ir.Model) -> dict[str, np.ndarray]:
    tensors = {str(k): v.const_value for k, v in model.graph.initializers.items()}
    return {name: tensor.numpy() for name, tensor in tensors.items() if tensor is not None}


def _changes(
    first: Mapping[str, Any], second: Mapping[str, Any], absent: Any = "none"
) -> list[str]:
    names = dict.fromkeys([*first, *second])
    pairs = {name: (first.get(name, absent), second.get(name, absent)) for name in names}
    return [f"{name}: {old} -> {new}" for name, (old, new) in pairs.items() if old != new]


def _weight_changes(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]
) -> Iterator[str]:
    types = [{k: _type_of(v) for k, v in arrays.items()} for arrays in (first, second)]
    yield from _changes(types[0], types[1])
    for name in [name for name in first if name in second]:
        old, new = first[name], second[name]
        is_equal = np.array_equal(old, new, equal_nan=old.dtype.kind == "f")
        if _type_of(old) == _type_of(new) and not is_equal:
            yield f"{name}: {_distance(old, new)}"


def _type_of(array: np.ndarray) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _distance(old: np.ndarray, new: np.ndarray) -> str:
    n_other = int((old != new).sum())
    if old.dtype.kind not in "fiu":
        return f"{n_other} of {old.size} values differ"
    with np.errstate(all="ignore"):
        largest = np.abs(old.astype("f8") - new.astype("f8")).max(initial=0.0)
    return f"{n_other} of {old.size} values differ, by at most {largest:.3g}"


def _compare_results(first: Path, second: Path) -> tuple[str, tuple[str, ...]]:
    """Return the inputs on which results were compared, and the differences."""
    session = load(str(first))
    drawn, results = run_on_sample(session, str(first))
    expected = dict(zip(session.output_names, results, strict=True))
    other = load(str(second))
    feed = dict(zip(drawn.names, drawn.arrays, strict=True))
    found = dict(zip(other.output_names, other.run(feed), strict=True))
    differences = {k: disagreement(found[k], x) for k, x in expected.items() if k in found}
    return str(drawn), tuple(f"{k}: {text}" for k, text in differences.items() if text)
