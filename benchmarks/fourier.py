"""Fourier transforms of known sizes beside NumPy, with one thread."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.fft import rfft
from pytensor.tensor.fourier import fft
from threadpoolctl import threadpool_limits

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx

SIZES = (1000, 1009, 1024, 100_000)
BOUND = 10


def measure(rounds: int = 15) -> Table:
    """Time transforms of one complex and of one real signal."""
    table = Table(
        "Fourier transforms",
        ["transform", "points", "ONNX, µs", "NumPy, µs", "ratio", "error of the norm"],
        note="Per call, in float64 and with one thread, of sizes known at export but where said.",
    )
    with threadpool_limits(1):
        for n in SIZES:
            _measure_one(table, n, rounds)
    return table


def _measure_one(table: Table, n: int, rounds: int) -> None:
    rng = np.random.default_rng(1)
    z, x = pt.vector("z", dtype="complex128", shape=(n,)), pt.matrix("x", shape=(1, n))
    free = pt.vector("free", dtype="complex128")
    numbers = rng.normal(size=(n, 2)).view("complex128")[:, 0]
    for name, given, result, value, reference in (
        ("complex", z, fft(z, None, None), numbers, np.fft.fft),
        ("complex, size unknown", free, fft(free, None, None), numbers, np.fft.fft),
        ("real", x, rfft(x), rng.normal(size=(1, n)), np.fft.rfft),
    ):
        build = compile_onnx(
            [given], result, session_options=SessionOptions(threads=1), verify=False
        )
        best = interleaved(
            {"ONNX": lambda: build(value), "NumPy": lambda: reference(value)},  # noqa: B023
            rounds=rounds,
            seconds=0,
        )
        found = np.asarray(build(value))
        found = found if np.iscomplexobj(found) else found[..., 0] + 1j * found[..., 1]
        exact = reference(value.astype("clongdouble" if np.iscomplexobj(value) else "longdouble"))
        error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
        ratio = best["ONNX"] / best["NumPy"]
        cells = [f"{1e6 * best[mode]:.1f}" for mode in ("ONNX", "NumPy")]
        table.rows.append([name, f"{n:,}", *cells, f"{ratio:.1f}", f"{error:.0e}"])
        if given is not free:
            table.claim(f"{name} transform of {n:,} points", ratio, BOUND)


if __name__ == "__main__":
    measure().show()
