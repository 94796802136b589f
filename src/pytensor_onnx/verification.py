"""Comparison of an exported model with PyTensor: the first node that diverges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir
import pytensor
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.link.basic import PerformLinker

from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.inference import dims_of
from pytensor_onnx.session import Session
from pytensor_onnx.user_code import user_line

if TYPE_CHECKING:
    from pytensor_onnx.program import ONNXProgram

RELATIVE_TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2}
SAMPLE_SIZES = (3, 2, 5, 4, 1)
_LARGEST_CHECKED = 2**31 - 2**20


def verify_program(
    program: ONNXProgram,
    inputs: Sequence[Any] | None,
    state: Mapping[str, np.ndarray] | None = None,
) -> str:
    """Verify a program and return one sentence on what was verified.

    Raises
    ------
    VerificationError
        If the model is refused or computes something else than PyTensor.
    """
    _check_model(program)
    given = inputs is not None
    samples: Iterable[list[np.ndarray]] = sampled_inputs(program.inputs)
    if inputs is not None:
        samples = [program._check(inputs)]
    states = [(state or {}).get(s.name, s.value) for s in program._states]
    reason = "no inputs to sample"
    for sample in samples:
        arrays = [*sample, *states]
        try:
            expected = evaluate(program._reference, arrays)
        except Exception as error:
            if given:
                raise VerificationError(
                    f"PyTensor itself fails on these inputs: {error}"
                ) from error
            reason = str(error).splitlines()[0]
            continue
        _compare(program, arrays, expected)
        shapes = ", ".join(
            f"{v.name} {list(a.shape)}" for v, a in zip(program.inputs, sample, strict=True)
        )
        kind = "given" if given else "sampled"
        return f"checked, loaded and equal to PyTensor on {kind} inputs ({shapes or 'none'})"
    return (
        "checked and loaded, but not compared: PyTensor fails on all sampled inputs "
        f"({reason}); give example_inputs to compare on"
    )


def _check_model(program: ONNXProgram) -> None:
    from pytensor_onnx.program import weight_bytes

    if weight_bytes(program.model) > _LARGEST_CHECKED:
        return
    try:
        onnx.checker.check_model(program.proto, full_check=True)
        _ = program.session
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise VerificationError(f"the ONNX checker refuses the model: {error}") from error
    except PyTensorONNXError as error:
        raise VerificationError(str(error)) from error


def sampled_inputs(inputs: Sequence[ir.Value]) -> Iterator[list[np.ndarray]]:
    """Yield several sets of arrays that fit the inputs of a model."""
    for attempt in range(len(SAMPLE_SIZES) + 1):
        rng = np.random.default_rng(attempt)
        sizes: dict[str, int] = {}
        arrays = []
        for value in inputs:
            shape = []
            for dim in dims_of(value) or ():
                if isinstance(dim, int):
                    shape.append(dim)
                else:
                    default = 4 if attempt else SAMPLE_SIZES[len(sizes) % len(SAMPLE_SIZES)]
                    shape.append(sizes.setdefault(str(dim), default + max(attempt - 1, 0)))
            arrays.append(_sample(rng, value, tuple(shape)))
        yield arrays


def _sample(rng: np.random.Generator, value: ir.Value, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype("float64") if value.dtype is None else value.dtype.numpy()
    if dtype.kind == "f":
        return np.asarray(rng.normal(size=shape), dtype=dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, size=shape), dtype=dtype)
    return np.asarray(rng.integers(0, 2, size=shape), dtype=dtype)


def evaluate(fgraph: FunctionGraph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluate a graph with PyTensor's own Python implementations, as it is written."""
    storage = evaluate_all(fgraph, inputs)
    return [np.asarray(storage[variable]) for variable in fgraph.outputs]


