"""Shared test helpers: the comparison of mode ONNX and of the exported file with PyTensor."""

import importlib
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytensor
import pytest
from hypothesis import HealthCheck, settings
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import OPT_FAST_COMPILE, OPT_NONE, Mode
from pytensor.graph.basic import Variable
from pytensor.scalar.basic import autocast_float, autocast_int
from pytensor.tensor.random.op import RandomVariable

from pytensor_onnx import ONNXProgram, export_onnx
from pytensor_onnx.exporting.verification.results import TakeManyOperands
from tests import coverage_recorder

RELATIVE_TOLERANCE = {
    "float64": 1e-12,
    "float32": 1e-5,
    "float16": 1e-2,
    "complex128": 1e-12,
    "complex64": 1e-5,
}
_MANY = (TakeManyOperands(), 200)
PY = Mode("py", OPT_NONE.register(_MANY))
"""The graph as it is written."""

REWRITTEN = Mode("py", OPT_FAST_COMPILE.register(_MANY))
"""For graphs that PyTensor cannot compute, or not with accuracy, as they are written."""

# A rewrite that fails is no test that passes.
pytensor.config.on_opt_error = "raise"

# References are computed in Python: C takes seconds to compile for each graph that is new. One
# module of PyTensor cannot be imported without a compiler.
importlib.import_module("pytensor.link.c.cutils")
pytensor.config.cxx = ""

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("repeatable")


class Zipf(RandomVariable):
    """A distribution that no sampler is defined for."""

    name, signature, dtype = "zipf", "()->()", "int64"


def pytest_sessionfinish() -> None:
    coverage_recorder.write()


