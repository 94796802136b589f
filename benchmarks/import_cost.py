"""Measure the cost of imports: ``python -m benchmarks.import_cost [--page] FILE.onnx ...``.

``--page`` writes the table of docs/reference/importing.md.
"""

import argparse
import gc
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.roundtrip import CASES, Case, case_of, name_of, write_table
from benchmarks.timing import Table
from pytensor_onnx import from_onnx
from pytensor_onnx.graph.model_reading import read_model
from pytensor_onnx.graph.traversal import operator_counts

BOUND = 0.3
"""Milliseconds a node."""
FEWEST = 30
"""Nodes below which the reading of a file takes most of the time."""
REPEATS = 5


def seconds_of(file: Path, case: Case) -> float:
    """Return the least processor time of an import."""
    times = []
    for _ in range(REPEATS):
        gc.collect()
        start = time.process_time()
        from_onnx(file, dict(case.inputs), shapes=dict(case.shapes))
        times.append(time.process_time() - start)
    return min(times)


def measure(files: Sequence[Path], cases: Mapping[str, Case] = CASES) -> Table:
    """Return the table of files with nodes, milliseconds, and milliseconds a node."""
    table = Table("Cost of an import", ["package, file", "nodes", "ms", "ms a node"])
    largest = 0.0
    for file in files:
        count = operator_counts(read_model(file)).total()
        cost = 1000 * seconds_of(file, case_of(file, cases))
        each = f"{cost / count:.2f}" if count >= FEWEST else ""
        largest = max(largest, cost / count if each else 0.0)
        table.rows.append([name_of(file), f"{count:,}", f"{cost:.0f}", each])
    table.claim(f"largest time a node of files of at least {FEWEST} nodes", largest, BOUND)
    return table


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
        write_table(table, "cost")


if __name__ == "__main__":
    main()
