"""Elementwise operators have the bits of ONNX Runtime's kernels."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.kernels.conftest import assert_same_bits, model_of, values

FLOATS, INTEGERS = ["float64", "float32"], ["int64", "int32", "uint64", "uint32", "uint8"]
SHAPES = [((), ()), ((5,), (5,)), ((0,), (1,)), ((3, 1), (1, 4)), ((2, 3), ()), ((), (700,))]
SHAPES += [
    ((0, 3), (3,)),
    ((2, 0), (2, 1)),
    ((2, 3, 4), (3, 1)),
    ((1500,), (1500,)),
    ((1, 1), (3,)),
    ((30, 40), (40,)),
]
COMPARISONS = ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]
KINDS = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT, "bool": TensorProto.BOOL}
KINDS |= {name: getattr(TensorProto, name.upper()) for name in INTEGERS}
UNSIGNED = ["uint64", "uint32", "uint8"]


def cases():
    for name in ("Add", "Sub", "Mul", "Max", "Min"):
        yield from ((name, dtype, dtype, {}) for dtype in FLOATS + INTEGERS)
    yield from (("Div", dtype, dtype, {}) for dtype in FLOATS)
    yield from (("Mod", dtype, dtype, {"fmod": 1}) for dtype in FLOATS)
    yield from ((name, d, "bool", {}) for name in COMPARISONS for d in FLOATS + INTEGERS)
    yield from ((name, "bool", "bool", {}) for name in ("And", "Or", "Xor", "Equal"))
    for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield from ((name, dtype, dtype, {}) for dtype in INTEGERS)
    for way in ("LEFT", "RIGHT"):
        yield from (("BitShift", d, d, {"direction": way}) for d in UNSIGNED)


# The sign of the greater of two zeros is left open, and differs within one array of float32.
def without_zeros_of_two_signs(name, x):
    return np.where(x == 0, np.zeros((), x.dtype), x) if name in ("Max", "Min") else x


@pytest.mark.parametrize(("name", "dtype", "result", "attributes"), list(cases()))
@pytest.mark.few(17)
def test_operators_of_two_operands(name, dtype, result, attributes, run_both):
    for i, shapes in enumerate(SHAPES):
        feed = {
            key: without_zeros_of_two_signs(name, values(dtype, shape, 2 * i + k))
            for k, (key, shape) in enumerate(zip("ab", shapes, strict=True))
        }
        node = helper.make_node(name, ["a", "b"], ["out"], **attributes)
        [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[result]}), feed)
        assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["Div", "Mod"])
def test_integer_division(name, dtype, run_both):
    feed = {"a": values(dtype, (4, 5), 1), "b": values(dtype, (5,), 2)}
    feed["b"][feed["b"] == 0] = 3
    if feed["b"].dtype.kind == "i":
        feed["b"][feed["b"] == -1] = 2
    node = helper.make_node(name, ["a", "b"], ["out"])
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)
    assert_same_bits(found, expected)


def unary_cases():
    for name in ("Neg", "Abs", "Sign", "Reciprocal", "Relu", "Sqrt", "Floor", "Ceil", "Round"):
        yield from ((name, dtype, dtype, {}) for dtype in FLOATS)
    for name in ("Abs", "Sign", "BitwiseNot"):
        yield from ((name, dtype, dtype, {}) for dtype in INTEGERS)
    yield from (("Neg", dtype, dtype, {}) for dtype in ("int64", "int32"))
    yield from (("IsNaN", dtype, "bool", {}) for dtype in FLOATS)
    for dtype in FLOATS:
        yield "IsInf", dtype, "bool", {}
        yield "IsInf", dtype, "bool", {"detect_negative": 0}
        yield "IsInf", dtype, "bool", {"detect_positive": 0}
    yield "Not", "bool", "bool", {}
    for source in KINDS:
        for to in KINDS:
            if to != source and not (source in FLOATS and to == "uint32"):
                yield "Cast", source, to, {"to": KINDS[to]}


@pytest.mark.parametrize(("name", "dtype", "result", "attributes"), list(unary_cases()))
@pytest.mark.few(47)
def test_operators_of_one_operand(name, dtype, result, attributes, run_both):
    for i, shape in enumerate([(), (0, 3), (7,), (3, 5), (1300,)]):
        feed = {"a": values(dtype, shape, i)}
        node = helper.make_node(name, ["a"], ["out"], **attributes)
        [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[result]}), feed)
        assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0, 1.7, 0.0, None])
def test_powers(dtype, exponent, run_both):
    feed = {"a": values(dtype, (200,)), "b": values(dtype, (200,), 1)}
    if exponent is not None:
        feed["b"] = np.asarray(exponent, dtype)
    node = helper.make_node("Pow", ["a", "b"], ["out"])
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)
    np.testing.assert_array_max_ulp(found[~np.isnan(expected)], expected[~np.isnan(expected)], 1)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32", "uint8"])
@pytest.mark.parametrize("shapes", [((), (), ()), ((6,), (6,), (6,)), ((3, 1), (), (4,))])
def test_where(dtype, shapes, run_both):
    kinds = ("bool", dtype, dtype)
    feed = {k: values(d, s, 3) for k, d, s in zip("cab", kinds, shapes, strict=True)}
    node = helper.make_node("Where", ["c", "a", "b"], ["out"])
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32", "uint64", "uint32", "uint8"])
@pytest.mark.parametrize("bounds", [("low", "high"), ("low", ""), ("", "high"), ("high", "low")])
def test_clip(dtype, bounds, run_both):
    if dtype == "float32" and "" in bounds:
        pytest.skip("the runtime bounds infinities on the other side too, so it keeps the node")
    feed = {"a": values(dtype, (50,)), "low": np.array(2, dtype), "high": np.array(5, dtype)}
    node = helper.make_node("Clip", ["a", *bounds], ["out"])
    [expected], [found] = run_both(model_of([node], feed, {"out": KINDS[dtype]}), feed)
    assert_same_bits(found, expected)


def test_chains_longer_than_a_block(run_both):
    x = np.random.default_rng(0).normal(size=(40, 60))
    feed = {"a": x, "b": x[0], "c": np.array(0.3)}
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["m"]),
        helper.make_node("Add", ["m", "c"], ["s"]),
        helper.make_node("Neg", ["m"], ["n"]),
        helper.make_node("Max", ["n", "s", "a"], ["out"]),
        helper.make_node("Mul", ["c", "c"], ["square"]),
        helper.make_node("Sub", ["s", "square"], ["other"]),
    ]
    outputs = {"out": KINDS["float64"], "other": KINDS["float64"], "m": KINDS["float64"]}
    for expected, found in zip(*run_both(model_of(nodes, feed, outputs), feed), strict=True):
        assert_same_bits(found, expected)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_part_of_an_array_is_read_after_all_of_its_blocks(first, run_both):
    feed = {"a": np.random.default_rng(0).normal(size=(3, 400))}
    rows = {"first": np.array([first]), "end": np.array([first + 1]), "axis": np.array([0])}
    nodes = [
        helper.make_node("Neg", ["a"], ["n"]),
        helper.make_node("Slice", ["n", *rows], ["row"]),
        helper.make_node("Add", ["n", "row"], ["out"]),
        helper.make_node("ReduceSum", ["n"], ["total"], keepdims=0),
    ]
    outputs = {"out": KINDS["float64"], "total": KINDS["float64"]}
    expected, found = run_both(model_of(nodes, feed, outputs, rows), feed)
    assert_same_bits(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)
