"""How the time of an export grows with the graph, step by step."""

import gc
import time
from collections.abc import Callable
from itertools import pairwise

import onnx_ir as ir
import onnxruntime
import pytensor.tensor as pt
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from benchmarks.timing import Table
from pytensor_onnx.conversion import ConversionOptions, convert
from pytensor_onnx.passes.defects import switched_off_optimizers
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.running.linker import ONNX
from pytensor_onnx.running.ort_optimizers import INLINE_LATE, inlines_late, needless_optimizers
from pytensor_onnx.running.session import SessionOptions
from pytensor_onnx.user_code import untraced

SIZES = (100, 300, 1000, 3000, 10_000)
STEPS = ("conversion", "legaliser", "serialisation", "session")
Graph = tuple[list[Variable], list[Variable]]


def chain(n: int) -> Graph:
    """Return a chain of elementwise operations that no rewrite changes."""
    x = pt.vector("x")
    y = x
    steps = [pt.exp, lambda v: v + x, pt.sqrt, lambda v: v * x, pt.floor]
    for i in range(n):
        y = steps[i % 5](y)
    return [x], [y]


def layers(n: int) -> Graph:
    """Return a network of dense layers that share eight weights."""
    x = pt.matrix("x")
    weights = [pt.matrix(f"w{i}") for i in range(8)]
    biases = [pt.vector(f"b{i}") for i in range(8)]
    h = x
    for i in range(n // 4):
        h = pt.maximum(h @ weights[i % 8] + biases[i % 8], 0)
    return [x, *weights, *biases], [h]


def residual(n: int) -> Graph:
    """Return a network of residual layers."""
    x = pt.matrix("x")
    weights = [pt.matrix(f"w{i}") for i in range(8)]
    h = x
    for i in range(n // 3):
        h = h + pt.maximum(h @ weights[i % 8], 0)
    return [x, *weights], [h]


def gated(n: int) -> Graph:
    """Return a chain of SiLU activations."""
    x = pt.vector("x")
    h = x
    for _ in range(n // 2):
        h = h * pt.sigmoid(h)
    return [x], [h]


def rewrite(make: Callable[[int], Graph], n: int, mode: Mode) -> tuple[FunctionGraph, float]:
    """Rewrite a graph as a compilation does, without traces; return it and the seconds."""
    graph = FunctionGraph(*make(n), clone=False)
    start = time.process_time()
    with untraced():
        mode.optimizer.rewrite(graph)
    return graph, time.process_time() - start


def export(graph: FunctionGraph) -> tuple[int, dict[str, float]]:
    """Export a rewritten graph; return the nodes of the model and the seconds of each step."""
    times = [time.process_time()]
    converted = convert(graph, ConversionOptions(opset_version=21))
    times.append(time.process_time())
    prepare(converted, "onnxruntime")
    times.append(time.process_time())
    model = ir.to_proto(converted.model).SerializeToString()
    times.append(time.process_time())
    needless = needless_optimizers(converted.model)
    options = SessionOptions(config=INLINE_LATE if inlines_late(needless) else {}).to_runtime()
    off = switched_off_optimizers("onnxruntime") + needless
    onnxruntime.InferenceSession(model, options, disabled_optimizers=off)
    times.append(time.process_time())
    seconds = [end - start for start, end in pairwise(times)]
    return len(converted.model.graph), dict(zip(STEPS, seconds, strict=True))


def measure_graph(table: Table, make: Callable[[int], Graph]) -> dict[int, float]:
    """Add the rows and claims of a kind of graph to a table; return the µs of rewriting a node."""
    name = make.__name__
    rewriting, ours, conversion = {}, {}, []
    for n in SIZES:
        rewriting[n] = float("inf")
        for _ in range(3):
            graph, seconds = rewrite(make, n, ONNX)
            rewriting[n] = min(rewriting[n], seconds / len(graph.apply_nodes) * 1e6)
        best = dict.fromkeys(STEPS, float("inf"))
        for _ in range(5):
            gc.collect()
            gc.disable()
            n_onnx, times = export(graph)
            gc.enable()
            best = {step: min(best[step], times[step]) for step in STEPS}
        each = {step: seconds / len(graph.apply_nodes) * 1e6 for step, seconds in best.items()}
        ours[n] = sum(each.values())
        conversion.append(each["conversion"])
        columns = [rewriting[n], *each.values(), rewriting[n] + ours[n]]
        table.rows.append(
            [name, str(len(graph.apply_nodes)), str(n_onnx), *(f"{c:.0f}" for c in columns)]
        )
    few, many = SIZES[0], SIZES[-1]
    table.claim(f"{name}: conversion against 100 µs a node", max(conversion) / 100, 1)
    table.claim(
        f"{name}: conversion to session, per node at {many} against {few}",
        ours[many] / ours[few],
        1.5,
    )
    table.claim(
        f"{name}: PyTensor's rewriting too, per node at {many} against {few}",
        (ours[many] + rewriting[many]) / (ours[few] + rewriting[few]),
        1.5,
    )
    return rewriting


def measure() -> Table:
    """Time exports of graphs of growing size; the least of several rounds counts for each step."""
    table = Table(
        "Export time per node, in µs",
        [
            "graph",
            "nodes",
            "in ONNX",
            *("rewriting", *STEPS, "all"),
        ],
        note="Processor time for each node of the rewritten PyTensor graph, which other work on "
        "the machine disturbs less than wall time. Rewriting is mostly PyTensor's; session is the "
        "creation of the session in ONNX Runtime. In `chain` no rewrite applies. The canonical "
        "form of `residual` is a sum of all layers, that of `gated` a product: PyTensor takes a "
        "time for it that is quadratic or worse, so that rewrites of ours stop at results that are "
        "used elsewhere. In `gated` each sigmoid is the call of a function, which ONNX Runtime "
        "opens at load: the largest becomes 40,000 nodes, all of whose names it goes through for "
        "each call. Our sessions leave out its `ConstantSharing`, which is quadratic in the uses "
        "of a constant.",
    )
    export(rewrite(layers, 100, ONNX)[0])
    rewriting = {make: measure_graph(table, make) for make in (chain, layers, residual, gated)}
    for n, bound in ((1000, 300), (10_000, 500)):
        each = rewriting[layers][n] / bound
        table.claim(f"layers of {n}: rewriting against {bound} µs a node", each, 1)
    numba = get_mode("NUMBA").excluding("inplace")
    times = {mode: min(rewrite(layers, 1000, mode)[1] for _ in range(3)) for mode in (ONNX, numba)}
    table.claim(
        "layers of 1000: rewriting for mode ONNX against mode NUMBA", times[ONNX] / times[numba], 1
    )
    return table


if __name__ == "__main__":
    measure().show()
