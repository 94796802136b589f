"""Linear algebra beside mode NUMBA, which calls LAPACK, with one thread."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.linalg  # noqa: F401  (a BLAS that is loaded later would not be limited)
from threadpoolctl import threadpool_limits

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx

SIZES = (3, 10, 50, 200, 500)
BATCHES = ((1000, 3), (1000, 10))


@dataclass(frozen=True)
class Timed:
    """An operation on matrices, and bounds of its time as a multiple of mode NUMBA's.

    The bounds are by order of the matrix, or by number and order of the matrices of a batch.
    """

    name: str
    function: Callable[..., pt.TensorVariable | Sequence[pt.TensorVariable]]
    has_vector: bool = False
    bounds: dict[int | tuple[int, int], float] = field(default_factory=dict)


OPERATIONS = (
    Timed("Cholesky", pt.linalg.cholesky, bounds={50: 2, 200: 2, 500: 2, (1000, 10): 1}),
    Timed(
        "triangular solve",
        lambda a, b: pt.linalg.solve_triangular(a, b, lower=True, b_ndim=1),
        has_vector=True,
        bounds={50: 2, 200: 2},
    ),
    Timed(
        "general solve",
        lambda a, b: pt.linalg.solve(a, b, b_ndim=1),
        has_vector=True,
        bounds={50: 2, 200: 2},
    ),
    Timed("LU", lambda a: pt.linalg.lu_factor(a)[0], bounds={200: 2}),
    Timed("determinant", pt.linalg.det),
    Timed("inverse", pt.linalg.inv),
    Timed("QR", pt.linalg.qr, bounds={10: 2, 50: 2, 200: 8}),
    Timed("Eigh", pt.linalg.eigh, bounds={10: 2, 50: 2, 200: 6}),
    Timed("SVD", pt.linalg.svd, bounds={10: 2, 50: 2, 200: 6}),
    Timed("Schur form", pt.linalg.schur, bounds={10: 2, 50: 3}),
    Timed("matrix exponential", lambda a: pt.linalg.expm(a / a.max())),
)


def values(operation: Timed, *shape: int) -> list[np.ndarray]:
    """Return positive definite matrices and vectors for an operation."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(*shape, shape[-1]))
    positive = a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    return [positive, rng.normal(size=shape)] if operation.has_vector else [positive]


NOTE = """\
Per call, of float64 matrices of dynamic sizes, with one thread; mode NUMBA calls LAPACK. Programs
run factorisations by kernels of the native library, which are written for small matrices; LAPACK
works on blocks of large ones."""


def measure(operations: Sequence[Timed] = OPERATIONS) -> Table:
    """Time operations for matrices of several sizes, and for batches of small ones."""
    columns = ["operation", "matrices", "ONNX, µs", "NUMBA, µs", "ratio"]
    table = Table("Linear algebra", columns, note=" ".join(NOTE.split()))
    with threadpool_limits(1):
        for operation in operations:
            _measure_one(table, operation)
    return table


def _rounds(call: Callable[[], object]) -> int:
    """Return the number of rounds that take about half a second, at least 8 and at most 1000."""
    start = perf_counter()
    call()
    return int(min(max(0.5 / (perf_counter() - start), 8), 1000))


def _measure_one(table: Table, operation: Timed) -> None:
    for batch_rank, shapes in ((0, [(n,) for n in SIZES]), (1, list(BATCHES))):
        inputs = [
            pt.tensor(name, dtype="float64", shape=(None,) * (batch_rank + ndim))
            for name, ndim in (("a", 2), ("b", 1))
        ][: 1 + operation.has_vector]
        result = operation.function(*inputs)
        build = compile_onnx(
            inputs, result, session_options=SessionOptions(threads=1), verify=False
        )
        numba = pytensor.function(inputs, result, mode="NUMBA", trust_input=True)
        for shape in shapes:
            arguments = values(operation, *shape)
            calls = {"ONNX": partial(build, *arguments), "NUMBA": partial(numba, *arguments)}
            best = interleaved(calls, rounds=_rounds(calls["ONNX"]), seconds=0)
            ratio = best["ONNX"] / best["NUMBA"]
            key = shape if batch_rank else shape[0]
            text = f"{shape[0]} of {shape[1]} × {shape[1]}" if batch_rank else f"{key} × {key}"
            cells = [f"{1e6 * best[mode]:.1f}" for mode in ("ONNX", "NUMBA")]
            table.rows.append([operation.name, text, *cells, f"{ratio:.1f}"])
            if key in operation.bounds:
                table.claim(f"{operation.name}, {text}", ratio, operation.bounds[key])


if __name__ == "__main__":
    names = sys.argv[1:]
    measure([op for op in OPERATIONS if not names or op.name in names]).show()
