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

from pytensor_onnx.backend import PyTensorBackend
from tests.importing.node_tests import PYTHON, _array
from tests.importing.peers import tests_of_numbers

_STEP = 1e-2
_SHIFT = 0.2


def verdict(case: Any) -> str:
    """Return whether the gradient of one test equals the differences.

    Where the results have a kink at the inputs of the test, such as samples between pixels at a
    pixel, inputs near them take their place.
    """
    names = [v.name for v in case.model.graph.input]
    inputs, _ = case.data_sets[0]
    arrays = dict(zip(names, map(_array, inputs), strict=False))
    try:
        graph, _ = PyTensorBackend.prepare(case.model, mode=PYTHON).compiled(arrays)
    except Exception:
        return "refused"
    moved = [v for v in graph.inputs if v.type.dtype in ("float32", "float64")]
    results = [y for y in graph.outputs if y.type.dtype in ("float32", "float64")]
    if not moved or not results:
        return "no floats"
    total = pt.constant(0.0)
    for result in results:
        weight = pt.cos(1 + pt.arange(result.size)).reshape(result.shape)
        # Minus infinity is the score of a masked key.
        finite = pt.switch(pt.isinf(result), 0, result)
        total = total + (finite * weight).sum(dtype="float64")
    try:
        slopes = pytensor.grad(total, moved, disconnected_inputs="ignore")
    except Exception as error:
        return f"no gradient: {type(error).__name__}"
    with pytensor.config.change_flags(cxx="", linker="py"), np.errstate(all="ignore"):
        function = pytensor.function(
            graph.inputs, [total, *slopes], mode=PYTHON, on_unused_input="ignore"
        )
        own = {v: arrays[str(v.name)] for v in graph.inputs}
        found = _at_inputs(function, own, moved)
        if found != "equal":
            rng = np.random.default_rng(1)
            shifted = {v: _shifted(own[v], rng, _SHIFT) if v in moved else own[v] for v in own}
            found = _at_inputs(function, shifted, moved)
    return found


def _at_inputs(function: Any, own: dict[Any, np.ndarray], moved: list[Any]) -> str:
    """Compare gradient and differences along a random direction."""
    rng = np.random.default_rng(0)
    directions = {v: rng.normal(size=own[v].shape).astype(own[v].dtype) for v in moved}

    def at(step: float) -> float:
        places = (
            a + a.dtype.type(step) * directions[v] if v in directions else a for v, a in own.items()
        )
        return float(function(*places)[0])

    value, *found = function(*own.values())
    slope = sum(float((g * directions[v]).sum()) for g, v in zip(found, moved, strict=True))
    wide, narrow = ((at(h) - at(-h)) / (2 * h) for h in (_STEP, _STEP / 2))
    bends = [abs(at(h) + at(-h) - 2 * value) / h for h in (_STEP, _STEP / 2)]
    scale = max(abs(wide), abs(narrow), 0.1 * sum(float(np.abs(g).sum()) for g in found), 1e-2)
    # The bend of a kink does not shrink with the step.
    is_kink = bends[1] > 0.02 * scale and bends[1] > 0.75 * bends[0]
    if not np.isfinite([wide, narrow]).all() or abs(wide - narrow) > 0.02 * scale or is_kink:
        return "not smooth"
    return "equal" if abs(slope - narrow) <= 0.05 * scale else "different"


def _shifted(array: np.ndarray, rng: np.random.Generator, by: float) -> np.ndarray:
    return (array + by * rng.uniform(-1, 1, array.shape)).astype(array.dtype)


def main() -> None:
    """Print the counts, and the tests whose gradients differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take each n-th test")
    parser.add_argument("--only", default="", help="tests whose name has this text")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for case in [c for c in tests_of_numbers() if options.only in c.name][:: options.every]:
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
