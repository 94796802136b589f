"""Results of mode NUMBA, and their sensitivity to rounding."""

from collections.abc import Sequence

import numpy as np
import pytensor
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Constant, Variable

from tests.fuzz.implementation import implementation
from tests.fuzz.rounding import moved

NUMBA_REWRITES = Mode("py", get_mode("NUMBA").provided_optimizer.excluding("fusion", "inplace"))
"""The graph that mode NUMBA compiles, in Python: the linker does not change finite results."""

COPIES = 4


def values_and_rounding(
    inputs: Sequence[Variable], outputs: Sequence[Variable], values: Sequence[np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return what mode NUMBA's graph gives, and how far it moves if all is rounded another way."""
    with pytensor.config.change_flags(cxx=""), np.errstate(all="ignore"):
        function = pytensor.function(inputs, outputs, mode=NUMBA_REWRITES, on_unused_input="ignore")
        graph = function.maker.fgraph
        rng = np.random.default_rng(0)
        storage = {v: [a] * (1 + COPIES) for v, a in zip(graph.inputs, values, strict=True)}
        for node in graph.toposort():
            for x in node.inputs:
                if isinstance(x, Constant):
                    storage[x] = [x.data] * (1 + COPIES)
            perform = implementation(node)
            # Nodes that mode NUMBA fuses work in place.
            arguments = zip(*map(storage.get, node.inputs), strict=True)
            results = [perform(*map(np.copy, each)) for each in arguments]
            for v, copies in zip(node.outputs, zip(*results, strict=True), strict=True):
                storage[v] = [copies[0], *(_moved(a, v, rng) for a in copies[1:])]
        return [(storage[v][0], _spread(*storage[v])) for v in graph.outputs]


def _moved(array: np.ndarray, variable: Variable, rng: np.random.Generator) -> np.ndarray:
    dtype = variable.type.dtype
    return moved(array, np.finfo(dtype).eps, rng) if dtype.startswith("float") else array


def _spread(value: np.ndarray, *copies: np.ndarray) -> np.ndarray:
    spread = np.max([abs(copy - value) for copy in copies], axis=0)
    return np.where(np.isnan(spread), np.inf, spread)


def assert_as_finite(
    found: np.ndarray, expected: np.ndarray, rounding: np.ndarray, *, rtol: float
) -> None:
    """Assert that results are finite where they are expected to be, and agree up to rounding."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found[finite]), True)
    tolerance = rtol * (1e-2 + abs(expected[finite])) + 16 * rounding[finite]
    wrong = abs(found[finite] - expected[finite]) > tolerance
    np.testing.assert_array_equal(found[finite][wrong], expected[finite][wrong])
