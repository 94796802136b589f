"""Measure the terms of PSIS-LOO and their smoothing: python -m benchmarks.loo FOLDER.

The folder is one of `python examples/scale/loo_make.py FOLDER`.
"""

import sys
import time
from pathlib import Path

import numpy as np
from arviz_stats.base import array_stats

from pytensor_onnx_scoring import Scorer

ROWS = 2_000


def main() -> None:
    """Print rows a second of the file and of ArviZ."""
    folder = Path(sys.argv[1])
    draws = np.load(folder / "draws.npy")
    scorer = Scorer(folder / "density.onnx", constants={"point": draws})
    rng = np.random.default_rng(1)
    table = {name: rng.normal(size=ROWS) for name in scorer.input_columns}
    times = []
    for _ in range(20):
        started = time.perf_counter()
        terms = scorer(table)["logp_y"]
        times.append(time.perf_counter() - started)
    started = time.perf_counter()
    array_stats.loo(terms[:, None, :])
    smoothing = time.perf_counter() - started
    print(f"terms {ROWS / np.median(times):,.0f} rows a second, PSIS {ROWS / smoothing:,.0f}")


if __name__ == "__main__":
    main()
