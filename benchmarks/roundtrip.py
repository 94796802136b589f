"""Compare ONNX files with the files that an import and an export make of them.

``python -m benchmarks.roundtrip FILE.onnx ...``

Each file is imported, exported again and compared: values on sampled inputs in ONNX Runtime, least
latency with one thread of runs in turns, size and nodes. The claims are the bounds of
`docs/reference/importing.md`.
"""

import argparse
import statistics
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.timing import Table
from pytensor_onnx import PyTensorONNXError, export_onnx, from_onnx
from pytensor_onnx.exporting.files.optimized_files import FileComparison, compare_optimized

BOUND = 1.05
COLUMNS = ["file", "nodes before", "nodes after", "size", "latency", "difference"]


def compared(path: Path) -> FileComparison:
    """Import and export a file, and compare both."""
    graph = from_onnx(path)
    program = export_onnx(
        graph.inputs,
        graph.outputs,
        verify=False,
        dynamic_axes=graph.dynamic_axes,
        updates=graph.updates or None,
    )
    with tempfile.TemporaryDirectory() as folder:
        return compare_optimized(path, program.save(Path(folder) / "again.onnx"), seconds=1.0)


def measure(files: Sequence[Path]) -> Table:
    """Return the table of files, with the ratios of the exports to the files."""
    table = Table("Import and export", COLUMNS)
    ratios: dict[str, list[float]] = {"latency": [], "size": [], "nodes": []}
    for path in files:
        try:
            found = compared(path)
        except PyTensorONNXError as error:
            table.rows.append([path.name, "", "", "", "", str(error).splitlines()[0]])
            continue
        pairs = {"latency": found.seconds, "size": found.bytes, "nodes": found.nodes}
        for name, (before, after) in pairs.items():
            ratios[name].append(after / max(before, 1e-12))
        difference = "" if found.difference is None else f"{found.difference:.0e}"
        table.rows.append(
            [
                path.name,
                *map(str, found.nodes),
                f"{ratios['size'][-1]:.2f}",
                f"{ratios['latency'][-1]:.2f}",
                difference,
            ]
        )
    for name, values in ratios.items():
        if values:
            table.claim(f"largest ratio of {name}", max(values), BOUND)
            table.claim(f"median ratio of {name}", statistics.median(values), 1.0)
    return table


def main() -> None:
    """Measure the given files, print the table, and print it as text for the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = measure(options.files)
    table.show()
    print(table.markdown())


if __name__ == "__main__":
    main()
