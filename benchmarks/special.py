"""Special functions beside SciPy and mode NUMBA, with one thread."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy.special
from onnxruntime import InferenceSession

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx, export_onnx
from pytensor_onnx.running.ort_optimizers import INLINE_LATE, inlines_late, needless_optimizers

SIZE = 1_000_000
SCALAR = 40e-6
SESSION = 50e-3
DTYPES = ("float64", "float32")
# The most times that SciPy's time is taken, without and with loops.
FORMULA, LOOP = 4, 10


@dataclass(frozen=True)
class Timed:
    """A function of PyTensor that SciPy has too, typical arguments, and a bound of the ratio."""

    name: str
    scipy: str
    ranges: tuple[tuple[float, float], ...]
    bound: float = FORMULA
    order: int | None = None
    """The order of a polygamma function, its first argument."""
    case: str = ""
    """Range of the arguments, for a function with several rows."""

    @property
    def label(self) -> str:
        """The name in the table."""
        return f"{self.name}, {self.case}" if self.case else self.name

    def apply(self, *arguments: pt.TensorVariable) -> pt.TensorVariable:
        """Return the result of PyTensor's function."""
        first = [self.order] if self.name == "polygamma" else []
        return getattr(pt, self.name)(*first, *arguments)

    def apply_scipy(self, *arguments: np.ndarray) -> np.ndarray:
        """Return the result of SciPy's function."""
        first = [] if self.order is None else [self.order]
        return getattr(scipy.special, self.scipy)(*first, *arguments)

    def values(self, size: int, dtype: str) -> list[np.ndarray]:
        """Draw arguments."""
        rng = np.random.default_rng(1)
        return [rng.uniform(*ends, size).astype(dtype) for ends in self.ranges]


FUNCTIONS = (
    Timed("erfcx", "erfcx", ((-5, 25),)),
    Timed("erfinv", "erfinv", ((-1, 1),)),
    Timed("erfcinv", "erfcinv", ((0, 2),)),
    Timed("ndtri_exp", "ndtri_exp", ((-6, 0),)),
    Timed("i0", "i0", ((0, 30),)),
    Timed("i1", "i1", ((0, 30),)),
    Timed("j0", "j0", ((0, 30),)),
    Timed("j1", "j1", ((0, 30),)),
    Timed("hyp2f1", "hyp2f1", ((0.5, 5), (0.5, 5), (0.5, 5), (-1, 0.9)), LOOP),
    Timed("hyp2f1", "hyp2f1", ((0.5, 5), (0.5, 5), (0.5, 5), (-1e6, -10)), LOOP, case="z < -10"),
    Timed("jv", "jv", ((0, 20), (0, 30)), LOOP),
    Timed("gamma", "gamma", ((-5, 30),)),
    Timed("gammaln", "gammaln", ((0, 100),)),
    Timed("psi", "psi", ((0, 100),)),
    Timed("tri_gamma", "polygamma", ((0, 100),), order=1),
    Timed("polygamma", "polygamma", ((0, 100),), LOOP, order=3),
    Timed("gammainc", "gammainc", ((0.5, 50), (0, 100)), LOOP),
    Timed("gammaincc", "gammaincc", ((0.5, 50), (0, 100)), LOOP),
    Timed("gammaincinv", "gammaincinv", ((0.5, 50), (0, 1)), LOOP),
    Timed("gammainccinv", "gammainccinv", ((0.5, 50), (0, 1)), LOOP),
    Timed("betainc", "betainc", ((0.5, 50), (0.5, 50), (0, 1)), LOOP),
    Timed("betaincinv", "betaincinv", ((0.5, 50), (0.5, 50), (0, 1)), LOOP),
    Timed("betaincinv", "betaincinv", ((0.01, 1), (10, 500), (0, 1)), LOOP, case="a < 1 < b"),
    Timed("owens_t", "owens_t", ((-3, 3), (0, 2))),
    Timed("ive", "ive", ((0, 20), (0, 30)), LOOP),
    Timed("kve", "kve", ((0, 20), (0, 30)), LOOP),
)


def _inputs(function: Timed, dtype: str, ndim: int) -> list[pt.TensorVariable]:
    return [
        pt.tensor(f"x{i}", dtype=dtype, shape=(None,) * ndim) for i in range(len(function.ranges))
    ]


def _compiled(function: Timed, dtype: str, ndim: int) -> Callable[..., np.ndarray]:
    inputs = _inputs(function, dtype, ndim)
    result = function.apply(*inputs)
    return compile_onnx(inputs, result, session_options=SessionOptions(threads=1), verify=False)


def measure(size: int = SIZE, rounds: int = 5) -> Table:
    """Time each function per element, for a scalar, and the creation of a session with one call."""
    table = Table(
        "Special functions",
        ["function", "dtype", "ONNX, ns", "SciPy, ns", "NUMBA, ns", "scalar, µs", "session, ms"],
        note=f"Per element of {size} random arguments, with one thread, per call of a scalar, "
        "and the processor time that creates a session of a model with one call.",
    )
    for function in FUNCTIONS:
        for dtype in DTYPES:
            _measure_one(table, function, dtype, size, rounds)
    return table


def _measure_one(table: Table, function: Timed, dtype: str, size: int, rounds: int) -> None:
    values, point = function.values(size, dtype), function.values(1, dtype)
    build = _compiled(function, dtype, 1)
    calls = {"ONNX": lambda: build(*values), "SciPy": lambda: function.apply_scipy(*values)}
    inputs = _inputs(function, dtype, 1)
    try:
        numba = pytensor.function(inputs, function.apply(*inputs), mode="NUMBA")
        numba(*values)
        calls["NUMBA"] = lambda: numba(*values)
    except Exception as error:
        print(f"{function.label}, {dtype}, mode NUMBA: left out, {type(error).__name__}")
    best = interleaved(calls, rounds=rounds, seconds=0)
    scalar = _compiled(function, dtype, 0)
    call = interleaved({"": lambda: scalar(*(x[0] for x in point))}, rounds=20)[""]
    cells = [
        f"{1e9 * best[way] / size:.1f}" if way in best else "–"
        for way in ("ONNX", "SciPy", "NUMBA")
    ]
    session = _session(function, dtype, rounds)
    table.rows.append([function.label, dtype, *cells, f"{1e6 * call:.1f}", f"{1e3 * session:.1f}"])
    table.claim(
        f"{function.label} in {dtype} against SciPy", best["ONNX"] / best["SciPy"], function.bound
    )
    table.claim(f"session of {function.label} in {dtype}, of 50 ms", session / SESSION, 1)
    if function.bound == FORMULA:
        table.claim(f"{function.name} of a scalar in {dtype}, of 40 µs", call / SCALAR, 1)


def _session(function: Timed, dtype: str, rounds: int) -> float:
    """Return the time to create a session of a model with one call."""
    inputs = _inputs(function, dtype, 1)
    program = export_onnx(inputs, function.apply(*inputs), verify=False)
    model, needless = program.proto.SerializeToString(), needless_optimizers(program.model)
    config = INLINE_LATE if inlines_late(needless) else {}
    options = SessionOptions(threads=1, config=config).to_runtime()
    create = partial(InferenceSession, model, options, disabled_optimizers=needless)
    return min(_seconds(create) for _ in range(rounds))


def _seconds(call: Callable[[], object]) -> float:
    start = process_time()
    call()
    return process_time() - start


if __name__ == "__main__":
    measure().show()
