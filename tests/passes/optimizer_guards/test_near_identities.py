"""Constants near zero or one count, in any session and whatever makes them."""

import copy

import numpy as np
import onnx_ir as ir
import pytensor.tensor as pt
import pytest
from hypothesis import given, strategies as st
from pytensor import scan
from pytensor.conditional.op import ifelse

from pytensor_onnx import export_onnx
from pytensor_onnx.passes.keep_apart import keep_apart
from pytensor_onnx.targets import get_profile
from tests.conftest import called, compare_onnx_and_py, op_types
from tests.levels import assert_same_at_every_level, run_at
from tests.passes.conftest import bare

TINY = np.finfo("float64").tiny
VALUES = np.array([0.0, 0.3, -1.25, 3.0])
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}

GRAPHS = {
    "softmax": lambda x: pt.log(pt.special.softmax(1e3 * x) + TINY),
    "quotient": lambda x: x / (abs(x) + 1e-300),
    "difference": lambda x: pt.log(pt.sin(x) ** 2 - (-1e-200)),
    "less a constant": lambda x: pt.log(abs(pt.sin(x) - 1e-100)),
    "constant less": lambda x: pt.log(abs(1e-100 - pt.sin(x))),
    "factor above one": lambda x: pt.cos(x) * (1 + 1e-8) - pt.cos(x),
    "factor below one": lambda x: (1 - 1e-9) * pt.cos(x) - pt.cos(x),
    "divisor": lambda x: pt.cos(x) / (1 + 1e-8) - pt.cos(x),
    "negative factor": lambda x: pt.cos(x) * -(1 + 1e-8) + pt.cos(x),
    "matrix of one element": lambda x: pt.log(abs(pt.sin(x))[None] + np.array([[TINY]])),
}


def plain(x):
    return [graph(x) for graph in GRAPHS.values()]


def in_function(x):
    return called(plain, x)


def in_branch(x):
    return ifelse(pt.lt(x.sum(), 0.0), plain(pt.exp(x)), plain(x))


def in_loop(x):
    return scan(
        lambda i, x: plain(x + i), sequences=pt.arange(2), non_sequences=x, return_updates=False
    )


def with_constant_as_argument(x):
    near_one = pt.constant(1 + 1e-8)
    return [
        called(lambda x, c: pt.log(abs(pt.sin(x)) + c), x, pt.constant(TINY)),
        called(lambda x, c: pt.cos(x) * c - pt.cos(x), x, near_one),
        called(lambda x, c: pt.cos(x) / c - pt.cos(x), x, near_one),
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "place", [plain, in_function, in_branch, in_loop, with_constant_as_argument]
)
def test_constants_near_neutral_ones_count(place):
    x = pt.vector("x", dtype="float64")
    program = compare_onnx_and_py([x], place(x), [VALUES], rtol=1e-7)
    assert_same_at_every_level(program.proto, {"x": VALUES}, program(VALUES), rtol=1e-7)


@pytest.mark.slow
def test_a_function_of_a_constant_near_one_takes_other_numbers():
    x, y = pt.vectors("x", "y")

    def graph(x, y):
        return [x * y, x / y]

    results = [*called(graph, x, y), *called(graph, x, pt.constant(np.array([1 + 1e-8])))]
    values = [np.array([0.0, 1.0, np.inf]), np.array([0.0, -2.0, 3.0])]
    for y_value in (values[1], np.zeros(3), np.array([np.nan, -np.inf, 1.0])):
        compare_onnx_and_py([x, y], results, [values[0], y_value])


@pytest.mark.slow
def test_constants_made_of_sizes_count():
    x, y = pt.vector("x", dtype="float64"), pt.vector("y", dtype="float64")
    size = pt.cast(y.shape[0], "float64")
    results = [
        pt.log(abs(pt.sin(x)) + 1e-300 * size),
        pt.cos(x) * ((size + 1e-8) / size) - pt.cos(x),
        pt.cos(x) / (size + 1e-8) - pt.cos(x),
    ]
    values = [VALUES, np.zeros(1)]
    program = compare_onnx_and_py([x, y], results, values, rtol=1e-7)
    feeds = dict(zip("xy", values, strict=True))
    assert_same_at_every_level(program.proto, feeds, program(*values), rtol=1e-7)


def test_numbers_of_one_size_need_no_other_form():
    x, y = pt.vector("x", dtype="float64"), pt.vector("y", dtype="float64")
    n, k = (pt.cast(v.shape[0], "float64") for v in (x, y))
    near_one, small = (n + 1e-8) / n, 1e-300 * n
    alone = [near_one * (n - 3), pt.log(small + abs(n - 1)), near_one / (near_one * near_one)]
    program = export_onnx([x], alone, verify=False)
    assert not {"Neg", "Sum"} & set(op_types(program))
    # Beside a number of another size they do: the runtime may know one size only.
    results = [*alone, near_one * (k - 3), pt.log(abs(k - 1) + small)]
    values = [np.zeros(1), np.zeros(1)]
    program = compare_onnx_and_py([x, y], results, values, rtol=1e-12)
    for known in ("x", "y"):
        model = copy.deepcopy(program.proto)
        for tensor in model.graph.input:
            if tensor.name == known:
                tensor.type.tensor_type.shape.dim[0].dim_value = 1
        feeds = {"x": np.zeros(1), "y": np.zeros(1)}
        assert_same_at_every_level(model, feeds, program(*values), rtol=1e-12)


def test_sizes_need_no_other_form():
    x = pt.matrix("x", dtype="float64")
    n = pt.cast(x.shape[0], "float64")
    program = export_onnx([x], [pt.exp(x) / n, pt.exp(x) * pt.sqrt(n), x.mean(), pt.exp(x) + 0.5])
    assert not {"Neg", "Sum"} & set(op_types(program))


CONSTANTS = st.one_of(
    st.floats(-1e-40, 1e-40),
    st.floats(1 - 1e-6, 1 + 1e-6),
    st.floats(-1 - 1e-6, -1 + 1e-6),
    st.sampled_from([0.0, 1.0, -1.0, 2.0**-150, np.nextafter(2.0**-150, 1), 1 + 2.0**-24]),
)


@pytest.mark.slow
@given(st.sampled_from(sorted(ARITHMETIC)), CONSTANTS, st.booleans(), st.booleans())
def test_only_dropped_operations_get_another_form(op_type, constant, first, in_function):
    def emit(build, x, *constants):
        operands = [build.Abs(x), *(constants or [build.constant(constant)])]
        return build.Neg(build.op(op_type, *(operands[::-1] if first else operands)))

    def caller(build, x):
        return build.call("Arithmetic", emit, x, build.constant(constant))

    model = bare(caller if in_function else emit, VALUES)
    changes = model.apply(keep_apart.given(profile=get_profile("onnxruntime")))
    neutral = op_type in ("Mul", "Div")
    with np.errstate(all="ignore"):
        expected = ARITHMETIC[op_type](*([constant, np.abs(VALUES)][:: 1 if first else -1]))
        is_dropped = np.float32(constant) == neutral != constant
    matters = op_type in ("Add", "Mul") or not first
    assert bool(changes) == bool(is_dropped and matters)
    [found] = run_at("ENABLE_ALL", ir.to_proto(model.model), model.feeds)
    np.testing.assert_array_equal(found, -expected)
