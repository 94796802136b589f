"""Compare gradients of imported node tests with differences along a random direction.

python -m tests.importing.gradients [--every 3] [--only NAME]

A test counts as smooth if its differences with two steps agree.
"""

import argparse
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from tests.importing.node_tests import PYTHON, _array, _imported, node_tests

_STEP = 1e-2


def verdict(case: Any) -> str:
    """Return whether the gradient of one test equals the differences."""
    names = [v.name for v in case.model.graph.input]
    inputs, _ = case.data_sets[0]
    arrays = dict(zip(names, map(_array, inputs), strict=False))
    try:
        graph = _imported(case.model, arrays, {}, symbolic=False)
    except Exception:
        return "refused"
    moved = [v for v in graph.inputs if v.type.dtype in ("float32", "float64")]
    results = [y for y in graph.outputs if y.type.dtype in ("float32", "float64")]
    if not moved or not results:
        return "no floats"
    rng = np.random.default_rng(0)
    total = pt.constant(0.0)
    for result in results:
        weight = pt.cos(1 + pt.arange(result.size)).reshape(result.shape)
        total = total + (result * weight).sum(dtype="float64")
    try:
        slopes = pytensor.grad(total, moved, disconnected_inputs="ignore")
    except Exception as error:
        return f"no gradient: {type(error).__name__}"
    with pytensor.config.change_flags(cxx="", linker="py"), np.errstate(all="ignore"):
        function = pytensor.function(
            graph.inputs, [total, *slopes], mode=PYTHON, on_unused_input="ignore"
        )
        own = [arrays[str(v.name)] for v in graph.inputs]
        directions = [
            rng.normal(size=a.shape).astype(a.dtype) if v in moved else None
            for a, v in zip(own, graph.inputs, strict=True)
        ]

        def at(step: float) -> float:
            places = [
                a if d is None else (a + a.dtype.type(step) * d).astype(a.dtype)
                for a, d in zip(own, directions, strict=True)
            ]
            return float(function(*places)[0])

        _, *found = function(*own)
        along = [d for d in directions if d is not None]
        slope = sum(float((g * d).sum()) for g, d in zip(found, along, strict=True))
        wide = (at(_STEP) - at(-_STEP)) / (2 * _STEP)
        narrow = (at(_STEP / 2) - at(-_STEP / 2)) / _STEP
    scale = max(abs(wide), abs(narrow), 0.1 * sum(float(np.abs(g).sum()) for g in found), 1e-2)
    if not np.isfinite([wide, narrow]).all() or abs(wide - narrow) > 0.02 * scale:
        return "not smooth"
    return "equal" if abs(slope - narrow) <= 0.05 * scale else "different"


def main() -> None:
    """Print the counts, and the tests whose gradients differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take each n-th test")
    parser.add_argument("--only", default="", help="tests whose name has this text")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for case in [c for c in node_tests() if options.only in c.name][:: options.every]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = verdict(case)
            except Exception as error:
                found = f"run raises {type(error).__name__}"
        counts[found] += 1
        if found == "different" or found.startswith(("no gradient", "run raises")):
            print(f"{case.name}: {found}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
