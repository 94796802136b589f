"""Unsupported operations are named as the user wrote them, once, with the line of code."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.compile.ops import wrap_py
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import ONNXLinker, UnsupportedOpError, VerificationError, export_onnx
from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.rewriting import ONNX_QUERY
from pytensor_onnx.rules import without
from tests.conftest import Zipf

HERE = Path(__file__).name
a, b, m = pt.matrix("a"), pt.matrix("b"), pt.matrix("m")
v, w, t = pt.vector("v"), pt.vector("w"), pt.tensor3("t")
INPUTS = [a, b, m, v, w, t]


class Rosette(UnaryScalarOp):
    """Stand for an elementwise operation that nothing converts."""

    def impl(self, x):
        return np.cos(3 * x)

    def pullback(self, inputs, outputs, output_gradients):
        return [output_gradients[0] * self(inputs[0])]


rosette = Elemwise(Rosette(upgrade_to_float, name="rosette"))


@pytest.fixture(autouse=True)
def _no_linear_algebra(monkeypatch):
    """Take the definitions away, since PyTensor's rewrites change these operations the most."""
    import_modules("pytensor_onnx.functions.linalg")
    for op_type in list(DEFINITIONS):
        if op_type.__module__.startswith("pytensor.tensor.linalg"):
            monkeypatch.delitem(DEFINITIONS, op_type)


def errors(result):
    """Yield what export and mode raise for a graph, the mode if nothing may run in Python."""
    strict = Mode(ONNXLinker(python_fallback=False), ONNX_QUERY)
    for convert in (
        lambda: export_onnx(INPUTS, result, verify=False),
        lambda: pytensor.function(INPUTS, result, mode=strict, on_unused_input="ignore"),
    ):
        with pytest.raises(UnsupportedOpError) as raised:
            convert()
        yield str(raised.value)


def subjects(message):
    return re.findall(r"^- (.*)$", message, re.MULTILINE)


def lines(message):
    return re.findall(rf"    made at: .*{HERE}:(\d+)  ", message)


LINEAR_ALGEBRA = {
    "cho_solve": lambda: pt.linalg.cho_solve((a, True), b),
    "cholesky": lambda: pt.linalg.cholesky(a),
    "det": lambda: pt.linalg.det(a),
    "eigh": lambda: pt.linalg.eigh(a)[0],
    "eigvalsh": lambda: pt.linalg.eigvalsh(a, b),
    "expm": lambda: pt.linalg.expm(a),
    "inv": lambda: pt.linalg.inv(a),
    "lstsq": lambda: pt.linalg.lstsq(a, v, -1.0)[0],
    "lu": lambda: pt.linalg.lu(a)[0],
    "lu_factor": lambda: pt.linalg.lu_factor(a)[0],
    "lu_solve": lambda: pt.linalg.lu_solve((a, v.astype(int)), b),
    "matrix_power": lambda: pt.linalg.matrix_power(a, -2),
    "norm": lambda: pt.linalg.norm(a, ord="nuc"),
    "pinv": lambda: pt.linalg.pinv(a),
    "qr": lambda: pt.linalg.qr(a)[0],
    "schur": lambda: pt.linalg.schur(a)[0],
    "slogdet": lambda: pt.linalg.slogdet(a)[1],
    "solve": lambda: pt.linalg.solve(a, b),
    "solve_sylvester": lambda: pt.linalg.solve_sylvester(a, b, m),
    "solve_triangular": lambda: pt.linalg.solve_triangular(a, b, lower=True),
    "svd": lambda: pt.linalg.svd(a)[1],
    "tensorinv": lambda: pt.linalg.tensorinv(a, 1),
    "tensorsolve": lambda: pt.linalg.tensorsolve(a, b),
}


@pytest.mark.parametrize(("name", "operation"), LINEAR_ALGEBRA.items(), ids=LINEAR_ALGEBRA)
def test_linear_algebra_is_named_as_it_was_called(name, operation):
    for message in errors(operation()):
        assert subjects(message) == [name]
        assert lines(message) == [str(inspect.getsourcelines(operation)[1])]
        assert f"reason:  no lowering is registered for pt.linalg.{name}\n" in message
        assert "instead: write the expression with supported operations" in message


