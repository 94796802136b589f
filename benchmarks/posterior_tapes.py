"""Samplers of nine models of posteriordb as tapes in Node, beside nutpie and stated figures.

``python -m benchmarks.posterior_tapes [MODEL ...]`` takes all models without names. It needs Node,
nutpie, the posteriors of `benchmarks.posteriors`, and ziglang in a clone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pymc as pm

from benchmarks.posteriors import cloned, posteriors
from benchmarks.samplers import Draws, effective_draws, nutpie_numba
from benchmarks.tapes import CHAINS, DRAWS, WARMUP, in_node, least, natively, write_sampler
from benchmarks.timing import Table

STATED = {
    "kidiq-kidscore_momiq": (0.52, 653.9),
    "wells_data-wells_dist100_model": (1.63, 147.5),
    "arK-arK": (0.55, 1178.4),
    "eight_schools-eight_schools_noncentered": (0.08, 3944.2),
    "diamonds-diamonds": (312.13, 1.3),
    "radon_mn-radon_variable_intercept_noncentered": (1.05, 345.5),
    "irt_2pl-irt_2pl": (5.13, 18.1),
    "radon_all-radon_hierarchical_intercept_noncentered": (24.23, 5.5),
    "ovarian-logistic_regression_rhs": (36.85, 0.5),
}
"""Seconds and effective draws a second that pymcwasm states for the same settings:
https://github.com/habakan/pymcwasm/blob/0f1ef91a121a85d4e86199b226ce08279c9fbefa/bench/RESULTS.md
"""

SETTLED = 100
"""Effective draws from which a row says something about a posterior."""


def drawn(model: pm.Model, folder: Path) -> Draws:
    """Return the draws that Node wrote to a folder, by variable."""
    found = {}
    for variable in model.free_RVs:
        values = np.fromfile(folder / f"{variable.name}.bin")
        found[str(variable.name)] = values.reshape(CHAINS, DRAWS, -1)
    return found


def apart(draws: Draws, reference: Draws) -> float:
    """Return the largest distance of two means, in standard deviations of the reference."""
    distances = []
    for name, values in reference.items():
        rows, others = (x.reshape(CHAINS * DRAWS, -1) for x in (values, draws[name]))
        distances.append(np.max(np.abs(others.mean(0) - rows.mean(0)) / rows.std(0)))
    return float(max(distances))


def row(name: str) -> list[str]:
    """Measure one model."""
    model = posteriors(cloned())[name].build()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        size = write_sampler(model, folder)
        *_, seconds = in_node(folder, CHAINS, WARMUP, DRAWS)
        draws = drawn(model, folder)
        own = natively(folder / "model.onnx", time.process_time)
    sample = nutpie_numba(model)
    reference, _ = sample()
    other = least(sample, time.process_time)
    count = sum(values[0, 0].size for values in draws.values())
    ours, theirs = effective_draws(draws), effective_draws(reference)
    mark = "" if min(ours, theirs) >= SETTLED else " †"
    stated, rate = STATED[name]
    return [
        f"{name}{mark}",
        str(count),
        f"{size:.0f}",
        f"{seconds:.2f}",
        f"{ours / seconds:.1f}",
        f"{own:.2f}",
        f"{other:.2f}",
        f"{theirs / other:.1f}",
        f"{apart(draws, reference):.2f}",
        f"{stated:.2f}",
        f"{rate:.1f}",
    ]


def measure(names: list[str] | None = None) -> Table:
    """Sample each model by its tape in Node and natively, and by nutpie."""
    version = subprocess.check_output(["node", "--version"], text=True).strip().lstrip("v")
    table = Table(
        "Samplers of public models as tapes",
        [
            "model of posteriordb",
            "numbers",
            "files, kB",
            "tape in Node, s",
            "effective draws a second",
            "tape natively, s",
            "nutpie, s",
            "effective draws a second",
            "means apart, sd",
            "pymcwasm states, s",
            "effective draws a second",
        ],
        note=f"NUTS with {CHAINS} chains of {WARMUP} warm-up steps and {DRAWS} draws on one core, "
        "in seconds of the processor, without the time of compiling: the tape in "
        f"Node {version}. The effective draws are those of "
        "the worst variable, for the seconds in the column before; the means differ from nutpie's "
        f"by at most so many standard deviations. † has fewer than {SETTLED} effective draws by "
        "the tape or by nutpie, too few to compare. pymcwasm states its numbers for another "
        "machine: an Apple M3, Chromium 153, one run each (github.com/habakan/pymcwasm, "
        "bench/RESULTS.md, commit 0f1ef91, without a date).",
    )
    table.rows = [row(name) for name in names or STATED]
    return table


if __name__ == "__main__":
    measure(sys.argv[1:]).show()
