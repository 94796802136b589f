"""Values are followed through calls as if functions stood in their place."""

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse

from pytensor_onnx import export_onnx
from pytensor_onnx.passes.forms.guard_forms import Inlined
from tests.passes.conftest import bare

X = np.array([1.0, -2.0])


def turned(build, x):
    return build.Neg(x)


def passed_on(build, x, factor):
    return build.Mul(build.call("Turned", turned, x), factor)


def node_of(model, op_type):
    graphs = (model.model.graph, *model.model.functions.values())
    return next(n for graph in graphs for n in graph.all_nodes() if n.op_type == op_type)


@pytest.fixture
def nested():
    """Return a model in which x goes through Exp, two functions and Log."""
    return bare(
        lambda build, x: build.Log(
            build.call("PassedOn", passed_on, build.Exp(x), build.constant(0.1))
        ),
        X,
    )


def test_an_argument_comes_from_the_caller_of_the_caller(nested):
    origins = Inlined(nested.model).origins(node_of(nested, "Neg").inputs[0])
    assert [v.producer().op_type for v in origins] == ["Exp"]


def test_a_result_comes_from_within_the_function(nested):
    origins = Inlined(nested.model).origins(node_of(nested, "Log").inputs[0])
    assert [v.producer().op_type for v in origins] == ["Mul"]


def test_users_are_nodes_of_functions_and_of_callers(nested):
    inlined = Inlined(nested.model)
    found = [
        [user.op_type for user in inlined.users(node_of(nested, op_type).outputs[0])]
        for op_type in ("Exp", "Neg", "Mul")
    ]
    assert found == [["Neg"], ["Mul"], ["Log"]]


def test_a_function_that_is_called_with_its_own_result_has_all_origins():
    def twice(build, x):
        return build.call("Turned", turned, build.call("Turned", turned, build.Exp(x)))

    model = bare(twice, X)
    inlined = Inlined(model.model)
    neg = node_of(model, "Neg")
    assert {v.producer().op_type for v in inlined.origins(neg.inputs[0])} == {"Exp", "Neg"}
    assert [user.op_type for user in inlined.users(neg.outputs[0])] == ["Neg"]


def test_nodes_of_constants_may_be_folded(nested):
    folded = Inlined(nested.model).folded
    mul = node_of(nested, "Mul")
    assert [v in folded for v in (*mul.inputs, *mul.outputs)] == [False, True, False]
    model = bare(
        lambda build, x: build.Add(x, build.call("Turned", turned, build.constant(2.0))), X
    )
    add = node_of(model, "Add")
    assert [v in Inlined(model.model).folded for v in add.inputs] == [False, True]


def test_an_identity_and_the_branches_of_a_condition_are_gone():
    x = pt.vector("x")
    chosen = ifelse(x.shape[0] > 1, pt.exp(x), pt.log(x))
    model = export_onnx([x], -chosen, verify=False).model
    neg = next(node for node in model.graph if node.op_type == "Neg")
    origins = Inlined(model).origins(neg.inputs[0])
    assert {v.producer().op_type for v in origins} == {"Exp", "Log"}
    # The branches read x, though the condition is made of a size alone.
    assert neg.outputs[0] not in Inlined(model).folded


def test_sizes_are_folded_and_whole():
    def emit(build, x):
        size = build.Cast(build.Shape(x, start=0, end=1), to=int(ir.DataType.DOUBLE))
        root = build.Sqrt(build.Mul(size, size))
        return build.Add(x, build.Mul(root, build.Div(build.constant(1.0), size)))

    for make in (emit, lambda build, x: build.call("Emitted", emit, x)):
        model = bare(make, X)
        for function in model.model.functions.values():
            for node in function:
                node.outputs[0].type = None
        inlined = Inlined(model.model)
        root, quotient, total = (
            node_of(model, op_type).outputs[0] for op_type in ("Sqrt", "Div", "Add")
        )
        assert [v in inlined.folded for v in (root, quotient, total)] == [True, True, False]
        assert [inlined.is_integral(v) for v in (root, quotient)] == [True, False]
        assert {inlined.dtype(v) for v in (root, quotient)} == {ir.DataType.DOUBLE}


def test_dtypes_are_traced_through_a_function_of_its_own_result():
    def halved(build, x):
        return build.Mul(x, 0.5)

    def twice(build, x):
        half = build.call("Halved", halved, build.constant(1.0))
        return build.Add(x, build.call("Halved", halved, half))

    model = bare(twice, X)
    mul = node_of(model, "Mul")
    mul.outputs[0].type = None
    assert Inlined(model.model).dtype(mul.outputs[0]) == ir.DataType.DOUBLE
