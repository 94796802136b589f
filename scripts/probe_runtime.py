"""Measure which operators a runtime runs right, and write its kernel table.

    python scripts/probe_runtime.py openvino
    python scripts/probe_runtime.py onnxruntime==1.18.1 onnxruntime==1.20.1

Runtimes of other makers are the installed ones; uv installs the versions of ONNX Runtime, whose
table has the kernels that all of them share, and the name of the first. Shapes, axes and other
parameters are constants, as they are in most files. A dtype counts as right where the model loads,
runs and returns the results of the installed ONNX Runtime, or of the standard's evaluator where it
has no kernel. Floats have digits that float32 loses. The table lists apart the dtypes with other
results, and the errors of elementwise operators over their whole domain.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx.reference import ReferenceEvaluator
from probe_kernels import TABLES, Table, _without_equal_variants
from probe_models import DTYPES, Trial, trials

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.runtimes.operator_accuracy import measure, write_table
from tests.runtimes.results import run_files

OPSETS = range(18, 25)
WIDE = [d for d in DTYPES if d.bitwidth >= 32 or d.name == "BOOL"]
"""Dtypes that runtimes of other makers are probed with."""
_OF_WORDS = ("Add", "Sub", "Mul", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
_CONSTANTS_OF = (
    *(
        "BatchNormalization",
        "CenterCropPad",
        "Col2Im",
        "ConstantOfShape",
        "CumProd",
        "CumSum",
        "Expand",
        "OneHot",
        "Pad",
    ),
    *("Reduce", "Reshape", "Slice", "Split", "Squeeze", "Tile", "TopK", "Trilu", "Unsqueeze"),
)
"""Operators, by the beginnings of their names, whose operands of int64 are parameters."""
_LOST = 1 + 2.0**-40
"""Factor of values in float64, which float32 rounds to one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runtime", nargs="+", help="openvino, tract, or onnxruntime==1.18.1 …")
    parser.add_argument("--only", help="print why trials of this operator fail")
    arguments = parser.parse_args()
    names = arguments.runtime
    is_foreign = not names[0].startswith("onnxruntime==")
    dtypes = WIDE if is_foreign else DTYPES
    chosen = [
        t
        for t in trials(OPSETS)
        if t.dtype in dtypes
        if not is_foreign or _is_first(t)
        if not arguments.only or t.key.startswith(arguments.only)
        if not (names == ["tract"] and _multiplies_vectors(t))
    ]
    versions, answers = [], {}
    with tempfile.TemporaryDirectory() as folder:
        known = [n for n, t in enumerate(chosen) if _write(t, Path(folder), n, dtypes)]
        for name in names:
            version, found = run_files(name, list(map(str, known)), Path(folder))
            versions.append(version)
            answers = {n: answers.get(n) or found[str(n)] for n in known}
    results = [(chosen[n], answers[n]) for n in known]
    if arguments.only:
        for trial, answer in results:
            print(trial.key, trial.dtype.name, trial.opset, answer or "right")
        return
    path = TABLES / f"kernels_{_stem(names[0])}.json"
    path.write_text(render(names[0].partition("==")[0], versions, dtypes, results))
    write_table(_stem(names[0]), measure(names[0]))


def _stem(name: str) -> str:
    """Return the end of a table's name: ``onnxruntime_1_18`` for version 1.18.1."""
    runtime, _, version = name.partition("==")
    return "_".join([runtime, *version.split(".")[:2]]).rstrip("_")


def _is_first(trial: Trial) -> bool:
    """Return whether an opset changes the operator of a trial, or is the first one.

    All opsets have Identity, to find the last one that a runtime loads.
    """
    op_type = trial.key.partition("[")[0]
    if trial.opset == OPSETS.start or op_type == "Identity":
        return True
    return onnx.defs.get_schema(op_type, trial.opset).since_version == trial.opset


def _write(trial: Trial, folder: Path, number: int, dtypes: Sequence[ir.DataType]) -> bool:
    """Write a trial and its expected results to files; return whether they are known."""
    inputs = {k: _edge(v, trial.key) for k, v in trial.inputs.items()}
    proto = onnx.load_from_string(trial.model)
    _keep_probed_casts(proto.graph, dtypes)
    _return_floats(proto.graph)
    if trial.key.startswith(_CONSTANTS_OF):
        _store_parameters(proto.graph, inputs)
    model = proto.SerializeToString()
    results = _expected(model, inputs)
    if results is None:
        return False
    Path(folder, f"{number}.onnx").write_bytes(model)
    np.savez(folder / f"{number}.npz", **inputs)
    np.savez(folder / f"{number}.wanted.npz", **results)
    return True


