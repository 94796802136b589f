"""Elementwise definitions with loops and branches in their bodies."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.scalar import basic as ps
from pytensor.scan.utils import until
from pytensor.tensor.elemwise import Elemwise

from pytensor_onnx import ONNXProgram, define, export_onnx
from tests.conftest import called, compare_onnx_and_py, op_types

TOLERANCES = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3}


class Mean(ps.BinaryScalarOp):
    """Arithmetic-geometric mean of positive numbers."""

    def impl(self, x, y):
        for _ in range(40):
            x, y = (x + y) / 2, np.sqrt(x * y)
        return x

    def pullback(self, inputs, outputs, cotangents):
        # Homogeneous: where both are equal, each has half of the gradient.
        (g,) = cotangents
        return [g / 2, g / 2]


@define(Mean)
def define_mean(x, y):
    """Average until all elements agree; elements that agree already keep their values."""
    small = pt.constant(np.asarray(1e-15 if x.dtype == "float64" else 1e-7, x.dtype))

    def step(x, y):
        differs = pt.abs(x - y) > small * x
        half = pt.constant(np.asarray(0.5, x.dtype))
        after = pt.switch(differs, half * (x + y), x), pt.switch(differs, pt.sqrt(x * y), y)
        return after, until(pt.all(~differs))

    means, _ = pytensor.scan(step, outputs_info=[x, y], n_steps=40, return_updates=False)
    return means[-1]


class Exponential(ps.UnaryScalarOp):
    """The exponential function."""

    def impl(self, x):
        return np.exp(x)


@define(Exponential)
def define_exponential(x):
    """Add a fixed number of terms."""

    def add(k, total, term):
        term = term * x / k.astype(x.dtype)
        return total + term, term

    start = pt.ones_like(x)
    totals, _ = pytensor.scan(add, [pt.arange(1, 30)], [start, start], return_updates=False)
    return totals[-1]


class Shifted(ps.BinaryScalarOp):
    """A number to which another one is added thrice."""

    def impl(self, x, y):
        return x + 3 * y


@define(Shifted)
def define_shifted(x, y):
    """Add in a loop of fixed length."""
    steps = pt.arange(3)
    return pytensor.scan(lambda _, x, y: x + y, [steps], [x], [y], return_updates=False)[-1]


class Squared(ps.UnaryScalarOp):
    """The square of the exponential function."""

    def impl(self, x):
        return np.exp(x) ** 2


@define(Squared)
def define_squared(x):
    """Take either branch; both call functions with loops."""
    return ifelse(pt.all(x < 1), mean(exp(x), exp(x)) ** 2, exp(2 * x))


class Pair(ps.UnaryScalarOp):
    """A formula without a loop, of functions with loops."""

    def impl(self, x):
        return Mean.impl(None, np.exp(x), x)


@define(Pair)
def define_pair(x):
    """Call two functions with loops."""
    return mean(exp(x), x)


mean = Elemwise(Mean(ps.upgrade_to_float, name="mean"))
exp = Elemwise(Exponential(ps.upgrade_to_float, name="exponential"))
squared = Elemwise(Squared(ps.upgrade_to_float, name="squared"))
shifted = Elemwise(Shifted(ps.upgrade_to_float, name="shifted"))
pair = Elemwise(Pair(ps.upgrade_to_float, name="pair"))


def values_of(shape, dtype, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 2.0, shape).astype(dtype)


def loops_in(function) -> int:
    return sum(node.op_type in ("Loop", "Scan") for node in function.all_nodes())


def functions(program: ONNXProgram) -> dict:
    return {f.name: f for f in program.model.functions.values()}


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *(((2, 3), dtype) for dtype in TOLERANCES),
        *((shape, "float64") for shape in [(3,), (2, 0), (2, 1, 3)]),
        *((shape, "float16") for shape in [(), (0,)]),
    ],
)
def test_loops_and_branches_serve_every_dtype_and_rank(dtype, shape):
    x, y = (pt.tensor(name, dtype=dtype, shape=(None,) * len(shape)) for name in "xy")
    values = [values_of(shape, dtype), values_of(shape, dtype, 1)]
    program = compare_onnx_and_py(
        [x, y], [mean(x, y), exp(x), squared(y)], values, rtol=TOLERANCES[dtype]
    )
    wide = "float64" if dtype == "float64" else "float32"
    rank = f"_batch{len(shape)}" if shape else ""
    found = {name: loops_in(f) for name, f in functions(program).items()}
    names = {"Mean": 1, "Exponential": 1, "Squared": 0}
    assert found == {f"{name}_{wide}{rank}": loops for name, loops in names.items()}


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_formulas_of_functions_with_loops_have_ranks_too(shape):
    x = pt.tensor("x", shape=(None,) * len(shape))
    program = compare_onnx_and_py([x], pair(pair(x) * 0.1), [values_of(shape, "float64")])
    rank = f"_batch{len(shape)}" if shape else ""
    assert {*functions(program)} == {f"{n}_float64{rank}" for n in ("Pair", "Mean", "Exponential")}


@pytest.mark.parametrize(
    ("first", "second"), [((3, 1), (1, 4)), ((2, 3), (1, 1)), ((1, 3), (0, 3)), ((1,), (1,))]
)
def test_operands_of_loops_broadcast(first, second):
    x, y = (
        pt.tensor(name, shape=tuple(1 if n == 1 else None for n in shape))
        for name, shape in {"x": first, "y": second}.items()
    )
    values = [values_of(first, "float64"), values_of(second, "float64", 1)]
    outputs = [mean(x, y), mean(y, x), mean(x, 2.0), shifted(x, y), shifted(y, x), shifted(1.0, y)]
    program = compare_onnx_and_py([x, y], outputs, values)
    rank = len(first)
    assert {*functions(program)} == {f"Mean_float64_batch{rank}", f"Shifted_float64_batch{rank}"}


def test_loops_run_within_composites_functions_and_loops():
    x, y = pt.vector("x"), pt.vector("y")
    a, b = ps.float64("a"), ps.float64("b")
    composite = Elemwise(
        ps.Composite([a, b], [ps.mul(mean.scalar_op(exp.scalar_op(a), b), ps.constant(2.0))])
    )
    steps = pytensor.scan(mean, [x], non_sequences=[y], return_updates=False)
    outputs = [composite(x, y), called(lambda x, y: pair(x) + mean(y, 1.0), x, y), steps]
    compare_onnx_and_py([x, y], outputs, [values_of(3, "float64"), values_of(3, "float64", 1)])


def test_gradients_are_those_of_the_op():
    x = pt.vector("x")
    total = (mean(x, x) ** 2).sum()
    compare_onnx_and_py([x], pt.grad(total, x), [values_of(3, "float64")])


def test_functions_with_loops_differ_by_attributes_and_ranks():
    class Root(ps.UnaryScalarOp):
        __props__ = ("steps",)

        def __init__(self, steps):
            self.steps = steps
            super().__init__(ps.upgrade_to_float, name="root")

        def impl(self, x):
            y = max(x, 1.0)
            for _ in range(self.steps):
                y = (y + x / y) / 2
            return y

    @define(Root)
    def root(x, *, steps):
        return pytensor.scan(
            lambda y, x: (y + x / y) / 2,
            outputs_info=[pt.maximum(x, 1.0)],
            non_sequences=[x],
            n_steps=steps,
            return_updates=False,
        )[-1]

    x, m = pt.vector("x"), pt.matrix("m")
    outputs = [Elemwise(Root(steps))(v) for steps in (2, 3) for v in (x, m, m + 1)]
    program = compare_onnx_and_py(
        [x, m], outputs, [values_of(3, "float64"), values_of((2, 2), "float64")]
    )
    expected = {f"Root_steps_{n}_float64_batch{rank}" for n in (2, 3) for rank in (1, 2)}
    assert {*functions(program)} == expected


class Weighted(ps.UnaryScalarOp):
    """A polynomial, whose coefficients are an attribute."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, weights):
        self.weights = weights
        super().__init__(ps.upgrade_to_float, name="weighted")

    def impl(self, x):
        return sum(w * x**i for i, w in enumerate(self.weights))


