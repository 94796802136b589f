"""Measure the cost of imports: ``python -m benchmarks.import_cost FILE.onnx ...``."""

import argparse
import gc
import time
import warnings
from pathlib import Path

from pytensor_onnx import from_onnx
from pytensor_onnx.graph.model_reading import read_model
from pytensor_onnx.graph.traversal import operator_counts

BOUND = 0.3
"""Milliseconds a node."""
REPEATS = 3


def seconds_of(file: Path) -> float:
    """Return the least processor time of an import."""
    times = []
    for _ in range(REPEATS):
        gc.collect()
        start = time.process_time()
        from_onnx(file)
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print nodes, seconds and milliseconds a node of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    warnings.simplefilter("ignore")
    for file in parser.parse_args().files:
        count = operator_counts(read_model(file)).total()
        cost = seconds_of(file)
        each = 1000 * cost / count
        verdict = "holds" if each <= BOUND else "fails"
        print(f"{file.name}: {count} nodes, {cost:.3f} s, {each:.2f} ms a node, {verdict}")


if __name__ == "__main__":
    main()
