"""Measure the errors of the catalogue's functions in ONNX Runtime against mpmath.

    python -m scripts.measure_catalogue                     # of all functions
    python -m scripts.measure_catalogue Gumbel MvNormalLogProb matrices

Names are those of `entries`. Operands are numbers of float32 in both dtypes, and their
references have settled: two precisions of mpmath give the same 20 digits.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import onnxruntime

from pytensor_onnx.catalogue.compile_entry import Compiled, compile_entry
from pytensor_onnx.catalogue.distribution_table import CONTINUOUS, DISCRETE, Distribution
from pytensor_onnx.catalogue.entry import Entry
from pytensor_onnx.catalogue.library import DTYPES, entries, model_of
from pytensor_onnx.catalogue.vectors import examples
from scripts import exact_arrays, exact_distributions
from scripts.exact_distributions import Exact
from scripts.exact_special import EXACT as SPECIAL

ROOT = Path(__file__).parents[1]
ERRORS = ROOT / "src" / "pytensor_onnx" / "catalogue" / "errors.json"
BY_NAME = {entry.name: entry for entry in entries()}
PROBABILITIES = (
    *(1e-12, 1e-6, 1e-4, 1e-2, 0.1, 0.25, 0.4),
    *(0.5, 0.6, 0.75, 0.9, 0.99, 0.9999, 1 - 2.0**-20),
)
WANTED = {"float32": 1e-4, "float64": 1e-11}
"""Errors above these are told with their operands."""

REASONS = {
    **dict.fromkeys(
        ("GeneralizedExtremeValue", "GeneralizedPareto"),
        "within 10⁻⁴ of the bound mu - sigma / xi, whose distance has few digits in float32",
    ),
    "Jv": "at orders of 500 to 100,000, with x up to 10⁹",
}
"""Reasons of errors above these, by subject."""

SIZES = (1, 2, 3, 5, 8)
"""Numbers of elements of vectors, and of rows of matrices."""

COUNT = 12
"""Values of each size."""


@dataclass(frozen=True)
class Case:
    """Operands of a function, and its results.

    Attributes
    ----------
    entry
        The function.
    operands
        Arrays of float64, whose numbers are those of float32.
    exact
        For each result an array of numbers of mpmath.
    canonical
        Function of the results that makes them unique.
    """

    entry: Entry
    operands: list[np.ndarray]
    exact: list[np.ndarray]
    canonical: Callable[[list[np.ndarray]], list[np.ndarray]] = list

    @property
    def points(self) -> int:
        """Number of values of the operands."""
        size = self.exact[0].size
        core = self.exact[0].shape[self.exact[0].ndim - len(self.entry.outputs[0].core) :]
        return size // math.prod(core)


def settled(function: Callable[..., Any], *operands: Any) -> Any:
    """Return a result once a higher precision gives the same 20 digits."""
    last: list[Any] | None = None
    for digits in (30, 50, 80, 160, 320, 640, 1280):
        with mp.workdps(digits):
            try:
                found = function(*operands)
            except ZeroDivisionError:
                # A difference of nearly equal numbers.
                last = None
                continue
            numbers = flat(found)
            # A zero may be a difference of equal numbers.
            is_sure = digits >= 160 or all(x != 0 and mp.isfinite(x) for x in numbers)
            if last is not None and is_sure and all(map(_is_close, numbers, last)):
                return found
            last = numbers
    raise ValueError(f"{function} has no result at {operands}")


def _is_close(x: Any, y: Any) -> bool:
    return bool(x == y or abs(x - y) <= abs(x) * mp.mpf("1e-20"))


def flat(result: Any) -> list[Any]:
    """Return the numbers of a result: a number, a list, a matrix, or a tuple of these."""
    if isinstance(result, mp.matrix | list | tuple):
        return [x for part in result for x in flat(part)]
    return [result]


def numbers_of(array: np.ndarray) -> Any:
    """Return a number, a vector or a matrix of mpmath."""
    if array.ndim == 0:
        return mp.mpf(float(array))
    if array.ndim == 1:
        return [mp.mpf(float(x)) for x in array]
    return mp.matrix(array.tolist())


def array_of(result: Any) -> np.ndarray:
    """Return a result of mpmath as an array of objects."""
    shape: tuple[int, ...] = ()
    if isinstance(result, mp.matrix):
        shape = (result.rows, result.cols)
    elif isinstance(result, list):
        shape = (len(result),)
    found = np.empty(shape, object)
    found.reshape(-1)[:] = flat(result)
    return found


def exact_results(
    entry: Entry, function: Callable[..., Any], operands: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Apply a function of numbers, vectors or matrices of mpmath to each element of a batch."""
    batches = [x.shape[: x.ndim - len(a.core)] for x, a in zip(operands, entry.inputs, strict=True)]
    shape = np.broadcast_shapes(*batches)
    given = [
        np.broadcast_to(x, (*shape, *x.shape[x.ndim - len(a.core) :]))
        for x, a in zip(operands, entry.inputs, strict=True)
    ]
    results: list[list[np.ndarray]] = []
    for index in np.ndindex(shape):
        found = settled(function, *(numbers_of(np.asarray(x[index])) for x in given))
        results.append(
            [
                _shaped(array_of(y), a)
                for y, a in zip(_parts(found, entry), entry.outputs, strict=True)
            ]
        )
    stacked = []
    for i in range(len(entry.outputs)):
        parts = [row[i] for row in results]
        whole = np.empty((len(parts), *parts[0].shape), object)
        for k, part in enumerate(parts):
            whole[k] = part if part.ndim else part[()]
        stacked.append(whole.reshape((*shape, *parts[0].shape)))
    return stacked