@define(Weighted)
def define_weighted(x, *, weights):
    """Use Horner's rule."""
    total = pt.zeros_like(x)
    for w in reversed(weights):
        total = total * x + pt.constant(w, dtype=x.dtype)
    return total


def test_attributes_without_a_hash_tell_functions_apart():
    many = np.linspace(0, 1, 2000)
    other = many.copy()
    other[1000] = 7.0
    assert repr(many) == repr(other)
    lists = [1.0, 2.0], [1.0, 3.0], [1.0, 2.0]
    ops = [Elemwise(Weighted(w)) for w in (*lists, many[999:1002], other[999:1002])]
    x = pt.vector("x")
    program = compare_onnx_and_py([x], [op(x) for op in ops], [np.array([0.5, 2.0])])
    assert len(program.model.functions) == 4


def test_a_loop_of_tensors_is_one_node_that_keeps_one_step():
    m = pt.matrix("m")
    program = export_onnx([m], mean(m, exp(m)), verify=False)
    assert op_types(program) == ["Exponential_float64_batch2", "Mean_float64_batch2"]
    for function in functions(program).values():
        [loop] = [node for node in function if node.op_type in ("Loop", "Scan")]
        # The steps, the condition and the states that are carried; nothing is stacked.
        assert len(loop.outputs) == 2


def test_only_the_selected_branch_is_computed():
    m = pt.matrix("m")
    program = export_onnx([m], squared(m), verify=False)
    function = functions(program)["Squared_float64_batch2"]
    [choice] = [node for node in function if node.op_type == "If"]
    branches = [choice.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    calls = [[n.op_type for n in branch if n.domain] for branch in branches]
    assert calls == [
        ["Exponential_float64_batch2", "Mean_float64_batch2"],
        ["Exponential_float64_batch2"],
    ]


class Digits(ps.UnaryScalarOp):
    """A sum of sums."""

    def impl(self, x):
        return sum(x**i * j for i in range(3) for j in range(4))


@define(Digits)
def define_digits(x):
    """Sum in a loop within a loop."""

    def outer(i, total, x):
        def inner(j, total, power):
            return total + power * j

        sums = pytensor.scan(
            inner, [pt.arange(4.0)], [pt.zeros_like(x)], [x**i], return_updates=False
        )
        return total + sums[-1]

    return pytensor.scan(outer, [pt.arange(3.0)], [pt.zeros_like(x)], [x], return_updates=False)[-1]


def test_loops_within_loops_keep_one_step():
    digits = Elemwise(Digits(ps.upgrade_to_float, name="digits"))
    m = pt.matrix("m")
    program = compare_onnx_and_py([m], digits(m), [values_of((2, 3), "float64")])
    [function] = functions(program).values()
    loops = [node for node in function.all_nodes() if node.op_type in ("Loop", "Scan")]
    assert [len(loop.outputs) for loop in loops] == [1, 1]