def _multiplies_vectors(trial: Trial) -> bool:
    """Return whether a trial multiplies two vectors, which the table of defects treats."""
    return trial.key == "MatMul" and all(x.ndim == 1 for x in trial.inputs.values())


def _store_parameters(graph: onnx.GraphProto, inputs: dict[str, np.ndarray]) -> None:
    """Make the operands of int64 constants, but for the first of an operator that has a dtype."""
    op_type = graph.node[0].op_type
    for value in list(graph.input):
        is_parameter = inputs[value.name].dtype == np.int64 or op_type == "BatchNormalization"
        if is_parameter and (op_type == "ConstantOfShape" or value.name != "x0"):
            array = inputs.pop(value.name)
            graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
            graph.input.remove(value)


def _return_floats(graph: onnx.GraphProto) -> None:
    """Cast sizes, and numbers of their dtype, to another one: tract does not return symbols."""
    to = onnx.TensorProto.FLOAT
    for node in [n for n in graph.node if n.op_type in ("Cast", "CastLike", "Shape", "Size")]:
        (value,) = (v for v in graph.output if v.name == node.output[0])
        if value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            name = f"{value.name}_number"
            graph.node.append(onnx.helper.make_node("Cast", [value.name], [name], to=to))
            graph.output.remove(value)
            graph.output.append(onnx.helper.make_tensor_value_info(name, to, None))


def _keep_probed_casts(graph: onnx.GraphProto, dtypes: Sequence[ir.DataType]) -> None:
    """Drop the casts to dtypes that are not probed."""
    probed = {int(dtype) for dtype in dtypes}
    dropped = [
        node
        for node in graph.node
        if node.op_type == "Cast" and not {a.i for a in node.attribute} <= probed
    ]
    names = {node.output[0] for node in dropped}
    for node in dropped:
        graph.node.remove(node)
    for value in [value for value in graph.output if value.name in names]:
        graph.output.remove(value)


def _edge(array: np.ndarray, key: str) -> np.ndarray:
    """Return values that a narrower dtype does not hold.

    Words of random generators have all bits. Signed integers are sizes and positions.
    """
    if array.dtype == np.float64:
        return array * _LOST
    if array.dtype.kind == "u" and key.startswith(_OF_WORDS):
        return array + array.dtype.type(2 ** (8 * array.dtype.itemsize - 1) - 16)
    return array


def _expected(model: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    proto = onnx.load_from_string(model)
    names = [output.name for output in proto.graph.output]
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        values = onnxruntime.InferenceSession(model, options).run(None, inputs)
    except Exception:
        try:
            values = ReferenceEvaluator(proto).run(None, inputs)
        except Exception:
            return None
    if not all(isinstance(value, np.ndarray | np.generic) for value in values):
        return None
    return dict(zip(names, map(np.asarray, values), strict=True))


def tabulate(
    results: Iterable[tuple[Trial, str]], opsets: range, dtypes: Sequence[ir.DataType], counts
) -> Table:
    """Collect, by row and opset, the dtypes whose answers count."""
    places: dict[tuple, list[str]] = {}
    for trial, answer in results:
        for key in {trial.key, trial.key.split("[")[0]}:
            places.setdefault((key, trial.opset, trial.dtype), []).append(answer)
    table: Table = {}
    for key in sorted({key for key, _, _ in places}):
        table[key] = {}
        for opset in (o for o in opsets if any((key, o, d) in places for d in dtypes)):
            found = [
                d.numpy().name
                for d in dtypes
                if (key, opset, d) in places and counts(places[key, opset, d])
            ]
            if found != next(reversed(table[key].values()), []):
                table[key][opset] = found
    return _without_equal_variants(table)


def render(
    runtime: str,
    versions: list[str],
    dtypes: Sequence[ir.DataType],
    results: Sequence[tuple[Trial, str]],
) -> str:
    """Lay the table out with one operator on a line, up to the last opset that is known."""
    opsets = range(OPSETS.start, 1 + max(t.opset for t, answer in results if not answer))
    right = tabulate(results, opsets, dtypes, lambda answers: not any(answers))
    wrong = tabulate(results, opsets, dtypes, lambda a: any(x.startswith("wrong") for x in a))
    head = {
        "runtime": runtime,
        "versions": versions,
        "opsets": [opsets.start, opsets.stop - 1],
        "dtypes": " ".join(d.numpy().name for d in dtypes),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for name, table in (("kernels", right), ("wrong", {k: row for k, row in wrong.items() if row})):
        rows = (
            f"  {json.dumps(key)}: {json.dumps({o: ' '.join(row[o]) for o in row})}"
            for key, row in table.items()
        )
        lines.append(f"{json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
