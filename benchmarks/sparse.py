"""Products of sparse matrices beside mode NUMBA, with one thread."""

from functools import partial

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.sparse
from pytensor import sparse
from threadpoolctl import threadpool_limits

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx

SIZES = ((1_000, 10_000), (100_000, 1_000_000))
COLUMNS = 64
BOUND = 10


def measure(rounds: int = 7) -> Table:
    """Time products of a square matrix with a vector and with a matrix of 64 columns."""
    table = Table(
        "Sparse matrices",
        ["product", "matrix", "entries", "ONNX, ms", "NUMBA, ms", "ratio"],
        note="Per call, in float64 and with one thread, of matrices whose entries are an input.",
    )
    with threadpool_limits(1):
        for size, count in SIZES:
            for kind in ("csr", "csc"):
                _measure_one(table, kind, size, count, rounds)
    return table


def _measure_one(table: Table, kind: str, size: int, count: int, rounds: int) -> None:
    rng = np.random.default_rng(1)
    rows, cols = np.divmod(np.unique(rng.integers(0, size * size, count)), size)
    entries = scipy.sparse.coo_matrix((rng.normal(size=len(rows)), (rows, cols)), (size, size))
    matrix = entries.asformat(kind)
    x, vector, columns = sparse.matrix(kind, "x"), pt.vector("vector"), pt.matrix("columns")
    for name, given, value, turns in (
        ("with a vector", vector, rng.normal(size=size), 8 * rounds),
        (f"with {COLUMNS} columns", columns, rng.normal(size=(size, COLUMNS)), rounds),
    ):
        product = sparse.dot(x, given)
        build = compile_onnx(
            [x, given], product, session_options=SessionOptions(threads=1), verify=False
        )
        numba = pytensor.function([x, given], product, mode="NUMBA", trust_input=True)
        calls = {"ONNX": partial(build, matrix, value), "NUMBA": partial(numba, matrix, value)}
        best = interleaved(calls, rounds=turns, seconds=0)
        ratio = best["ONNX"] / best["NUMBA"]
        cells = [f"{1e3 * best[mode]:.3g}" for mode in ("ONNX", "NUMBA")]
        table.rows.append([name, kind, f"{count:,}", *cells, f"{ratio:.1f}"])
        table.claim(f"{kind} matrix of {count:,} entries {name}", ratio, BOUND)


if __name__ == "__main__":
    measure().show()
