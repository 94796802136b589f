"""The examples in PyTensor's own docstrings have the same results in mode ONNX as in Python."""

import contextlib
import doctest
import importlib
import io
import re
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.mode import get_mode

from pytensor_onnx.running.executor import ONNXFunction
from tests.conftest import REWRITTEN, assert_same

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

EXAMPLES = [
    "pytensor.compile.builders.OpFromGraph",
    "pytensor.gradient.grad_clip",
    "pytensor.gradient.grad_scale",
    "pytensor.gradient.hessian_vector_product",
    "pytensor.gradient.verify_grad",
    "pytensor.graph.basic.Variable",
    "pytensor.graph.basic.Variable.eval",
    "pytensor.graph.replace.vectorize_graph",
    "pytensor.graph.traversal.explicit_graph_inputs",
    "pytensor.tensor.basic.Split",
    "pytensor.tensor.basic._nd_grid",
    "pytensor.tensor.basic.stack",
    "pytensor.tensor.basic.stacklists",
    "pytensor.tensor.basic.tile",
    "pytensor.tensor.basic.tril",
    "pytensor.tensor.basic.triu",
    "pytensor.tensor.einsum._delta",
    "pytensor.tensor.einsum._general_dot",
    "pytensor.tensor.einsum._iota",
    "pytensor.tensor.extra_ops.Unique",
    "pytensor.tensor.extra_ops.repeat",
    "pytensor.tensor.extra_ops.searchsorted",
    "pytensor.tensor.functional.vectorize",
    "pytensor.tensor.math.deg2rad",
    "pytensor.tensor.math.isclose",
    "pytensor.tensor.math.isfinite",
    "pytensor.tensor.math.rad2deg",
    "pytensor.tensor.pad.pad",
    "pytensor.tensor.subtensor.flip",
    "pytensor.tensor.subtensor.slice_at_axis",
    "pytensor.tensor.utils.shape_of_variables",
    "pytensor.tensor.variable._tensor_py_operators.inc",
    "pytensor.tensor.variable._tensor_py_operators.set",
    "pytensor.xtensor.type.XTensorType.variable_type.inc",
    "pytensor.xtensor.type.XTensorType.variable_type.set",
    "pytensor.xtensor.type.XTensorType.variable_type.unstack",
]
CODE_BLOCK = re.compile(r"^( *)\.\. (?:testcode|code-block|code)::.*$", re.MULTILINE)


def documented(name: str) -> tuple[Any, str]:
    """Return the module that a dotted name starts with, and the docstring that it ends at."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(".".join(parts[:i]))
            break
    found: Any = module
    for part in parts[i:]:
        found = getattr(found, part)
    return module, textwrap.dedent(found.__doc__.expandtabs())


def sources(docstring: str) -> list[str]:
    """Return the statements of an interactive example, or else the blocks of code."""
    interactive = [e.source for e in doctest.DocTestParser().get_examples(docstring)]
    return interactive or [
        block for match in CODE_BLOCK.finditer(docstring) if (block := _block(docstring, match))
    ]


def _block(docstring: str, match: re.Match) -> str:
    indent = len(match[1])
    lines = []
    for line in docstring[match.end() :].splitlines():
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        lines.append(line)
    return textwrap.dedent("\n".join(lines)).strip()


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list that receives what each compiled function returns."""
    received: list[Any] = []
    calls = {"depth": 0}

    def recorded(call: Callable) -> Callable:
        def wrapper(self: Function, *args: Any, **kwargs: Any) -> Any:
            calls["depth"] += 1
            try:
                result = call(self, *args, **kwargs)
            finally:
                calls["depth"] -= 1
            if not calls["depth"]:
                received.extend(result if isinstance(result, list) else [result])
            return result

        return wrapper

    for kind in (Function, ONNXFunction):
        monkeypatch.setattr(kind, "__call__", recorded(kind.__call__))
    return received


def run(name: str, mode: Any, results: list[Any]) -> list[Any]:
    results.clear()
    module, docstring = documented(name)
    names = {**vars(module), "np": np, "pt": pt, "pytensor": pytensor}
    quiet = contextlib.redirect_stdout(io.StringIO())
    with pytensor.config.change_flags(mode=mode, cxx=""), quiet:
        for source in sources(docstring):
            # Some examples show an error, or draw.
            with contextlib.suppress(ValueError, NameError, AssertionError, ImportError):
                exec(compile(source, name, "exec"), names)
    return list(results)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, results: list[Any]) -> None:
    expected = run(name, REWRITTEN, results)
    found = run(name, get_mode("ONNX"), results)
    assert len(found) == len(expected) > 0
    if name.endswith("shape_of_variables"):  # It computes them in the order of a set.
        found, expected = sorted(found), sorted(expected)
    for a, b in zip(found, expected, strict=True):
        # Finite differences amplify rounding; plain examples agree to the last bits.
        rtol = 1e-5 if "grad" in name or "hessian" in name else 1e-12
        assert_same(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-12)