_STATES: dict[np.random.Generator, Any] = {}
"""States of the generators of test modules after collection."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Record the states of the generators of modules, and mark cases as slow or of the sweep."""
    for module in {getattr(item, "module", None) for item in items}:
        for value in vars(module).values() if module else ():
            if isinstance(value, np.random.Generator):
                _STATES[value] = value.bit_generator.state
    for tests in _cases(items, "each_value"):
        for test in set(tests) - set(_fewest_with_each_value(tests)):
            test.add_marker(pytest.mark.sweep)
    for tests in _cases(items, "few"):
        number = tests[0].get_closest_marker("few").args[0]
        kept = {tests[i * len(tests) // number] for i in range(number)}
        for test in set(tests) - kept:
            test.add_marker(pytest.mark.slow)


def _cases(items: Iterable[pytest.Item], mark: str) -> list[list[pytest.Function]]:
    """Return the cases of each test function with a mark, without those that are run by hand."""
    functions: dict[str, list[pytest.Function]] = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if mark in marks and not marks & {"sweep", "compiled"}:
            assert isinstance(item, pytest.Function)
            functions.setdefault(item.nodeid.split("[")[0], []).append(item)
    return list(functions.values())


_IN_MODE: set[str] = set()
"""Tests whose comparisons run mode ONNX besides the exported file."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compare mode ONNX in the first test of each function, and in all where the sweep runs.

    The mode and the export rewrite and convert a graph alike, so that they take the same time.
    What differs, the boundary between a function and the runtime, seldom depends on parameters;
    where it does, the mark `in_mode` compares the mode in every test.
    """
    functions: dict[str, str] = {}
    for item in session.items:
        functions.setdefault(item.nodeid.split("[")[0], item.nodeid)
    every = "not sweep" not in session.config.option.markexpr
    _IN_MODE.update(functions.values())
    _IN_MODE.update(i.nodeid for i in session.items if every or i.get_closest_marker("in_mode"))


def _fewest_with_each_value(tests: Sequence[pytest.Function]) -> Iterator[pytest.Function]:
    """Yield tests of one function that together have each value of each parameter.

    Those with most new values come first; of equal ones, those with values that few have.
    """
    values = {test: _values(test) for test in tests}
    times = dict.fromkeys(set().union(*values.values()), 0)

    def worth(test: pytest.Function) -> tuple[int, int]:
        counts = [times[value] for value in values[test]]
        return counts.count(0), -sum(counts)

    while 0 in times.values():
        best = max(tests, key=worth)
        for value in values[best]:
            times[value] += 1
        yield best


def _values(test: pytest.Function) -> set[tuple[int, ...]]:
    """Return the identities of the values that each parametrization gives a test."""
    names = [mark.args[0] for mark in test.iter_markers("parametrize")]
    names = [n.replace(" ", "").split(",") if isinstance(n, str) else n for n in names]
    return {(i, *(id(test.callspec.params[n]) for n in each)) for i, each in enumerate(names)}


def sweep_rest(values: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """Return the values of a parameter; values outside of ``kept`` get the mark ``sweep``."""
    swept = pytest.mark.sweep
    return [
        v if v in kept else pytest.param(*(v if isinstance(v, tuple) else [v]), marks=swept)
        for v in values
    ]


@pytest.fixture(autouse=True)
def _draw_the_same_numbers_in_any_order(request: pytest.FixtureRequest) -> None:
    """Start the generators of a module anew for each test."""
    for value in vars(request.module).values() if request.module else ():
        if isinstance(value, np.random.Generator) and value in _STATES:
            value.bit_generator.state = _STATES[value]


def called(function: Callable, *arguments: Variable) -> Variable | list[Variable]:
    """Return a function's results, computed by a function of the model that takes arguments."""
    inputs = [a.type() for a in arguments]
    results = function(*inputs)
    results = list(results) if isinstance(results, list | tuple) else [results]
    return OpFromGraph(inputs, results, on_unused_input="ignore")(*arguments)


@contextmanager
def numbers_in_double() -> Iterator[None]:
    """Have PyTensor make float64 and int64 constants of Python numbers.

    It makes float32 ones of 2.0, and PyMC's own log-densities are off by 1e-8; ours are not
    (`tests/pymc/test_numbers.py`).
    """
    before = autocast_float.dtypes, autocast_int.dtypes
    autocast_float.dtypes, autocast_int.dtypes = ("float64",), ("int64",)
    try:
        yield
    finally:
        autocast_float.dtypes, autocast_int.dtypes = before


def compare_onnx_and_py(
    inputs: Sequence[Variable],
    outputs: Variable | Sequence[Variable],
    values: Sequence[Any],
    *,
    also: Iterable[Sequence[Any]] = (),
    rtol: float | None = None,
    atol: float = 0.0,
    eps: float | None = None,
    signed_zeros: bool = False,
    reference: Mode = PY,
    **export_options: Any,
) -> ONNXProgram:
    """Assert that the exported model and mode ONNX give PyTensor's values, dtypes and shapes.

    By default only the first test of a function runs mode ONNX: see `pytest_collection_finish`.

    Parameters
    ----------
    inputs, outputs
        Graph; the inputs are not constant, so that the lowering itself runs.
    values
        One array for each input.
    also
        Values of further calls of the same model.
    rtol, atol
        Tolerances; by default 1e-12, 1e-5 or 1e-2 relative by dtype, and none absolute.
    eps
        Both tolerances in units of the rounding error of each dtype, in place of the others.
    signed_zeros
        Whether zeros must have the same sign.
    reference
        Mode of PyTensor that gives the values.

    Returns
    -------
    ONNXProgram
        The exported model, for assertions on its structure.
    """
    results, inputs = _listed(outputs), list(inputs)
    # Inner graphs of Ops would be compiled by a C compiler otherwise.
    with pytensor.config.change_flags(cxx=""), np.errstate(all="ignore"):
        function = pytensor.function(inputs, results, mode=reference, on_unused_input="ignore")
    program = export_onnx(inputs, results, verify=False, **export_options)
    calls: list[Callable] = [program]
    if os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0] in _IN_MODE:
        in_mode = pytensor.function(inputs, results, mode="ONNX", on_unused_input="ignore")
        calls.insert(0, in_mode)
    for k, arrays in enumerate((values, *also)):
        with pytensor.config.change_flags(cxx=""), np.errstate(all="ignore"):
            expected = function(*arrays)
        for found in (call(*arrays) for call in calls):
            for variable, a, b in zip(
                results, map(dense, found), map(dense, expected), strict=True
            ):
                try:
                    assert_same(a, b, rtol=rtol, atol=atol, eps=eps, signed_zeros=signed_zeros)
                except AssertionError as error:
                    error.add_note(f"output {variable} of call {k}")
                    raise
            for a, b in zip(found, expected, strict=True):
                assert getattr(a, "format", None) == getattr(b, "format", None)
        truths = list(map(dense, expected))
        coverage_recorder.record(program, list(map(dense, found)), truths, atol)
    coverage_recorder.record_rewritten(results)
    return program


Case = tuple[Sequence[Variable], Variable | Sequence[Variable], Sequence[Any]]


def compare_together(cases: Mapping[Any, Case], **options: Any) -> ONNXProgram:
    """Compare the graphs of several cases, joined in one model, as `compare_onnx_and_py` does.

    Parameters
    ----------
    cases
        Inputs, outputs and values of each case by its name; no two share an input.
    options
        Options of `compare_onnx_and_py`.

    Returns
    -------
    ONNXProgram
        The model of all cases.

    Raises
    ------
    Exception
        The first error of a case that fails by itself, with its name; else that of all together.
    """
    inputs = [v for variables, _, _ in cases.values() for v in variables]
    values = [v for _, _, arrays in cases.values() for v in arrays]
    outputs = [v for _, results, _ in cases.values() for v in _listed(results)]
    try:
        return compare_onnx_and_py(inputs, outputs, values, **options)
    except Exception:
        for name, case in cases.items():
            try:
                compare_onnx_and_py(*case, **options)
            except Exception as error:
                error.add_note(f"case {name}")
                raise
        raise


@contextmanager
def raises_for(case: Any, error: type[Exception], match: str) -> Iterator[None]:
    """Assert that an error is raised, and name the case if it is not."""
    try:
        with pytest.raises(error, match=match):
            yield
    except BaseException as failure:
        failure.add_note(f"case {case}")
        raise


def _listed(results: Variable | Sequence[Variable]) -> list[Variable]:
    return [results] if isinstance(results, Variable) else list(results)


def dense(value: Any) -> Any:
    """Return the dense array of a sparse matrix, and other values as they are."""
    return value.toarray() if hasattr(value, "toarray") else value


def assert_same(
    found: np.ndarray,
    expected: np.ndarray,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    eps: float | None = None,
    signed_zeros: bool = False,
) -> None:
    """Assert equal dtypes, shapes and values, NaN equal to NaN."""
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype.kind in "fc":
        if eps is not None:
            rtol = atol = eps * float(np.finfo(expected.dtype).eps)
        relative = RELATIVE_TOLERANCE[str(expected.dtype)] if rtol is None else rtol
        np.testing.assert_allclose(found, expected, rtol=relative, atol=atol)
        if signed_zeros and expected.dtype.kind == "c":
            for a, b in ((found.real, expected.real), (found.imag, expected.imag)):
                zeros = (a == 0) & (b == 0)
                np.testing.assert_array_equal(np.signbit(a)[zeros], np.signbit(b)[zeros])
        elif signed_zeros:
            zeros = (found == 0) & (expected == 0)
            np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(expected)[zeros])
    else:
        np.testing.assert_array_equal(found, expected)


class GatherElements(OpRun):
    """The evaluator's own takes at most 64 elements (`docs/project/limits.md`)."""

    op_domain = ""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int | None = None) -> tuple:
        return (np.take_along_axis(data, indices.astype("int64"), axis or 0),)


class Evaluator(ReferenceEvaluator):
    """The reference evaluator of the onnx package, for graphs and the functions in them."""

    def __init__(self, proto: Any, **options: Any) -> None:
        super().__init__(proto, **options | {"new_ops": [GatherElements]})


def evaluate_reference(program: ONNXProgram, *values: Any) -> list[np.ndarray]:
    """Run a model in the reference evaluator of the onnx package."""
    names = [value.name for value in program.proto.graph.input]
    feeds = dict(zip(names, map(np.asarray, values), strict=True))
    with np.errstate(all="ignore"):
        return Evaluator(program.proto).run(None, feeds)


def op_types(program: ONNXProgram) -> list[str]:
    """Return the operators of a model's main graph in order, functions by their name."""
    return [node.op_type for node in program.model.graph]
