"""Test vectors of functions in ONNX's own layout: a model, and folders of inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path

import numpy as np
import onnx
import pytensor.tensor as pt
from onnx import numpy_helper
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.graph.type import Type

from pytensor_onnx.catalogue.compile_entry import Compiled, graph_of
from pytensor_onnx.catalogue.entry import Entry
from pytensor_onnx.catalogue.library import model_of
from pytensor_onnx.exporting.verification.float_conversion import FloatConversion
from pytensor_onnx.exporting.verification.results import evaluate

Arrays = list[np.ndarray]


def examples(entry: Entry, dtype: str) -> Arrays:
    """Return the operands of the test vectors."""
    return [np.asarray(x.example, x.dtype_in(dtype)) for x in entry.inputs]


def expected(entry: Entry, operands: Sequence[np.ndarray]) -> Arrays | None:
    """Return results by PyTensor's Python implementations in float64; None for draws.

    They are those of SciPy for special functions, and of LAPACK for matrices.
    """
    if entry.kind == "random":
        return None
    shape: tuple[int, ...] = ()
    given = [x.astype("float64") if x.dtype.kind == "f" else x for x in operands]
    if entry.kind == "elementwise":
        shape = np.broadcast_shapes(*(x.shape for x in given))
        given = [np.broadcast_to(x, shape).reshape(-1) for x in given]
    elif entry.kind == "core":
        batches = [
            x.shape[: x.ndim - len(a.core)]
            for x, a in zip(given, entry.inputs, strict=True)
            if a.is_batched
        ]
        shape = reduce(np.broadcast_shapes, batches)
        given = [
            x.reshape(-1, *x.shape[len(shape) :]) if a.is_batched else x
            for x, a in zip(given, entry.inputs, strict=True)
        ]
    variables, results = graph_of(entry, "float64")
    # PyTensor rounds logarithms of integers of 8 and 16 bits to float32.
    small = [v for v in ancestors(results) if isinstance(v, Constant) and _is_small(v.type)]
    wide = {v: pt.constant(np.asarray(v.data, "int64")) for v in small}
    with suppress(TypeError):  # Loops that count in integers of 8 bits.
        results = list(clone_replace(results, wide, rebuild_strict=False))
    graph = FloatConversion(("float32", "float16"), "float64").of_graph(
        FunctionGraph(variables, results, clone=False)
    )
    found = evaluate(graph, given)
    if entry.kind == "plain":
        return list(found)
    core = [len(x.core) for x in entry.outputs]
    return [y.reshape(*shape, *y.shape[y.ndim - n :]) for y, n in zip(found, core, strict=True)]


def _is_small(type_: Type) -> bool:
    return getattr(type_, "dtype", None) in ("int8", "int16", "uint8", "uint16")


def write_vectors(one: Compiled, folder: Path) -> None:
    """Write a model of one call, and its inputs and expected outputs.

    Parameters
    ----------
    one
        The function.
    folder
        Folder to write ``model.onnx`` and ``test_data_set_0`` in.
    """
    operands = examples(one.entry, one.dtype)
    results = expected(one.entry, operands)
    model = model_of(one)
    if results is None:
        results = run(model, operands)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    kinds = ("input", operands, one.entry.inputs), ("output", results, one.entry.outputs)
    for kind, arrays, arguments in kinds:
        for i, (array, argument) in enumerate(zip(arrays, arguments, strict=True)):
            tensor = numpy_helper.from_array(
                np.asarray(array, argument.dtype_in(one.dtype), order="C"), argument.name
            )
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def run(model: onnx.ModelProto, operands: Sequence[np.ndarray]) -> Arrays:
    """Return the results of a model in ONNX Runtime, without kernels of this package."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [x.name for x in session.get_inputs()]
    return list(session.run(None, dict(zip(names, operands, strict=True))))
