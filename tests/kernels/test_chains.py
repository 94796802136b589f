"""Chains of elementwise operations on arrays compute as the operations alone."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.kernels.conftest import assert_same_bits, model_of, values

KINDS = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
UNARY = {"Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt, "Reciprocal": lambda x: 1 / x}
OTHERS = {"Where": np.where, "Reshape": lambda x, shape: x, "Gather": np.take}
SUMS = ["ReduceSum", "ReduceSumSquare"]
# Around the elements of a unit and of a block, where the last unit or block is a part.
SIZES = [31, 32, 33, 63, 64, 65, 95, 434, 511, 512, 513, 768, 769, 1024, 1025, 1300]


class Program:
    """Nodes on arrays of one size and on numbers, which use results of each other."""

    def __init__(self, seed, size, dtype):
        self.rng = np.random.default_rng(seed)
        self.arrays, self.numbers, self.nodes = ["a", "b"], ["s", "t"], []
        self.size, self.kind = size, KINDS[dtype]
        self.sums = []
        self.index = self.rng.integers(-7, 7, size)

    def array(self):
        # The last arrays more often, so that chains are long and have branches.
        return self.arrays[-1 - int(self.rng.integers(len(self.arrays)) * self.rng.uniform() ** 2)]

    def operand(self):
        return self.array() if self.rng.uniform() < 0.6 else str(self.rng.choice(self.numbers))

    def add(self, operator, inputs, **attributes):
        name = f"x{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def add_any(self):
        kinds = ["binary", "binary", "binary", "unary", "where", "sum", "view", "take"]
        kind = self.rng.choice(kinds)
        if kind == "binary":
            inputs = [self.array(), self.operand()][:: self.rng.choice([1, -1])]
            made = self.add(str(self.rng.choice([*BINARY])), inputs)
        elif kind == "unary":
            made = self.add(str(self.rng.choice([*UNARY])), [self.array()])
        elif kind == "where":
            inputs = [self.array(), self.operand()][:: self.rng.choice([1, -1])]
            made = self.add("Where", [str(self.rng.choice(["c", "d", "many"])), *inputs])
        elif kind == "take":
            made = self.add("Gather", [str(self.rng.choice(["short", self.array()])), "index"])
        elif kind == "view":
            made = self.add("Reshape", [self.array(), "shape"])
        else:
            self.sums.append(self.add(str(self.rng.choice(SUMS)), [self.array()], keepdims=0))
            return
        self.arrays.append(made)

    def by_numpy(self, feed):
        """Return the results but for sums; the runtime's Where has no negative zeros."""
        found = dict(feed, shape=self.size, index=self.index)
        for node in self.nodes:
            compute = (BINARY | UNARY | OTHERS).get(node.op_type)
            if compute:
                [name], given = node.output, [found[x] for x in node.input]
                found[name] = compute(*given).astype(feed["a"].dtype)
        return found

    def model(self, feed, names):
        constants = {"shape": np.array([self.size]), "index": self.index}
        return model_of(self.nodes, feed, dict.fromkeys(names, self.kind), constants)


def feed_of(draw, dtype, size):
    return {
        **{
            "a": draw(dtype, (size,), 1),
            "b": draw(dtype, (size,), 2),
            "short": draw(dtype, (7,), 5),
        },
        **{"s": draw(dtype, (), 3), "t": draw(dtype, (1,), 4)},
        **{"c": np.array(True), "d": np.array([False]), "many": np.arange(size) % 3 == 0},
    }


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_results_have_the_bits_of_single_operations(size, dtype, run_both):
    feed = feed_of(values, dtype, size)
    program = Program(size, size, dtype)
    while len(program.nodes) < 40:
        program.add_any()
    # Some results alone are outputs, so that others need no memory.
    names = [name for name in program.arrays[2:] if program.rng.uniform() < 0.3]
    names.append(program.arrays[-1])
    names = list(dict.fromkeys([*names, *program.sums]))
    _, found = run_both(program.model(feed, names), feed)
    with np.errstate(all="ignore"):
        expected = program.by_numpy(feed)
    for name, x in zip(names, found, strict=True):
        if name not in program.sums:
            assert_same_bits(x, expected[name])


def positive(dtype, shape, seed):
    return np.random.default_rng(seed).uniform(0.5, 1.5, size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_sums_on_the_way(size, dtype, run_both):
    feed = {name: positive(dtype, (size,), i) for i, name in enumerate("ab")}
    node = helper.make_node
    nodes = [
        node("Mul", ["a", "b"], ["product"]),
        node("ReduceSum", ["product"], ["dot"], keepdims=0),
        node("Sub", ["a", "b"], ["rest"]),
        node("ReduceSumSquare", ["rest"], ["square"], keepdims=1),
        # An array that needs a sum of arrays of its size.
        node("Div", ["product", "dot"], ["share"]),
        node("ReduceSum", ["share"], ["one"]),
        node("ReduceSum", ["a"], ["total"], keepdims=0),
    ]
    names = ["dot", "square", "one", "total", "share"]
    plain, found = run_both(model_of(nodes, feed, dict.fromkeys(names, KINDS[dtype])), feed)
    a, b = (feed[name].astype("longdouble") for name in "ab")
    rest = (feed["a"] - feed["b"]).astype("longdouble")
    exact = [a @ b, rest @ rest, 1, a.sum(), a * b / (a @ b)]
    rounding = np.finfo(dtype).eps * 2 * np.log2(size)
    for x, expected, right in zip(found, plain, exact, strict=True):
        assert x.shape == expected.shape
        np.testing.assert_allclose(x.reshape(np.shape(right)), right, rtol=rounding)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_sums_on_the_way_have_the_bits_of_sums_of_rows(size, dtype, run_both):
    """Sums of a chain, and of rows, which no chain takes, as in WebAssembly."""
    rows = np.random.default_rng(size).normal(size=(2, size)).astype(dtype)
    feed = {"rows": rows, "x": rows[0], "zero": np.zeros(size, dtype), "axis": np.array([1])}
    nodes = [helper.make_node("Add", ["x", "zero"], ["same"])]
    for operator in SUMS:
        nodes.append(helper.make_node(operator, ["same"], [f"{operator} of all"], keepdims=0))
        nodes.append(
            helper.make_node(operator, ["rows", "axis"], [f"{operator} of rows"], keepdims=0)
        )
    names = [x.output[0] for x in nodes[1:]]
    constants = {"axis": feed.pop("axis")}
    model = model_of(nodes, feed, dict.fromkeys(names, KINDS[dtype]), constants)
    _, found = run_both(model, feed)
    for of_all, of_rows in zip(found[::2], found[1::2], strict=True):
        assert_same_bits(of_all, of_rows[0])


def test_a_sum_of_negative_zeros_is_one(run_both):
    feed = {"a": np.full(40, -0.0)}
    nodes = [
        helper.make_node("Mul", ["a", "a"], ["square"]),
        helper.make_node("Mul", ["a", "square"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros"], ["sum"], keepdims=0),
    ]
    model = model_of(nodes, feed, {"sum": TensorProto.DOUBLE})
    _, [found] = run_both(model, feed)
    assert found == 0
    assert np.signbit(found)
