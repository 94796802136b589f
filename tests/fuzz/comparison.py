"""Comparison of a random graph in mode ONNX and as an exported file with PyTensor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor

from pytensor_onnx import ONNXProgram, SessionOptions, UnsupportedOpError, export_onnx
from tests.conftest import Evaluator
from tests.fuzz.cases import Case
from tests.fuzz.references import Reference


def check(case: Case) -> None:
    """Assert that mode ONNX and the exported model give what PyTensor gives, and fail as it does.

    Where something infinite or NaN goes into a result and PyTensor's own rewrites change it (they
    may: ``x * 0`` becomes 0), the result of the rewritten graph in PyTensor's Python implementation
    is as good, element by element. So is whether it fails.
    """
    graph = case.graph
    inputs, outputs = [t.variable for t in graph.inputs], [t.variable for t in case.outputs]
    updates = {state.variable: new.variable for state, new in case.updates}
    reference = Reference(case, case.arguments)

    def compiled() -> tuple[Callable[..., list[Any]], ONNXProgram]:
        function = pytensor.function(
            inputs, outputs, updates=updates, mode="ONNX", on_unused_input="ignore"
        )
        program = export_onnx(
            inputs, outputs, updates=updates, verify=False, **case.options, **_session(case)
        )
        return function, program

    try:
        function, program = compiled()
    except UnsupportedOpError:
        raise
    except Exception:
        # What fails for all values of the inputs may fail in compiling.
        if reference.fails:
            return
        if not reference.has_failing_rewrite:
            raise
        with pytensor.config.change_flags(on_opt_error="ignore"):
            function, program = compiled()
    evaluate = _evaluator(program)
    initial = [(t.variable, t.value) for t in graph.shared]

    def call_function(*values: Any) -> list[Any]:
        for state, value in initial:
            state.set_value(value)
        results = function(*values)
        return [*results, *(state.variable.get_value() for state, _ in case.updates)]

    def call_program(*values: Any) -> list[Any]:
        return [*program(*values), *program.state.values()]

    reference.compare(call_function, "mode ONNX")
    try:
        reference.compare(call_program, "the exported model", frozen=True)
    except Exception:
        if not case.is_standard:
            raise
        # The runtime's weak kernels, which other targets do without, are no fault of the model.
        reference.compare(evaluate, "the standard model, by onnx", frozen=True)
    if case.resized:
        resized = Reference(case, case.resized_values(), is_resized=True)
        resized.compare(call_function, "a call with other sizes")


def _session(case: Case) -> dict[str, Any]:
    """Return how the model runs: without the runtime's rewrites if it was made for no runtime."""
    return {"session_options": SessionOptions(optimization="none")} if case.is_standard else {}


def _evaluator(program: ONNXProgram) -> Callable[..., list[Any]]:
    """Return what runs a model, with its first state, in the reference evaluator of onnx."""
    first = {name: np.array(value) for name, value in program.state.items()}

    def call(*values: Any) -> list[Any]:
        given = dict(zip([v.name for v in program.inputs], values, strict=True))
        return Evaluator(program.proto).run(None, {**given, **first})

    return call
