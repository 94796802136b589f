"""Records the tests' comparisons, for the coverage table: see ``scripts/make_coverage.py``.

Recording is on where the environment variable `FOLDER` names a folder. Every test session leaves
one JSON file there.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.type import HasDataType
from pytensor.tensor.basic import Choose
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.optimize import ScipyWrapperOp
from pytensor.tensor.random.op import RandomVariable

from pytensor_onnx import ONNXProgram
from pytensor_onnx.cli.coverage import NO_OPERATOR, REWRITTEN, SEVERAL, name_of

FOLDER = "PYTENSOR_ONNX_COVERAGE"
WITHIN = "as the operation within, or as a function of it"
_DTYPES = r"(_(bool|u?int\d+|float\d+))+"
_DTYPE_SUFFIX = re.compile(rf"{_DTYPES}(_in_blocks|_batch\d+)?(_\d+)?$|_\d+$")

_records: dict[str, dict[str, Any]] = defaultdict(
    lambda: {
        "dtypes": set(),
        "ranks": set(),
        "shapes": set(),
        "lowering": set(),
        "error": {},
        "tests": set(),
    }
)


def record(
    program: ONNXProgram, found: Sequence[Any], expected: Sequence[Any], atol: float = 0.0
) -> None:
    """Record the evidence of a comparison that has passed, if recording is on.

    Errors within the absolute tolerance do not count: the rest of numbers that cancel may be
    off by half of itself.
    """
    if FOLDER not in os.environ:
        return
    emitted = _emitted_nodes(program)
    kept: set[str] = set()
    for node in _nodes(program.conversion.rewritten.toposort()):
        lowering = _lowering(emitted.get(str(node.op), set()))
        for op in _recorded_ops(node.op):
            kept.add(name_of(type(op)))
            within = isinstance(op, Elemwise | Blockwise | OpFromGraph)
            _record_node(op, node, WITHIN if within else lowering)
    for node in _nodes(program.conversion.reference.toposort()):
        for op in _recorded_ops(node.op):
            if name_of(type(op)) not in kept:
                _record_node(op, node, REWRITTEN)
    for variable, a, b in zip(program.conversion.rewritten.outputs, found, expected, strict=False):
        node = variable.owner
        if node is not None and all(v.owner is None for v in node.inputs):
            for op in _recorded_ops(node.op):
                _record_error(name_of(type(op)), np.asarray(a), np.asarray(b), atol)


def record_rewritten(outputs: Sequence[Variable]) -> None:
    """Note that choices, draws, searches and operations on complex and sparse values were compared.

    The graph of a program has none of them any more: they are rewritten before all else.
    """
    if FOLDER in os.environ:
        for node in FunctionGraph(outputs=outputs, clone=True).toposort():
            dtypes = [str(getattr(v.type, "dtype", "")) for v in (*node.inputs, *node.outputs)]
            is_complex = any(dtype.startswith("complex") for dtype in dtypes)
            is_sparse = type(node.op).__module__.startswith("pytensor.sparse")
            if (
                isinstance(node.op, Choose | RandomVariable | ScipyWrapperOp)
                or is_complex
                or is_sparse
            ):
                for op in _recorded_ops(node.op):
                    _record_node(op, node, REWRITTEN)


def write() -> None:
    """Write the records to the folder."""
    if FOLDER in os.environ and _records:
        content = {
            name: {key: sorted(v) if isinstance(v, set) else v for key, v in entry.items()}
            for name, entry in _records.items()
        }
        folder = Path(os.environ[FOLDER])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{os.getpid()}.json"
        path.write_text(json.dumps(content))


def _nodes(nodes: Sequence[Apply]) -> Iterator[Apply]:
    """Yield nodes, and those of the graphs within them."""
    for node in nodes:
        yield node
        op = node.op.scalar_op if isinstance(node.op, Elemwise) else node.op
        if isinstance(op, HasInnerGraph):
            yield from _nodes(op.fgraph.toposort())


def _recorded_ops(op: Op) -> list[Op]:
    """Return the Op and the Op that it applies to every element or in every batch."""
    if isinstance(op, Elemwise):
        return [op, op.scalar_op]
    return [op, op.core_op] if isinstance(op, Blockwise) else [op]


def _emitted_nodes(program: ONNXProgram) -> dict[str, set[tuple[str, str]]]:
    """Return, for each Op by its text, the domains and types of the operators it became."""
    emitted: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for graph in (program.model.graph, *program.model.functions.values()):
        for node in graph.all_nodes():
            if "pytensor.op" in node.metadata_props:
                emitted[node.metadata_props["pytensor.op"]].add((node.domain, node.op_type))
    return emitted


def _lowering(operators: set[tuple[str, str]]) -> str:
    if not operators:
        return NO_OPERATOR
    besides_casts = {(domain, name) for domain, name in operators if name != "Cast"} or operators
    if len(besides_casts) > 1:
        return SEVERAL
    [(domain, name)] = besides_casts
    return f"function {_DTYPE_SUFFIX.sub('', name)}" if domain else f"operator {name}"


def _record_node(op: Op, node: Apply, lowering: str) -> None:
    entry = _records[name_of(type(op))]
    tensors = [v for v in (*node.inputs, *node.outputs) if isinstance(v.type, HasDataType)]
    inputs = [v for v in tensors if v in node.inputs and not isinstance(v, Constant)] or tensors
    entry["dtypes"].update(v.type.dtype for v in inputs)
    entry["ranks"].update(getattr(v.type, "ndim", 0) for v in inputs[:1])
    shapes = [getattr(v.type, "shape", ()) for v in inputs]
    entry["shapes"].add("dynamic" if any(None in shape for shape in shapes) else "static")
    entry["lowering"].add(lowering)
    entry["tests"].add(os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[0])


def _record_error(name: str, found: np.ndarray, expected: np.ndarray, atol: float) -> None:
    dtype = str(expected.dtype)
    if expected.dtype.kind != "f":
        return
    with np.errstate(all="ignore"):
        known = np.isfinite(expected) & (np.abs(expected) >= np.finfo(dtype).tiny)
        beyond = np.maximum(np.abs(found.astype("f8") - expected) - atol, 0)
        errors = beyond[known] / np.abs(expected.astype("f8"))[known]
    largest = float(np.max(errors, initial=0.0))
    errors_of_op = _records[name]["error"]
    errors_of_op[dtype] = max(largest, errors_of_op.get(dtype, 0.0))
