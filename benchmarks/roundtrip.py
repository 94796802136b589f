"""Compare ONNX files with the files that an import and an export make of them.

``python -m benchmarks.roundtrip [--page] FILE.onnx ...``

Each file is imported, exported again and compared: values and least latency with one thread of runs
in turns in ONNX Runtime, size and nodes. The claims are the bounds of
`docs/reference/importing.md`; ``--page`` writes its table.
"""

import argparse
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from benchmarks.timing import Table, interleaved
from pytensor_onnx import PyTensorONNXError, export_onnx, from_onnx
from pytensor_onnx.exporting.files.file_verification import load, run_on_sample
from pytensor_onnx.exporting.files.optimized_files import FileComparison
from pytensor_onnx.exporting.verification.array_differences import relative_error
from pytensor_onnx.graph.file_parts import as_arrays
from pytensor_onnx.graph.model_reading import external_bytes, read_model
from pytensor_onnx.graph.traversal import operator_counts
from tests.page_parts import write_part

BOUND = 1.05
COLUMNS = ["nodes before", "after", "size", "latency", "difference"]
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "importing.md"
SECONDS = 1.5
"""Time of the runs of each file."""
TURNS = 4
"""Number of times that these are repeated, while the least times are not within the bound."""


@dataclass(frozen=True)
class Case:
    """The inputs and the sizes that a file needs for its comparison.

    Attributes
    ----------
    feed
        Function that returns the inputs; sampled ones if None.
    inputs, shapes
        Values and sizes for the import.
    """

    feed: Callable[[], dict[str, np.ndarray]] | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    shapes: Mapping[str, Any] = field(default_factory=dict)


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def _speech(**more: Any) -> dict[str, np.ndarray]:
    return {"input": 0.1 * _normal(1, 512), "state": 0.1 * _normal(2, 1, 128), **more}


def _bytes_of_a_file() -> dict[str, np.ndarray]:
    """Return this file as Magika reads files: 1024 bytes of the beginning, and of the end."""
    content = np.frombuffer(Path(__file__).read_bytes().strip(), "uint8")
    return {"bytes": np.concatenate([content[:1024], content[-1024:]])[None].astype("int32")}


def _text() -> dict[str, np.ndarray]:
    return {"x": np.arange(1, 13)[None], "mask": np.ones((1, 12), bool)}


_SIZES = {"input": (1, 512), "state": (2, 1, 128)}
_RATE = np.array(16_000)
CASES = {
    "ch_ppocr_mobile_v2.0_cls_mobile.onnx": Case(lambda: {"x": _normal(1, 3, 48, 192)}),
    "PP-OCRv5_det_mobile_infer.onnx": Case(lambda: {"x": _normal(1, 3, 64, 96)}),
    "ch_PP-OCRv4_cls_infer.onnx": Case(lambda: {"x": _normal(1, 3, 48, 192)}),
    "x100_w32full_pair.onnx": Case(lambda: {"x": _normal(2, 15, 128)}),
    "khmersm/model.onnx": Case(_text),
    "magika/models/standard_v3_3/model.onnx": Case(_bytes_of_a_file),
    "PP-OCRv6_rec_small.onnx": Case(lambda: {"x": _normal(1, 3, 48, 320)}),
    "silero_vad.onnx": Case(lambda: _speech(sr=_RATE), {"sr": _RATE}, _SIZES),
    "silero_vad_16k_op15.onnx": Case(lambda: _speech(sr=_RATE), {"sr": _RATE}, _SIZES),
    "silero_vad_half.onnx": Case(_speech, shapes=_SIZES),
}
"""Files that need sizes, or inputs that fit; by the end of the path."""


def case_of(path: Path, cases: Mapping[str, Case] = CASES) -> Case:
    """Return the inputs and sizes that a file needs."""
    return next((c for end, c in cases.items() if str(path).endswith(end)), Case())