def inverse_of(x):
    return pt.linalg.inv(x)


REWRITTEN = {
    "product with an inverse": lambda: inverse_of(a) @ b,
    "product with its transpose": lambda: b @ inverse_of(a).T,
    "gradient of an inverse": lambda: pt.grad(inverse_of(a).sum(), a),
    "batch": lambda: inverse_of(t),
    "several uses": lambda: [inverse_of(a) @ b, inverse_of(a) @ m],
}


@pytest.mark.parametrize("operation", REWRITTEN.values(), ids=REWRITTEN)
def test_operations_that_rewrites_replace_are_named_as_they_were_written(operation):
    for message in errors(operation()):
        assert subjects(message) == ["inv"]
        made_at = {inspect.getsourcelines(inverse_of)[1] + 1, inspect.getsourcelines(operation)[1]}
        assert set(map(int, lines(message))) <= made_at
        assert "LUFactor" not in message


@pytest.mark.slow
def test_operations_within_loops_are_named_as_they_were_written():
    def step(x):
        return pt.tanh(inverse_of(x) @ b)

    result = pytensor.scan(step, outputs_info=[a], n_steps=3, return_updates=False)
    for graph in (result, pt.grad(result.sum(), a)):
        for message in errors(graph):
            assert subjects(message) == ["inv"]
            assert set(lines(message)) == {str(inspect.currentframe().f_lineno - 4)}


def test_operations_within_functions_are_named_as_they_were_written():
    x = pt.matrix("x")
    op = OpFromGraph([x], [inverse_of(x) @ x], name="whiten")
    for message in errors(op(a)):
        assert subjects(message) == ["inv"]
        assert set(lines(message)) == {str(inspect.currentframe().f_lineno - 2)}


def test_each_line_is_listed_once():
    first = inverse_of(a) + inverse_of(a * 2)
    second = pt.linalg.inv(b)
    for message in errors([first, second, rosette(v)]):
        assert sorted(subjects(message)) == ["Rosette", "inv", "inv"]


@pytest.mark.slow
def test_gradients_have_the_line_of_the_user():
    x = v
    for _ in range(12):
        x = pt.tanh(pt.cumsum(x) * w)
    cost = rosette(x).sum()
    for message in errors(pt.grad(cost, v)):
        assert subjects(message) == ["Rosette"]
        assert len(lines(message)) == 1


def test_a_python_function_is_named_with_a_way_out():
    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def my_function(x):
        return x + 1

    for message in errors(my_function(v)):
        assert subjects(message) == ["my_function"]
        assert len(lines(message)) == 1
        assert (
            "reason:  wrap_py calls a Python function, and ONNX runtimes run no Python" in message
        )
        assert (
            "instead: write the function with PyTensor's operations, or as an Op with a" in message
        )


def test_a_distribution_without_a_sampler_is_not_among_those_to_draw_from():
    rng = pt.random.shared_rng(seed=1)
    _, draw = Zipf()(v, rng=rng, return_next_rng=True)
    for message in errors(draw):
        assert subjects(message) == ["zipf"]
        known = message.partition("draw from one of these distributions: ")[2].split(", ")
        assert "normal" in known
        assert "zipf" not in known


def test_a_session_says_which_kernels_the_runtime_lacks():
    result = pt.erf(v) + pt.tan(v) + pt.erf(w) + pt.exp(v)
    with without("legalise"), pytest.raises(VerificationError) as raised:
        export_onnx([v, w], result)
    message = str(raised.value)
    assert re.search(
        r"the installed ONNX Runtime [\d.]+ has no kernel for (Erf in float64, Tan in float64|"
        r"Tan in float64, Erf in float64)\. For another runtime export with verify=False, for "
        r'this one with target="onnxruntime"\.\n    runtime:  \[ONNXRuntimeError\]',
        message,
    )
    export_onnx([v, w], result)
