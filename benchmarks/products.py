"""Products of matrices of few rows or columns beside ONNX Runtime's own, with one thread."""

import numpy as np
import pytensor.tensor as pt
from threadpoolctl import threadpool_limits

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx

SIZES = ((80, 60, 5), (60, 80, 5), (1000, 5, 5), (5, 1000, 5), (20, 3, 3), (500, 20, 12))
BOUND = 1.0
"""The multiple of the time without kernels that a product may take."""


def measure(rounds: int = 100) -> Table:
    """Return the times of products of three matrices."""
    table = Table(
        "Products of few rows or columns",
        ["product", "sizes of A and B", "ONNX, µs", "without kernels, µs", "NumPy, µs", "ratio"],
        note="Per call, in float64 and with one thread; ratios are to ONNX Runtime's own kernels.",
    )
    with threadpool_limits(1):
        for m, k, n in SIZES:
            _measure_one(table, m, k, n, rounds)
    return table


def _measure_one(table: Table, m: int, k: int, n: int, rounds: int) -> None:
    rng = np.random.default_rng(1)
    a, b = pt.matrix("a", shape=(m, k)), pt.matrix("b", shape=(k, n))
    values = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    for name, result, reference in (
        ("A.T @ (A @ B)", a.T @ (a @ b), lambda a, b: a.T @ (a @ b)),
        ("(A @ B) @ B.T", (a @ b) @ b.T, lambda a, b: (a @ b) @ b.T),
    ):
        ours, runtimes = (
            compile_onnx(
                [a, b],
                result,
                session_options=SessionOptions(threads=1, kernels=kernels),
                verify=False,
            )
            for kernels in (None, False)
        )
        best = interleaved(
            {
                "ONNX": lambda: ours(*values),  # noqa: B023
                "without": lambda: runtimes(*values),  # noqa: B023
                "NumPy": lambda: reference(*values),  # noqa: B023
            },
            rounds=rounds,
            seconds=0.002,
        )
        ratio = best["ONNX"] / best["without"]
        cells = [f"{1e6 * best[mode]:.1f}" for mode in ("ONNX", "without", "NumPy")]
        table.rows.append([name, f"{m} × {k}, {k} × {n}", *cells, f"{ratio:.2f}"])
        table.claim(f"{name} of {m}, {k} and {n}", ratio, BOUND)


if __name__ == "__main__":
    measure().show()
