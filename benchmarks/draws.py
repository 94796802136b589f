"""Random numbers beside NumPy, with one thread, and a loop that draws one number in each step."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx

SIZE = 1_000_000
STEPS = 1_000


@dataclass(frozen=True)
class Drawn:
    """A distribution, typical parameters, and the most times that NumPy's time is taken."""

    name: str
    parameters: tuple[float, ...] = ()
    bound: float | None = None
    named: dict[str, float] = field(default_factory=dict)


DISTRIBUTIONS = (
    Drawn("uniform", bound=3),
    Drawn("normal", bound=3),
    Drawn("gamma", (2.5,), 12, {"scale": 1.0}),
    Drawn("poisson", (3.0,), 12),
    Drawn("poisson", (50.0,), 12),
    Drawn("binomial", (100, 0.3)),
    Drawn("beta", (2.0, 3.0)),
)


def _compiled(drawn: Drawn, size: int) -> Callable[[], Any]:
    rng = pt.random.rng("rng")
    symbols = [pt.scalar(dtype=np.asarray(x).dtype) for x in drawn.parameters]
    draw = getattr(rng, drawn.name)(*symbols, **drawn.named, size=size)
    f = compile_onnx(
        [rng, *symbols], list(draw), session_options=SessionOptions(threads=1), verify=False
    )
    generator = np.random.default_rng(1)
    return lambda: f(generator, *drawn.parameters)


def _loop(*, ahead: bool) -> Callable[[], Any]:
    """Return a random walk of normal steps, drawn one by one or before the loop."""
    rng, start = pt.random.rng("rng"), pt.zeros(())
    if ahead:
        _, noise = rng.normal(size=STEPS)
        walk = pytensor.scan(lambda z, x: x * 0.9 + z, [noise], [start], return_updates=False)
    else:

        def step(x: Any, rng: Any) -> list[Any]:
            following, z = rng.normal()
            return [x * 0.9 + z, following]

        walk, _ = pytensor.scan(step, [], [start, rng], n_steps=STEPS, return_updates=False)
    f = compile_onnx([rng], walk, session_options=SessionOptions(threads=1), verify=False)
    generator = np.random.default_rng(1)
    return lambda: f(generator)


def measure(size: int = SIZE, rounds: int = 8) -> Table:
    """Time a million numbers of each distribution, one number, and the loops."""
    table = Table(
        "Random numbers",
        ["distribution", "ONNX, ms", "NumPy, ms", "one number, µs"],
        note=f"{size} float64 or int64 numbers with one thread; one number includes the call.",
    )
    for drawn in DISTRIBUTIONS:
        numpy_draw = getattr(np.random.default_rng(1), drawn.name)
        calls = {
            "ONNX": _compiled(drawn, size),
            "NumPy": lambda d=drawn, f=numpy_draw: f(*d.parameters, **d.named, size=size),
        }
        best = interleaved(calls, rounds=rounds, seconds=0)
        one = interleaved({"": _compiled(drawn, 1)}, rounds=50)[""]
        label = f"{drawn.name}{drawn.parameters or '()'}"
        cells = [f"{1e3 * best[way]:.1f}" for way in ("ONNX", "NumPy")]
        table.rows.append([label, *cells, f"{1e6 * one:.0f}"])
        if drawn.bound is not None:
            ratio = best["ONNX"] / best["NumPy"]
            table.claim(f"{size} numbers of {label} against NumPy", ratio, drawn.bound)
    loops = {"in": _loop(ahead=False), "ahead": _loop(ahead=True)}
    best = interleaved(loops, rounds=rounds, seconds=0)
    table.claim(
        f"{STEPS} steps that draw a number each, {1e3 * best['in']:.1f} ms, against numbers "
        f"drawn before the loop, {1e3 * best['ahead']:.1f} ms",
        best["in"] / best["ahead"],
        2,
    )
    return table


if __name__ == "__main__":
    measure().show()
