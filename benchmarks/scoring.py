"""Tables scored by a Scorer beside a bare session, and summaries of draws, with one thread."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytensor.tensor as pt

from benchmarks.timing import Table, interleaved
from pytensor_onnx import ONNXProgram, export_onnx
from pytensor_onnx.pymc import posterior
from pytensor_onnx.scoring import Scorer

ROWS, FEATURES, DRAWS = 10_000, 64, 200
NAMES = [f"feature_{i}" for i in range(FEATURES)]


def _network(*widths: int) -> ONNXProgram:
    """Return a network of rectified layers with one output."""
    rng = np.random.default_rng(1)
    x = h = pt.matrix("x", shape=(None, FEATURES), dtype="float32")
    for width in widths:
        size = h.type.shape[1]
        h = pt.maximum(h @ pt.constant(rng.normal(size=(size, width)).astype("float32")), 0)
    return _program(x, {"y": h.sum(axis=1)})


def _predictor() -> ONNXProgram:
    """Return the mean and the interval of the draws of a regression with a logarithmic link."""
    x = pt.matrix("x", shape=(None, FEATURES), dtype="float32")
    slopes = np.random.default_rng(1).normal(0, 0.1, (FEATURES, DRAWS)).astype("float32")
    draws = pt.exp(pt.constant(slopes).T @ x.T)
    mean, ends = posterior.mean(draws), posterior.highest_density_interval(draws, DRAWS)
    return _program(x, {"mean": mean, "ends": ends})


def _program(x: Any, outputs: Mapping[str, Any]) -> ONNXProgram:
    axes, names = {"x": {0: "row"}}, {"x": NAMES}
    return export_onnx([x], outputs, dynamic_axes=axes, feature_names=names, verify=False)


MODELS: dict[str, Callable[[], ONNXProgram]] = {
    "a layer of 32": lambda: _network(32),
    "layers of 256 and 128": lambda: _network(256, 128),
    "200 draws, mean and HDI": _predictor,
}


def _bare(program: ONNXProgram, x: np.ndarray) -> Callable[[], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(program.proto.SerializeToString(), options)
    return lambda: session.run(None, {"x": x})


def measure(rounds: int = 40) -> Table:
    """Time tables of 10,000 rows and 64 columns of each kind, which a bare session gets as one."""
    import pandas
    import pyarrow

    table = Table(
        "Scoring of tables",
        ["model", "bare session, rows/s", "matrix", "columns", "float64", "pandas", "Arrow"],
        note=f"{ROWS} rows of {FEATURES} columns of float32, with one thread. A bare session gets "
        "one matrix; of a Scorer the rows/s divided by those of the bare session, for a matrix, "
        "for a dict of columns of float32 and of float64, and for tables of float32.",
    )
    x = np.random.default_rng(2).normal(size=(ROWS, FEATURES)).astype("float32")
    columns = dict(zip(NAMES, np.ascontiguousarray(x.T), strict=True))
    given = {
        "matrix": x,
        "columns": columns,
        "float64": {name: column.astype("float64") for name, column in columns.items()},
        "pandas": pandas.DataFrame(columns),
        "Arrow": pyarrow.RecordBatch.from_pydict(columns),
    }
    for name, model in MODELS.items():
        program = model()
        scorer = Scorer(program.proto.SerializeToString())
        calls = {"bare": _bare(program, x)}
        calls |= {kind: lambda t=t, s=scorer: s(t) for kind, t in given.items()}
        best = interleaved(calls, rounds=rounds, seconds=0)
        ratios = [f"{best['bare'] / best[kind]:.2f}" for kind in given]
        table.rows.append([name, f"{ROWS / best['bare']:,.0f}", *ratios])
        if name != "a layer of 32":
            table.claim(
                f"columns against a bare session, {name}", best["columns"] / best["bare"], 1 / 0.9
            )
    return table


def measure_summaries(rounds: int = 10) -> Table:
    """Time summaries of 200 draws in batches of 1,000 rows, and a sort of all of them."""
    table = Table(
        "Summaries of draws",
        ["summary", "rows/s"],
        note=f"{DRAWS} float64 draws of a row, the draws of a line included, with one thread.",
    )
    slopes, x = np.random.default_rng(1).normal(size=(DRAWS, 1)), pt.vector("x")
    draws = pt.constant(slopes) * x + slopes[::-1]
    graphs = {
        "mean": posterior.mean(draws),
        "sd": posterior.standard_deviation(draws),
        "HDI": posterior.highest_density_interval(draws, DRAWS),
        "two quantiles, 5 and 95 %": posterior.quantiles(draws, [0.05, 0.95], DRAWS),
        "the median": posterior.quantiles(draws, [0.5], DRAWS),
        "all draws, sorted": pt.sort(draws, axis=0),
        "three quantiles, 5, 50 and 95 %": posterior.quantiles(draws, [0.05, 0.5, 0.95], DRAWS),
    }
    n = 1000
    values = np.random.default_rng(2).normal(size=n)
    calls: dict[str, Callable[[], Any]] = {}
    for name, graph in graphs.items():
        calls[name] = _bare(export_onnx([x], graph, verify=False), values)
    best = interleaved(calls, rounds=rounds, seconds=0)
    for name in graphs:
        table.rows.append([name, f"{n / best[name]:,.0f}"])
    table.claim("HDI against a sort of all draws", best["HDI"] / best["all draws, sorted"], 1 / 3)
    return table


if __name__ == "__main__":
    measure().show()
    measure_summaries().show()
