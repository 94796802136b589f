"""How the time of an export grows with the graph, step by step."""

import gc
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import onnx_ir as ir
import onnxruntime
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from benchmarks.timing import Table
from pytensor_onnx.conversion import convert
from pytensor_onnx.linker import ONNX
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.session import SessionOptions

SIZES = (100, 300, 1000, 3000, 10_000)
STEPS = ("rewriting", "conversion", "legaliser", "serialisation", "session")
Graph = tuple[list[Variable], list[Variable]]


def chain(n: int) -> Graph:
    """Return one elementwise operation after the other."""
    x = pt.vector("x")
    y = x
    steps = [pt.exp, lambda v: v + x, pt.sqrt, lambda v: v * x, pt.sin]
    for i in range(n):
        y = steps[i % 5](y)
    return [x], [y]


def layers(n: int) -> Graph:
    """Return a network of dense layers, six nodes each, that share eight weights."""
    x = pt.matrix("x")
    weights = [pt.matrix(f"w{i}") for i in range(8)]
    biases = [pt.vector(f"b{i}") for i in range(8)]
    h = x
    for i in range(n // 4):
        h = pt.maximum(h @ weights[i % 8] + biases[i % 8], 0)
    return [x, *weights, *biases], [h]


def residual(n: int) -> Graph:
    """Return a network of layers that each add to what they are given."""
    x = pt.matrix("x")
    weights = [pt.matrix(f"w{i}") for i in range(8)]
    h = x
    for i in range(n // 3):
        h = h + pt.maximum(h @ weights[i % 8], 0)
    return [x, *weights], [h]


def export(make: Callable[[int], Graph], n: int) -> tuple[int, int, dict[str, float]]:
    """Export a graph once; return its nodes, those of the model, and the seconds of each step."""
    graph = FunctionGraph(*make(n), clone=False)
    times = [time.perf_counter()]
    ONNX.optimizer.rewrite(graph)
    times.append(time.perf_counter())
    converted = convert(graph, opset_version=21)
    times.append(time.perf_counter())
    prepare(converted, "onnxruntime")
    times.append(time.perf_counter())
    model = ir.to_proto(converted.model).SerializeToString()
    times.append(time.perf_counter())
    onnxruntime.InferenceSession(model, SessionOptions().to_runtime())
    times.append(time.perf_counter())
    seconds = [end - start for start, end in pairwise(times)]
    return (
        len(graph.apply_nodes),
        len(converted.model.graph),
        dict(zip(STEPS, seconds, strict=True)),
    )


def measure() -> Table:
    """Time exports of graphs of growing size; the least of several rounds counts for each step."""
    sys.setrecursionlimit(100_000)
    table = Table(
        "Export time per node",
        ["graph", "PyTensor nodes", "ONNX nodes", *(f"{s}, µs" for s in STEPS), "all, µs"],
        note="Microseconds for each node of the rewritten PyTensor graph. Rewriting is PyTensor's "
        "own; session is the creation of the session in ONNX Runtime.",
    )
    for make, sizes in ((chain, SIZES), (layers, SIZES), (residual, SIZES[:3])):
        totals, conversions = {}, {}
        for n in sizes:
            best = dict.fromkeys(STEPS, float("inf"))
            export(make, 100)
            for _ in range(2 if n > 3000 else 4):
                gc.collect()
                gc.disable()
                n_nodes, n_onnx, times = export(make, n)
                gc.enable()
                best = {step: min(best[step], times[step]) for step in STEPS}
            each = {step: seconds / n_nodes * 1e6 for step, seconds in best.items()}
            totals[n], conversions[n] = sum(each.values()), each["conversion"]
            columns = [f"{each[step]:.0f}" for step in STEPS]
            table.rows.append(
                [make.__name__, str(n_nodes), str(n_onnx), *columns, f"{totals[n]:.0f}"]
            )
        first, last = sizes[0], sizes[-1]
        table.claim(
            f"{make.__name__}: time per node at {last} against {first}",
            totals[last] / totals[first],
            1.5,
        )
        table.claim(
            f"{make.__name__}: conversion against 100 µs a node",
            max(conversions.values()) / 100,
            1.0,
        )
        table.claim(
            f"{make.__name__}: conversion per node at {last} against {first}",
            conversions[last] / conversions[first],
            1.5,
        )
    return table


if __name__ == "__main__":
    measure().show()
