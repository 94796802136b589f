"""Model-local functions are defined once for all that calls them."""

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder, Described, Meaning
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.operators.dims import dims_of
from tests.graph.conftest import run, value

DOUBLE, FLOAT, INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


def square_plus_half(build, x):
    return build.Add(build.Mul(x, x), 0.5)


def test_a_function_is_defined_once_for_each_dtype(build, scope):
    x, y = value("x"), value("y", FLOAT)
    for _ in range(3):
        build.call("Square", square_plus_half, x)
    result = build.call("Square", square_plus_half, y)
    assert result.dtype == FLOAT
    functions = [local.function for local in scope.functions.values()]
    assert [f.name for f in functions] == ["Square_float64", "Square_float32"]
    assert {f.domain for f in functions} == {"pytensor"}
    assert [node.op_type for node in build.nodes] == ["Square_float64"] * 3 + ["Square_float32"]


def test_a_standard_function_has_the_wanted_name(build, scope):
    def minus_half(build, x):
        return build.Sub(x, 0.5)

    build.call("Other", square_plus_half, value(), key="first")
    build.call("Other", minus_half, value(), key="second", described=Described(is_standard=True))
    build.call("Square", square_plus_half, value(), described=Described(is_standard=True))
    assert [(f.domain, f.name) for f, *_ in scope.functions.values()] == [
        ("pytensor", "Other_float64"),
        ("pytensor", "Other_float64_1"),
        ("pytensor.standard", "Square_float64"),
    ]


def test_a_function_of_the_package_says_what_it_computes(build, scope):
    meaning = Meaning("Square", "float64", 1, {"lower": True, "n": None})
    build.call("Square", square_plus_half, value())
    build.call("Other", square_plus_half, value(), described=Described(meaning=meaning))
    build.call("OfUser", square_plus_half, value(), described=Described())
    assert [Meaning.of(f) for f, *_ in scope.functions.values()] == [
        Meaning("Square", "float64"),
        Meaning("Square", "float64", 1, {"lower": True}),
        None,
    ]


def test_damaged_metadata_say_nothing(build, scope):
    build.call("Square", square_plus_half, value())
    ((function, *_),) = scope.functions.values()
    for text in ("[]", '{"op": 3}', '{"op": "Square", "attributes": []}', "{"):
        function.metadata_props["pytensor.function"] = text
        assert Meaning.of(function) is None


def test_a_function_serves_every_rank(build):
    x, y = value("x", shape=()), value("y", shape=("n", 2, 2))
    results = [build.call("Square", square_plus_half, v) for v in (x, y)]
    found = run(build, [x, y], results, x=np.array(3.0), y=np.full((1, 2, 2), 2.0))
    assert found[0] == 9.5
    np.testing.assert_array_equal(found[1], np.full((1, 2, 2), 4.5))


def test_a_function_body_carries_its_own_constants(build, scope):
    """An ONNX function cannot refer to the initializers of the model."""

    def body(inner, x):
        return inner.cond(
            inner.Greater(inner.ReduceSum(x, keepdims=0), 0.5),
            lambda then: then.Mul(x, 0.5),
            lambda otherwise: otherwise.Mul(x, 0.25),
        )[0]

    x = value()
    result = build.call("Damp", body, x)
    (local,) = scope.functions.values()
    constants = [node for node in local.function if node.op_type == "Constant"]
    assert [float(n.attributes["value"].as_tensor().numpy()) for n in constants] == [0.5, 0.25]
    assert scope.initializers == {}
    np.testing.assert_array_equal(run(build, [x], [result], x=np.ones((1, 3)))[0], [[0.5] * 3])


def test_constants_in_a_function_tell_shapes(build):
    ranks = []

    def body(inner, x):
        column = inner.Reshape(x, inner.ints([-1, 1]))
        ranks.append(dims_of(column))
        return column

    build.call("Column", body, value(), shapes=[(None, 3)])
    assert ranks == [(None, 1)]


def test_functions_call_functions(build):
    def body(inner, x):
        return inner.Neg(inner.call("Square", square_plus_half, x))

    x = value()
    result = build.call("Negative", body, x)
    found = run(build, [x], [result, build.call("Square", square_plus_half, x)], x=np.ones((1, 3)))
    np.testing.assert_array_equal(found[0], -found[1])
    assert found[0][0, 0] == -1.5


def test_a_function_that_returns_a_list_gives_a_list(build):
    x = value()
    results = build.call("Both", lambda inner, x: [x, inner.Neg(x), x], x)
    found = run(build, [x], results, x=np.ones((1, 3)))
    assert [float(f[0, 0]) for f in found] == [1.0, -1.0, 1.0]


def test_different_functions_of_one_name_get_names_of_their_own(build, scope):
    x = value()
    results = [
        build.call("f", lambda inner, x, c=c: inner.Mul(x, c), x, variant="", key=("f", c))
        for c in (2.0, 3.0)
    ]
    names = [local.function.name for local in scope.functions.values()]
    assert names == ["f", "f_1"]
    found = run(build, [x], results, x=np.ones((1, 3)))
    assert [float(f[0, 0]) for f in found] == [2.0, 3.0]


def test_functions_for_other_shapes_have_definitions_of_their_own(build):
    def rows(inner: Builder, x: ir.Value) -> ir.Value:
        return inner.ints([inner.dims(x)[0]])

    x, y = ir.val("x", ir.DataType.DOUBLE, (3, 2)), ir.val("y", ir.DataType.DOUBLE, (5, 2))
    results = [build.call("Rows", rows, v, shapes=[dims_of(v)]) for v in (x, y, x)]
    found = run(build, [x, y], results, x=np.ones((3, 2)), y=np.ones((5, 2)))
    assert [int(v[0]) for v in found] == [3, 5, 3]
    assert len(build.scope.functions) == 2


def test_names_in_a_function_are_its_own(build, scope):
    x = value()
    for _ in range(3):
        build.Mul(x, 1.5)
    build.call("Square", square_plus_half, x)
    name_values(build.nodes, scope.names)
    (local,) = scope.functions.values()
    assert [v.name for v in local.function.inputs] == ["x"]
    assert [v.name for n in local.function for v in n.outputs] == ["constant", "mul", "result"]


def test_functions_have_the_parameters_and_the_summary_of_their_source(build):
    def scaled(build: Builder, amount: ir.Value, rate: ir.Value) -> ir.Value:
        """Scale an amount.

        At a rate.
        """
        return build.Mul(amount, rate)

    build.call("Scaled", scaled, value(), value())
    (local,) = build.scope.functions.values()
    assert [v.name for v in local.function.inputs] == ["amount", "rate"]
    assert local.function.doc_string == "Scale an amount."
