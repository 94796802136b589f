"""Values known at export are computed at export, as the runtime would compute them."""

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, strategies as st

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.constant_folding import known_result
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.running.session import Session

BOUNDS = {"int64": 2**63, "int32": 2**31}
ARITHMETIC = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "LessOrEqual", "Greater"]


def run(op_type: str, arrays: list[np.ndarray], **attributes: object) -> np.ndarray:
    """Return what ONNX Runtime computes from inputs of unknown sizes."""
    build = Builder(ModelScope(21))
    inputs = [
        ir.val(f"x{i}", dtype=ir.DataType.from_numpy(a.dtype), shape=[None] * a.ndim)
        for i, a in enumerate(arrays)
    ]
    result = build.op(op_type, *inputs, **attributes)
    assert [node.op_type for node in build.nodes] == [op_type]
    result.name = "result"
    graph = ir.Graph(inputs, [result], nodes=build.nodes, opset_imports={"": 21}, name="g")
    (found,) = Session(ir.Model(graph, ir_version=10)).run(
        {x.name: a for x, a in zip(inputs, arrays, strict=True)}
    )
    return found


def check(op_type: str, *arrays: np.ndarray, **attributes: object) -> None:
    build = Builder(ModelScope(21))
    result = build.op(op_type, *map(build.constant, arrays), **attributes)
    assert not build.nodes
    found, expected = result.const_value.numpy(), run(op_type, list(arrays), **attributes)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.each_value
@given(data=st.data())
@pytest.mark.parametrize("op_type", ARITHMETIC)
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.few(2)
def test_arithmetic(op_type: str, dtype: str, data: st.DataObject) -> None:
    # The runtime takes 2^31 for less than 0 in these two.
    bound = min(BOUNDS[dtype], 2**31) if op_type in ("Max", "Min") else BOUNDS[dtype]
    numbers = st.integers(-bound, bound - 1)
    divisors = st.integers(1, bound - 1) if op_type == "Div" else numbers
    x = np.array(data.draw(st.lists(numbers, min_size=3, max_size=3)), dtype)
    y = np.array(data.draw(st.lists(divisors, min_size=3, max_size=3)), dtype)
    check(op_type, x, y)
    check(op_type, x[0], y)


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor"])
def test_logic(op_type: str) -> None:
    check(op_type, np.array([True, True, False, False]), np.array([True, False, True, False]))


@pytest.mark.parametrize("op_type", ["Neg", "Abs"])
def test_signs(op_type: str) -> None:
    check(op_type, np.array([-3, 0, 4]))


def test_choices() -> None:
    check("Not", np.array([True, False]))
    check("Where", np.array([True, False]), np.array([1, 2]), np.array(3))


def test_structure() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]])
    check("Concat", x, x[:, :1], axis=1)
    check("Concat", x[0], x[1], axis=-1)
    check("Unsqueeze", x, np.array([0, 3]))
    check("Unsqueeze", x, np.array([-1]))
    check("Squeeze", x[:1, :, None], np.array([0, -1]))
    check("Gather", x, np.array([-1, 0]), axis=1)
    check("Gather", x, np.array(1))
    for target in ("int32", "bool"):
        check("Cast", x - 1, to=int(ir.DataType.from_numpy(np.dtype(target))))


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), ()])
def test_static_shapes(shape: tuple[int, ...]) -> None:
    build = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.FLOAT, shape=shape)
    assert build.Shape(x).const_value.numpy().tolist() == list(shape)
    assert build.Shape(x, start=1).const_value.numpy().tolist() == list(shape[1:])
    assert build.Shape(x, start=0, end=1).const_value.numpy().tolist() == list(shape[:1])


def test_unknown_and_large_values_are_left_to_the_runtime() -> None:
    build = Builder(ModelScope(21))
    x = ir.val("x", dtype=ir.DataType.INT64, shape=["n", 3])
    large, floats = build.constant(np.arange(65)), build.constant(np.array([1.0, 2.0]))
    build.Shape(x)
    build.Add(build.Shape(x), 1)
    build.Add(large, large)
    build.Add(floats, floats)
    build.Gather(build.ints([1, 2]), 2)
    build.Div(build.ints([1]), 0)
    found = [node.op_type for node in build.nodes]
    assert found == ["Shape", "Shape", "Add", "Add", "Add", "Gather", "Div"]


def test_new_axes_of_a_constant_vector_are_known():
    vector = ir.Value(
        shape=ir.Shape([3]), const_value=ir.tensor(np.array([1, 2, 3], "float32")), name="v"
    )
    axes = ir.Value(const_value=ir.tensor(np.array([0, 2])), shape=ir.Shape([2]))
    found = known_result("Unsqueeze", [vector, axes], {})
    assert found is not None
    assert found.shape == (1, 3, 1)
    assert found.dtype == np.float32
