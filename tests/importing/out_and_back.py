"""Export random graphs of the fuzzer, import the models again, and compare values and nodes.

python -m tests.importing.out_and_back --graphs 60 --seed 1
"""

import argparse
import itertools
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import shake_256
from typing import Any

import numpy as np
import pytensor
from hypothesis import HealthCheck, given, settings

from pytensor_onnx import ONNXProgram, PyTensorONNXError, export_onnx, from_onnx
from tests.fuzz.cases import Case
from tests.fuzz.quietness import quiet
from tests.fuzz.run import LENGTH
from tests.fuzz.strategy import cases


@dataclass(frozen=True)
class Return:
    """What comes back of a model: a verdict with its reason, and the numbers of nodes."""

    verdict: str
    reason: str = ""
    nodes: int = 0
    nodes_again: int = 0


def returned(program: ONNXProgram, arguments: list[Any]) -> Return:
    """Import a model, compare its values in mode ONNX, and export it again."""
    try:
        graph = from_onnx(program)
    except PyTensorONNXError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        reasons = [f"{lines[1]} {line}" for line in lines if line.startswith("reason:")]
        return Return("refused", (reasons or lines)[0])
    try:
        expected = program(*arguments)
    except Exception:
        return Return("fails in both")
    expected = expected if isinstance(expected, list | tuple) else [expected]
    try:
        function = pytensor.function(
            graph.inputs, graph.outputs, mode="ONNX", on_unused_input="ignore"
        )
        found = function(*arguments)
    except Exception as error:
        return Return("wrong", f"{type(error).__name__}: {str(error).splitlines()[0]}")
    for a, b in zip(found, expected, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return Return("wrong", f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}")
        if not np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True):
            return Return("wrong", f"{a.reshape(-1)[:3]} instead of {b.reshape(-1)[:3]}")
    again = export_onnx(graph.inputs, graph.outputs, verify=False, updates=graph.updates or None)
    return Return("right", "", len(program.model.graph), len(again.model.graph))


def random_programs(graphs: int, seed: int) -> Iterator[tuple[Case, ONNXProgram]]:
    """Yield exported random graphs without states."""
    drawn: list[Case] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases())
    def draw(case: Case) -> None:
        if case.outputs and not case.updates and not case.graph.generators:
            drawn.append(case)

    yielded = 0
    for number in itertools.count():
        with quiet():
            data = shake_256(f"{seed} {number}".encode()).digest(LENGTH)
            draw.hypothesis.fuzz_one_input(data)
        for case in drawn:
            inputs = [t.variable for t in case.graph.inputs]
            outputs = [t.variable for t in case.outputs]
            try:
                program = export_onnx(inputs, outputs, verify=False)
            except Exception:
                continue
            yield case, program
            yielded += 1
            if yielded == graphs:
                return
        drawn.clear()


def main() -> None:
    """Print the counts, the reasons and the ratio of nodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for case, program in random_programs(options.graphs, options.seed):
        result = returned(program, case.arguments)
        found.append(result)
        is_larger = result.nodes_again > 1.05 * result.nodes
        if result.verdict not in ("right", "fails in both") or is_larger:
            print(result, flush=True)
    right = [r for r in found if r.verdict == "right"]
    total, again = sum(r.nodes for r in right), sum(r.nodes_again for r in right)
    print(f"{dict(Counter(r.verdict for r in found))}; nodes {total} and {again}")


if __name__ == "__main__":
    main()
