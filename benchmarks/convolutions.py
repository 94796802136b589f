"""Convolutions of signals and images of unknown sizes beside mode NUMBA, with one thread."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.signal import convolve1d, convolve2d
from threadpoolctl import threadpool_limits

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx

SIZES = {
    "signals": ((1000, 3), (1000, 100), (100_000, 100), (10_000, 10_000)),
    "images": ((32, 3), (256, 3), (256, 15)),
}


def measure(rounds: int = 7) -> Table:
    """Time full convolutions of two signals, and of two square images."""
    table = Table(
        "Convolutions",
        ["arrays", "sizes", "ONNX, µs", "NUMBA, µs", "ratio"],
        note="Full convolutions in float64 and with one thread, of sizes that only a run knows. "
        "PyTensor calls NumPy for signals and SciPy for images, which takes Fourier transforms of "
        "large ones.",
    )
    with threadpool_limits(1):
        for kind, sizes in SIZES.items():
            make, ndim = (convolve1d, 1) if kind == "signals" else (convolve2d, 2)
            x, y = pt.tensor("x", shape=(None,) * ndim), pt.tensor("y", shape=(None,) * ndim)
            result = make(x, y)
            build = compile_onnx(
                [x, y], result, session_options=SessionOptions(threads=1), verify=False
            )
            numba = pytensor.function([x, y], result, mode="NUMBA", trust_input=True)
            for n, k in sizes:
                rng = np.random.default_rng(1)
                a, b = rng.normal(size=(n,) * ndim), rng.normal(size=(k,) * ndim)
                best = interleaved(
                    {"ONNX": lambda: build(a, b), "NUMBA": lambda: numba(a, b)},  # noqa: B023
                    rounds=rounds,
                    seconds=0,
                )
                ratio = best["ONNX"] / best["NUMBA"]
                cells = [f"{1e6 * best[mode]:.0f}" for mode in ("ONNX", "NUMBA")]
                table.rows.append([kind, f"{n:,} and {k:,}", *cells, f"{ratio:.1f}"])
    return table


if __name__ == "__main__":
    measure().show()
