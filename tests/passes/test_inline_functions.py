"""Functions of the model are written out where they are called."""

import sys

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert

from pytensor_onnx import export_onnx
from tests.conftest import called, compare_onnx_and_py

X = np.arange(6.0).reshape(3, 2)
COUNTS = np.array([1, 0, 2])

PLACES = {
    "gradient inside": lambda f: lambda x, n: called(_gradient(f), x, n),
    "gradient outside": lambda f: _gradient(lambda x, n: called(f, x, n)),
    "called twice": lambda f: lambda x, n: called(_gradient(f), called(_gradient(f), x, n), n),
    "nested": lambda f: lambda x, n: called(lambda x, n: called(_gradient(f), x, n), x, n),
    "in a loop": lambda f: (
        lambda x, n: pytensor.scan(
            lambda x, n: called(_gradient(f), x, n) / 4,
            outputs_info=x,
            non_sequences=n,
            n_steps=2,
            return_updates=False,
        )
    ),
}


def _gradient(f):
    return lambda x, n: pt.grad((f(x, n) ** 2).sum(), x)


def _repeats(x, n):
    rows, elements = pt.repeat(x, n, axis=0), pt.repeat(x, n[:1])
    return rows.sum(axis=0) * elements.sum() + pt.repeat(x[:, 0], n).sum()


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_branches_and_loops_say_the_dtypes_of_their_results(place):
    x, n = pt.matrix("x"), pt.lvector("n")
    result = place(_repeats)(x, n)
    program = compare_onnx_and_py([x, n], result, [X / 8, COUNTS], inline_functions=True)
    assert not program.model.functions
    assert "pytensor" not in program.model.opset_imports
    bodies = [
        attribute.as_graph()
        for node in program.model.graph.all_nodes()
        for attribute in node.attributes.values()
        if attribute.type == ir.AttributeType.GRAPH
    ]
    assert bodies
    assert all(output.dtype is not None for body in bodies for output in body.outputs)


def test_names_are_unique_and_constants_are_stored_once():
    x = pt.vector("x")
    program = compare_onnx_and_py(
        [x], pt.erf(pt.erf(x)) + pt.expm1(x) + pt.erfc(x), [X[:, 0]], inline_functions=True
    )
    graph = program.model.graph
    values = [*graph.inputs, *(v for node in graph.all_nodes() for v in node.outputs)]
    names = [*(str(v.name) for v in values), *graph.initializers]
    assert len(set(names)) == len(names)
    nodes = [node.name for node in graph.all_nodes()]
    assert len(set(nodes)) == len(nodes)
    constants = [v.const_value.numpy() for v in graph.initializers.values()]
    contents = [(c.dtype.str, c.shape, c.tobytes()) for c in constants]
    assert len(set(contents)) == len(contents)
    assert "Constant" not in [node.op_type for node in graph.all_nodes()]


def test_checks_raise_their_errors_from_each_call():
    x = pt.scalar("x")
    positive = Assert("x must be positive")
    once = called(lambda x: positive(x, x > 0), x)
    twice = called(lambda x: positive(x, x > 0), once - 1)
    program = export_onnx([x], twice, inline_functions=True)
    assert program(2.0) == 1.0
    for value in (-1.0, 0.5):
        with pytest.raises(AssertionError, match="x must be positive"):
            program(value)


def test_time_is_linear_in_the_calls():
    def count_calls(n_calls):
        x = pt.vector("x")
        y = x
        for _ in range(n_calls):
            y = pt.expm1(y)
        counts = [0]

        def count(frame, event, arg):
            counts[0] += event == "call"

        sys.setprofile(count)
        try:
            export_onnx([x], y, inline_functions=True, verify=False)
        finally:
            sys.setprofile(None)
        return counts[0]

    count_calls(2)
    small, large = count_calls(10), count_calls(40)
    assert large < 5 * small


@pytest.mark.slow
def test_loops_of_definitions_compute_the_same():
    x = pt.matrix("x")
    values = np.array([[1.0, 2, 3], [-2, 1, 0], [0, 0.5, 4]])
    outputs = [pt.linalg.qr(x)[1], pt.linalg.eigh(x + x.T)[0], pt.linalg.schur(x)[0]]
    called, inlined = (
        export_onnx([x], outputs, inline_functions=inline, verify=False)(values)
        for inline in (False, True)
    )
    for expected, found in zip(called, inlined, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