def _parts(found: Any, entry: Entry) -> Sequence[Any]:
    return found if len(entry.outputs) > 1 else [found]


def _shaped(array: np.ndarray, argument: Any) -> np.ndarray:
    """Return columns of mpmath as vectors where the result has one core axis."""
    return array.reshape(-1) if len(argument.core) == 1 else array


def as_float32(array: Any) -> np.ndarray:
    """Round numbers to float32, and return them in float64."""
    return np.asarray(array, "float32").astype("float64")


def results_of(entry: Entry, dtype: str, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a function in ONNX Runtime."""
    given = [np.asarray(x, a.dtype_in(dtype)) for x, a in zip(operands, entry.inputs, strict=True)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = model_of(_compiled(entry.name, dtype), [x.ndim for x in given])
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [x.name for x in session.get_inputs()]
    return list(session.run(None, dict(zip(names, given, strict=True))))


@cache
def _compiled(name: str, dtype: str) -> Compiled:
    return compile_entry(BY_NAME[name], dtype)


def errors_of(case: Case, dtype: str) -> np.ndarray:
    """Return the error of each number of the results, as `Entry.unit` names it."""
    found = case.canonical(results_of(case.entry, dtype, case.operands))
    errors = []
    wanted = [np.full(x.shape, mp.mpf(0)) for x in found]
    if not case.entry.is_integer:
        wanted = case.canonical(case.exact)
    results = zip(found, wanted, case.entry.outputs, strict=True)
    for given, exact, argument in results:
        values = np.broadcast_to(given, exact.shape)
        scales = _scales(case.entry, exact, len(argument.core), dtype)
        errors += [_error(*row, dtype) for row in zip(values.flat, exact.flat, scales, strict=True)]
    return np.array(errors)


def _scales(entry: Entry, exact: np.ndarray, core: int, dtype: str) -> Iterator[Any]:
    """Yield the number that each error is relative to."""
    if entry.is_of_matrices:
        for matrix in exact.reshape((-1, *exact.shape[exact.ndim - core :])):
            yield from [max(abs(x) for x in matrix.flat)] * matrix.size
        return
    # Numbers near the least normal one have fewer digits.
    least = float(np.finfo(dtype).tiny / np.finfo(dtype).eps) if entry.is_relative else 1.0
    yield from (max(abs(x), least) for x in exact.flat)


def _error(found: Any, exact: Any, scale: Any, dtype: str) -> float:
    if mp.isinf(exact) or abs(exact) > float(np.finfo(dtype).max):
        return 0.0 if float(found) == math.copysign(math.inf, exact) else math.inf
    if not np.isfinite(found):
        return math.inf
    return float(abs(mp.mpf(float(found)) - exact) / scale)


def cases(names: Sequence[str] = ()) -> Iterator[Case]:
    """Yield the cases of named functions, or of all."""
    chosen = {entry.name: entry for entry in entries(names)}
    for of in (*CONTINUOUS, *DISCRETE):
        if any(entry.subject == of.name for entry in chosen.values()):
            yield from of_distribution(of, chosen)
    for entry in chosen.values():
        if entry.family == "special" and entry.name in SPECIAL:
            function, points = SPECIAL[entry.name]
            yield case_of(entry, function, [as_float32(x) for x in points])
        elif entry.family == "bijectors":
            yield from of_bijector(entry)
        elif entry.family == "matrices":
            yield from of_matrix(entry)
        elif entry.family == "vectors" and entry.kind != "random":
            yield from of_vector(entry)


def case_of(entry: Entry, function: Callable[..., Any], operands: list[np.ndarray]) -> Case:
    """Return the case of a function of mpmath."""
    return Case(entry, operands, exact_results(entry, function, operands))


def of_distribution(of: Distribution, chosen: dict[str, Entry]) -> Iterator[Case]:
    """Yield the cases of a distribution of numbers: at its quantiles and beyond them."""
    table = exact_distributions.DISCRETE if of.is_discrete else exact_distributions.CONTINUOUS
    exact = table[of.name]
    _, *parameters = examples(BY_NAME[f"{of.name}LogProb"], "float32")
    given = [x.astype("float64") for x in parameters]
    p = as_float32(PROBABILITIES)[:, None]
    icdf = BY_NAME[f"{of.name}Icdf"]
    (quantiles,) = results_of(icdf, "float64", [p, *given])
    values = points_of(of, exact, quantiles, given)
    functions: dict[str, Callable[..., Any]] = {
        "LogProb": lambda *x: mp.log(exact.density(*x)),
        "Cdf": exact.lower,
        "LogCdf": lambda *x: mp.log(exact.lower(*x)),
        "LogSurvival": lambda *x: mp.log(exact.upper(*x)),
    }
    for suffix, function in functions.items():
        if entry := chosen.get(f"{of.name}{suffix}"):
            yield case_of(entry, function, [values, *given])
    if entry := chosen.get(f"{of.name}LogProbGrad"):
        by = [i for i, x in enumerate(entry.inputs) if x.dtype == "T"]
        yield case_of(entry, partial(gradient, exact.density, by), [values, *given])
    if icdf.name in chosen:
        every = np.broadcast_arrays(p, *given)
        if of.is_discrete:
            yield Case(icdf, [p, *given], [quantiles], partial(surplus, exact, every))
        else:
            rows = zip(*(x.flat for x in (quantiles, *every)), strict=True)
            roots = [quantile(exact, *(mp.mpf(float(x)) for x in row)) for row in rows]
            yield Case(icdf, [p, *given], [np.array(roots).reshape(quantiles.shape)])
    for suffix, moment in (("Mean", exact.mean), ("Variance", exact.variance)):
        if (entry := chosen.get(f"{of.name}{suffix}")) and moment:
            yield case_of(entry, moment, given)


def points_of(
    of: Distribution, exact: Exact, quantiles: np.ndarray, parameters: list[np.ndarray]
) -> np.ndarray:
    """Return quantiles and points beyond them: 1 and 4 times as far, or nearer to a bound."""
    columns = []
    for i, column in enumerate(np.sort(quantiles.astype("float64"), axis=0).T):
        bounds = exact.bounds(*(mp.mpf(float(x[i])) for x in parameters))
        center = column[len(column) // 2]
        low, high = (float(x) for x in bounds)
        further = []
        for times in (1, 4):
            for end, bound in ((column[0], low), (column[-1], high)):
                if of.is_discrete:
                    inner = end + times * np.sign(end - center) * max(abs(end - center), 2)
                    further.append(np.clip(inner, low, high))
                elif np.isfinite(bound):
                    further.append(bound + (end - bound) * 10.0**-times)
                else:
                    further.append(end + times * (end - center))
        every = np.sort([*column, *further])
        if not of.is_discrete:
            every = as_float32(every)
            every = np.where((every > bounds[0]) & (every < bounds[1]), every, as_float32(center))
            # Derivatives differ on the two sides of a parameter.
            is_at = np.isin(every, [x[i] for x in parameters])
            every = np.where(is_at, as_float32(every + 2.0**-8), every)
        columns.append(every)
    return np.array(columns).T


def gradient(density: Callable[..., Any], by: Sequence[int], *operands: Any) -> tuple[Any, ...]:
    """Return the derivatives of a log-density by some of its operands, by differences."""

    def at(i: int, x: Any) -> Any:
        return mp.log(density(*operands[:i], x, *operands[i + 1 :]))

    return tuple(mp.diff(partial(at, i), operands[i]) for i in by)


def quantile(exact: Exact, start: Any, p: Any, *parameters: Any) -> Any:
    """Return a quantile by Newton's method from a number of float64."""
    x = start
    for _ in range(30):
        tail = exact.lower if p < 0.5 else exact.upper
        target, sign = (p, 1) if p < 0.5 else (1 - p, -1)
        found = settled(tail, x, *parameters)
        step = sign * (found - target) / exact.density(x, *parameters)
        x -= step
        if abs(step) <= abs(x) * mp.mpf("1e-12"):
            return x
    raise ValueError(f"no quantile of {p} for {parameters}")


def surplus(
    exact: Exact, operands: Sequence[np.ndarray], quantiles: list[np.ndarray]
) -> list[np.ndarray]:
    """Return the change of the probability for which each integer is the quantile."""
    found = np.empty(quantiles[0].shape)
    for index in np.ndindex(found.shape):
        p, *of = (mp.mpf(float(x[index])) for x in operands)
        k = mp.mpf(int(quantiles[0][index]))
        least, last = exact.bounds(*of)
        if not least <= k <= last:
            raise ValueError(f"{k} is no value of a distribution of {of}")
        below = settled(exact.lower, k - 1, *of) if k > least else mp.mpf(0)
        found[index] = float(max(below - p, p - settled(exact.lower, k, *of), mp.mpf(0)))
    return [found]


def of_vector(entry: Entry) -> Iterator[Case]:
    """Yield the cases of a log-density of vectors, matrices or series, of several sizes."""
    function = exact_arrays.VECTORS[entry.subject]
    for n in SIZES[1:]:
        operands = vectors_of(entry, n, np.random.default_rng(n))
        yield case_of(entry, function, operands)


def vectors_of(entry: Entry, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return random values and parameters of n elements or rows."""

    def covariance(*batch: int) -> np.ndarray:
        a = rng.normal(size=(*batch, n, n))
        return as_float32(a @ np.swapaxes(a, -1, -2) / n + np.eye(n))

    def shares(*batch: int) -> np.ndarray:
        # Multiples of a power of two, whose sum is 1 in float32.
        counts = rng.multinomial(4096 - n, rng.dirichlet(np.ones(n), batch)) + 1
        return counts / 4096

    def factor() -> np.ndarray:
        found = np.linalg.cholesky(covariance(COUNT))
        return as_float32(found / np.linalg.norm(found, axis=-1, keepdims=True))

    of = entry.subject
    made: dict[str, Callable[[], np.ndarray]] = {
        "mu": lambda: rng.normal(size=n),
        "cov": covariance,
        "v": covariance,
        "nu": lambda: np.array(n + 2.5),
        "n": lambda: np.array(20),
        "p": shares,
        "a": lambda: rng.gamma(1.5, size=n) + 0.1,
        "eta": lambda: np.array(1.75),
        "rho": lambda: rng.normal(size=2) / 3,
        "sigma": lambda: np.array(0.7),
        "init_mu": lambda: np.array(0.5),
        "init_sigma": lambda: np.array(2.0),
        "omega": lambda: np.array(0.3),
        "alpha_1": lambda: np.array(0.4),
        "beta_1": lambda: np.array(0.2),
        "initial_vol": lambda: np.array(0.8),
    }
    values: dict[str, Callable[[], np.ndarray]] = {
        "Dirichlet": lambda: shares(COUNT),
        "Multinomial": lambda: rng.multinomial(20, np.full(n, 1 / n), COUNT),
        "DirichletMultinomial": lambda: rng.multinomial(20, np.full(n, 1 / n), COUNT),
        "Categorical": lambda: rng.integers(n, size=COUNT),
        "Wishart": lambda: covariance(COUNT),
        "LKJCorr": lambda: _correlations(covariance(COUNT)),
        "LKJCholesky": factor,
    }
    # Values up to 30 standard deviations from the middle.
    spread = np.geomspace(0.1, 30.0, COUNT)[:, None]
    value = values.get(of, lambda: rng.normal(size=(COUNT, n + 2 * (of == "AR"))) * spread)()
    if of == "GaussianRandomWalk":
        made["mu"] = lambda: np.array(0.2)
    return [as_float32(x) for x in (value, *(made[x.name]() for x in entry.inputs[1:]))]


def _correlations(covariances: np.ndarray) -> np.ndarray:
    roots = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
    found = covariances / roots[:, :, None] / roots[:, None]
    found[:, np.arange(found.shape[1]), np.arange(found.shape[1])] = 1.0
    return as_float32(found)


REALS = np.array([0.0, 1e-6, 0.1, 0.7, 1.5, 3.0, 8.0, 20.0, 60.0])


def of_bijector(entry: Entry) -> Iterator[Case]:
    """Yield the cases of one direction of a bijector, or of its determinant."""
    name = entry.subject
    forward, inverse = exact_arrays.BIJECTORS[name]
    reals = np.concatenate([-REALS[:0:-1], REALS])
    core = BY_NAME[f"{name}Inverse"].inputs[0].core
    if not core:
        bounds = [as_float32(x.example)[:1] for x in entry.inputs[1:]]
        if entry.name.endswith("Forward"):
            yield case_of(entry, forward, [_domain_points(name, bounds), *bounds])
            return
        function = (
            inverse if entry.name.endswith("Inverse") else partial(exact_arrays.log_jacobian, name)
        )
        yield case_of(entry, function, [as_float32(reals), *bounds])
        return
    for n in SIZES[1:]:
        sizes = {"n (n + 1) / 2": n * (n + 1) // 2, "n (n - 1) / 2": n * (n - 1) // 2}
        size = sizes.get(core[0], n - ("-" in core[0]))
        rng = np.random.default_rng(n)
        real = as_float32(rng.normal(size=(COUNT, size)) * np.geomspace(0.1, 4.0, COUNT)[:, None])
        if entry.name.endswith("LogDet"):
            yield case_of(entry, partial(exact_arrays.log_jacobian, name), [real])
        elif entry.name.endswith("Inverse"):
            yield case_of(entry, inverse, [real])
        else:
            # Covariances whose numbers of float32 are positive definite, too.
            (value,) = results_of(BY_NAME[f"{name}Inverse"], "float64", [real / 4.0])
            yield case_of(entry, forward, [as_float32(value)])


def _domain_points(name: str, bounds: list[np.ndarray]) -> np.ndarray:
    near = np.array([1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5])
    units = np.concatenate([near, 1.0 - near[:-1]])
    positives = np.geomspace(1e-6, 1e6, 13)
    found = {
        "LogOdds": lambda: units,
        "Circular": lambda: np.linspace(-3.1, 3.1, 13),
        "Interval": lambda: bounds[0] + units * (bounds[1] - bounds[0]),
        "LowerBound": lambda: bounds[0] + positives,
        "UpperBound": lambda: bounds[0] - positives,
    }.get(name, lambda: positives)()
    return as_float32(found)


def of_matrix(entry: Entry) -> Iterator[Case]:
    """Yield the cases of a function of matrices of several sizes, alone or in a batch."""
    is_batch = entry.name.startswith("Batch")
    name = entry.name.removeprefix("Batch")
    function = exact_arrays.MATRICES[name]
    for n in SIZES:
        rng = np.random.default_rng(n)
        count = 3
        a = rng.normal(size=(count, n, n))
        made = {
            "square": a + np.eye(n),
            "symmetric and positive definite": a @ np.swapaxes(a, -1, -2) / n + np.eye(n),
            "lower triangular": np.tril(a, -1) / n
            + np.eye(n) * rng.uniform(0.5, 2.0, (count, n, 1)),
            "with at least as many rows as columns": rng.normal(size=(count, n + 2, n)),
            "": rng.normal(size=(count, n, 2)),
        }
        operands = [as_float32(made[x.about]) for x in entry.inputs]
        if is_batch:
            exact = exact_results(entry, function, operands)
            yield Case(entry, operands, exact, partial(canonical, name))
            continue
        for i in range(count):
            one = [x[i] for x in operands]
            yield Case(entry, one, exact_results(entry, function, one), partial(canonical, name))


def canonical(name: str, results: list[np.ndarray]) -> list[np.ndarray]:
    """Return factors whose vectors have the sign of their largest element."""
    if name not in ("QR", "Eigh", "SVD"):
        return results
    first, *rest = (np.array(x, dtype=object) for x in results)
    columns = rest[0] if name == "Eigh" else first
    at = np.argmax(abs(columns.astype("float64")), axis=-2)[..., None, :]
    signs = np.sign(np.take_along_axis(columns, at, axis=-2).astype("float64")).astype(int)
    columns = columns * signs
    if name == "Eigh":
        return [first, columns]
    return [columns, *rest[:-1], rest[-1] * np.swapaxes(signs, -1, -2)]


def measure(names: Sequence[str]) -> None:
    """Measure the errors of named functions, or of all, and write them into the package."""
    in_ulp = ulps()
    every = {e.name: in_ulp[e.name] for e in entries(["special"]) if e.name in in_ulp}
    found = read_errors() if names else {name: {"ulp": ulp} for name, ulp in every.items()}
    for name, group in groupby(cases(names), key=lambda case: case.entry.name):
        start = time.perf_counter()
        made = list(group)
        # The table is of bodies that have float64.
        ulp = in_ulp.get(name, {}).get("float64") if name in SPECIAL else None
        found[name] = {} if ulp is None else {"ulp": {"float64": ulp}}
        for dtype in DTYPES[: 1 if ulp is not None else None]:
            errors = [errors_of(case, dtype) for case in made]
            worst(made, errors, dtype)
            found[name][dtype] = rounded_up(max(float(x.max(initial=0.0)) for x in errors))
        found[name]["points"] = sum(case.points for case in made)
        print(name, found[name], f"{time.perf_counter() - start:.1f} s", flush=True)
    save_errors(found)


def worst(made: Sequence[Case], errors: Sequence[np.ndarray], dtype: str) -> None:
    """Print the operands of an elementwise function where its error is larger than wanted."""
    for case, found in zip(made, errors, strict=True):
        if found.max(initial=0.0) > WANTED[dtype] and case.entry.kind == "elementwise":
            at = found.argmax()
            output, i = divmod(at, case.exact[0].size)
            row = [float(x.flat[i]) for x in np.broadcast_arrays(*case.operands)]
            exact = mp.nstr(case.exact[output].flat[i], 9)
            print(" ", case.entry.outputs[output].name, dtype, f"{found[at]:.1e}", row, exact)


def larger_errors() -> Iterator[tuple[Entry, str]]:
    """Yield the functions and dtypes whose errors are above `WANTED`."""
    for name, errors in read_errors().items():
        for dtype, wanted in WANTED.items():
            ulp = errors.get("ulp", {}).get(dtype, 0.0) * float(np.finfo(dtype).eps)
            if max(errors.get(dtype, 0.0), ulp) > wanted:
                yield BY_NAME[name], dtype


def rounded_up(error: float) -> float:
    """Return the next larger number with two digits."""
    if not math.isfinite(error):
        return error
    if error < 1e-20:
        # Less than the digits of the references.
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    return float(f"{math.ceil(error / unit) * unit:.1e}")


def read_errors() -> dict[str, dict[str, Any]]:
    """Return the errors of functions, by dtype."""
    return json.loads(ERRORS.read_text(encoding="utf-8"))


def save_errors(found: dict[str, dict[str, Any]]) -> None:
    """Write the errors of functions into the package, for their documentation."""
    lines = [f"{json.dumps(name)}: {json.dumps(errors)}" for name, errors in sorted(found.items())]
    ERRORS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def ulps() -> dict[str, dict[str, float]]:
    """Return the largest errors of special functions in the table of errors."""
    found: dict[str, dict[str, float]] = {}
    text = (ROOT / "docs" / "reference" / "accuracy.md").read_text(encoding="utf-8")
    for name, wide, narrow in re.findall(
        r"^\| (\w+) \| [^|]* \| ([^|]*) \| ([^|]*) \|", text, re.M
    ):
        for dtype, cell in (("float64", wide), ("float32", narrow)):
            try:
                error = float(cell.split("/")[0])
            except ValueError:
                continue
            best = found.setdefault(name, {})
            best[dtype] = max(best.get(dtype, 0.0), error)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    measure(parser.parse_args().names)