def name_of(path: Path) -> str:
    """Return the name of a file in a table: the first folder, which is its package, and its own."""
    name = path.stem if path.is_absolute() else f"{path.parts[0]}, {path.name}"
    return name.replace("_", r"\_")


def compared(path: Path, cases: Mapping[str, Case] = CASES) -> FileComparison:
    """Import and export a file, and compare both."""
    case = case_of(path, cases)
    graph = from_onnx(path, dict(case.inputs), shapes=dict(case.shapes))
    program = export_onnx(
        graph.inputs,
        graph.outputs,
        verify=False,
        dynamic_axes=graph.dynamic_axes,
        updates=graph.updates or None,
    )
    with tempfile.TemporaryDirectory() as folder:
        files = (path, program.save(Path(folder) / "again.onnx"))
        if case.feed is None:
            drawn, _ = run_on_sample(load(str(path)), str(path))
            feed = dict(zip(drawn.names, drawn.arrays, strict=True))
        else:
            feed = case.feed()
        runs = [_run(file, feed) for file in files]
        results = [as_arrays(run()) for run in runs]
        differences = [
            float(np.mean(a != b)) if a.dtype == object else relative_error(a, b)
            for a, b in zip(results[1], results[0], strict=True)
        ]
        seconds = _least_seconds(*runs)
        models = [read_model(file) for file in files]
        nodes = [operator_counts(model).total() for model in models]
        sizes = [file.stat().st_size + external_bytes(file) for file in files]
    return FileComparison(
        seconds, (sizes[0], sizes[1]), (nodes[0], nodes[1]), max(differences, default=0.0)
    )


def _run(file: Path, feed: Mapping[str, np.ndarray]) -> Callable[[], list[Any]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    given = {value.name: feed[value.name] for value in session.get_inputs()}
    return lambda: session.run(None, given)


def _least_seconds(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    calls = {"first": first, "second": second}
    once = interleaved(calls, rounds=3, seconds=0)["first"]
    rounds = min(max(round(SECONDS / once), 10), 3000)
    best = {"first": float("inf"), "second": float("inf")}
    for _ in range(TURNS):
        found = interleaved(calls, rounds=rounds, seconds=0)
        best = {name: min(best[name], seconds) for name, seconds in found.items()}
        if best["second"] <= BOUND * best["first"]:
            break
    return best["first"], best["second"]


def measure(
    files: Sequence[Path], cases: Mapping[str, Case] = CASES, column: str = "package, file"
) -> Table:
    """Return the table of files, with the ratios of the exports to the files."""
    table = Table("Import and export", [column, *COLUMNS])
    ratios: dict[str, list[float]] = {"latency": [], "size": [], "nodes": []}
    for path in files:
        name = name_of(path)
        try:
            found = compared(path, cases)
        except (PyTensorONNXError, Fail) as error:
            print(f"{name}: {error}")
            fault = "does not run" if isinstance(error, Fail) else "not compared"
            table.rows.append([name, "", "", "", "", fault])
            continue
        pairs = {"latency": found.seconds, "size": found.bytes, "nodes": found.nodes}
        for kind, (before, after) in pairs.items():
            ratios[kind].append(after / max(before, 1e-12))
        table.rows.append(
            [
                name,
                *map(str, found.nodes),
                f"{ratios['size'][-1]:.2f}",
                f"{ratios['latency'][-1]:.2f}",
                f"{found.difference:.0e}",
            ]
        )
    for kind, values in ratios.items():
        if values:
            table.claim(f"largest ratio of {kind}", max(values), BOUND)
            table.claim(f"median ratio of {kind}", statistics.median(values), 1.0)
    return table


def write_table(table: Table, part: str) -> None:
    """Write the rows of a table into a part of the page."""
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    write_part(PAGE, part, "\n".join(lines) + "\n")


def main() -> None:
    """Measure the given files, print the table, and write it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--page", action="store_true", help="write the table into the page")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = measure(options.files)
    table.show()
    if options.page:
        write_table(table, "files")


if __name__ == "__main__":
    main()