def evaluate_all(fgraph: FunctionGraph, inputs: Sequence[np.ndarray]) -> dict[Variable, Any]:
    """Return the value of every variable of a graph."""
    graph, equivalent = fgraph.clone_get_equiv(check_integrity=False)
    linker = PerformLinker(allow_gc=False).accept(graph)
    storage_in = [[np.array(array)] for array in inputs]
    # Inner graphs of Ops would be compiled by a C compiler otherwise.
    with pytensor.config.change_flags(cxx=""), np.errstate(all="ignore"):
        run, _, _, _, _ = linker.make_all(input_storage=storage_in)
        run()
    return {v: run.storage_map[w][0] for v, w in equivalent.items() if w in run.storage_map}


def _compare(
    program: ONNXProgram, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> None:
    names = [str(v.name) for v in program.model.graph.inputs]
    feed = dict(zip(names, arrays, strict=True))
    found = program.session.run(feed)
    for value, a, b in zip(program.model.graph.outputs, found, expected, strict=True):
        difference = disagreement(a, b)
        if difference:
            raise VerificationError(
                f"output {value.name!r} differs from PyTensor: {difference}.\n"
                f"{_first_divergence(program, feed)}"
            )


def disagreement(found: np.ndarray, expected: np.ndarray) -> str:
    """Return in what two arrays differ beyond rounding, an empty text where they agree.

    Examples
    --------
    >>> disagreement(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    ''
    >>> disagreement(np.array([1.0]), np.array([1.5]))
    'largest difference 0.5 (found 1.0, expected 1.5 at [0])'
    """
    if found.dtype != expected.dtype:
        return f"dtype {found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    if not found.size:
        return ""
    if found.dtype.kind != "f":
        differs = found != expected
        if not differs.any():
            return ""
    else:
        with np.errstate(all="ignore"):
            relative = RELATIVE_TOLERANCE[str(found.dtype)]
            finite = np.abs(expected[np.isfinite(expected)])
            scale = float(finite.max()) if finite.size else 0.0
            close = np.isclose(
                found, expected, rtol=relative, atol=relative * scale, equal_nan=True
            )
        if close.all():
            return ""
        differs = ~close
    position = np.unravel_index(np.argmax(differs), found.shape)
    a, b = found[position], expected[position]
    with np.errstate(all="ignore"):
        largest = np.nanmax(
            np.abs(np.where(differs, found.astype("f8") - expected.astype("f8"), 0))
        )
    where = [int(i) for i in position]
    return f"largest difference {largest:.3g} (found {a}, expected {b} at {where})"


def _first_divergence(program: ONNXProgram, feed: Mapping[str, np.ndarray]) -> str:
    """Return a sentence on the first node whose results differ, in the order of computation."""
    expected = evaluate_all(program._rewritten, list(feed.values()))
    nodes = program._rewritten.toposort()
    found = _intermediate_values(program, nodes, feed)
    for node in nodes:
        for variable in node.outputs:
            value = program._values.get(variable)
            if value is None or value.name not in found or variable not in expected:
                continue
            difference = disagreement(found[value.name], np.asarray(expected[variable]))
            if difference:
                line = user_line(variable)
                made = f", made at {line}" if line else ""
                return (
                    f"The first node that diverges is {value.name!r}, which computes {node.op}"
                    f"{made}: {difference}."
                )
    return (
        "No single node diverges from PyTensor's own value of it: the rewrites before the "
        "conversion changed the result."
    )


def _intermediate_values(
    program: ONNXProgram, nodes: Sequence[Apply], feed: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Run the model with every value that stands for a PyTensor variable as an output."""
    model = ir.from_proto(program.proto)
    known = {v.name: v for node in model.graph for v in node.outputs}
    outputs = {v.name for v in model.graph.outputs}
    wanted = [
        program._values[v].name for node in nodes for v in node.outputs if v in program._values
    ]
    for name in dict.fromkeys(wanted):
        if name in known and name not in outputs:
            model.graph.outputs.append(known[name])
    session = Session(model, options=program.session_options)
    return dict(zip(session.output_names, session.run(feed), strict=True))
