"""The builder emits typed nodes and shares constants."""

import time

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from tests.graph.conftest import run, value

DOUBLE, FLOAT, INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


def test_values_know_dtype_and_shape(onnx):
    x = value()
    y = onnx.MatMul(x, np.ones((3, 2)))
    assert (y.dtype, dims_of(y)) == (DOUBLE, ("n", 2))
    best = onnx.ArgMax(y, axis=1, keepdims=0)
    assert (best.dtype, dims_of(best)) == (INT64, ("n",))


def test_several_outputs_are_a_list_of_typed_values(onnx):
    values, positions = onnx.TopK(value(), onnx.ints([2]), outputs=2)
    assert (values.dtype, positions.dtype) == (DOUBLE, INT64)
    parts = onnx.Split(value(), onnx.ints([1, 2]), axis=1, outputs=2)
    assert [part.dtype for part in parts] == [DOUBLE, DOUBLE]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
def test_python_numbers_take_the_dtype_of_the_operand_they_meet(onnx, dtype):
    x = value(dtype=ir.DataType.from_numpy(np.dtype(dtype)))
    for y in (onnx.Add(x, 1), onnx.Add(1, x)):
        constant = next(v for v in y.producer().inputs if v is not x)
        assert constant.const_value.numpy().dtype == dtype
        assert constant.const_value.numpy().shape == ()


def test_numpy_values_keep_their_dtype(onnx):
    y = onnx.Gather(value(), np.array([0, 2]), axis=1)
    assert y.producer().inputs[1].dtype == INT64
    x = value(dtype=FLOAT)
    mixed = onnx.Add(x, np.float64(1))
    with pytest.raises(Exception, match=r"(?i)type"):
        run(onnx, [x], [mixed], x=np.ones((1, 3), "float32"))


def test_plain_indices_and_axes_become_int64(onnx):
    y = onnx.Slice(value(), [0], [2], [1])
    assert [v.dtype for v in y.producer().inputs[1:]] == [INT64] * 3


@pytest.mark.parametrize(
    ("dtype", "number", "error"),
    [(INT64, 0.5, TypeError), (INT64, 2.0, TypeError), (ir.DataType.INT8, 300, OverflowError)],
)
def test_numbers_that_the_dtype_cannot_hold_are_refused(onnx, dtype, number, error):
    with pytest.raises(error):
        onnx.Mul(value(dtype=dtype), number)


def test_a_number_among_numbers_only_has_no_dtype(onnx):
    with pytest.raises(TypeError, match=r"Add: no operand tells the dtype of the constant 1"):
        onnx.Add(1, 2)


def test_exponents_have_the_dtype_of_the_base_unless_they_have_their_own(onnx):
    for exponent, dtype in ((2.0, FLOAT), (3, FLOAT), (np.int64(3), INT64)):
        y = onnx.Pow(value(dtype=FLOAT), exponent)
        assert y.dtype == FLOAT
        assert y.producer().inputs[1].dtype == dtype


def test_too_many_operands_are_refused(onnx):
    with pytest.raises(TypeError, match="at most 1"):
        onnx.Exp(value(), value())


def test_unknown_operators_are_refused(onnx):
    with pytest.raises(Exception, match="NoSuchOperator"):
        onnx.NoSuchOperator(value())
    with pytest.raises(AttributeError):
        _ = onnx.no_such_method


def test_equal_constants_are_stored_once(onnx):
    first = onnx.constant(np.array([1.0, 2.0]))
    assert onnx.constant(np.array([1.0, 2.0])) is first
    assert onnx.subgraph().constant(np.array([1.0, 2.0])) is first
    others = [[[1.0, 2.0]], [1, 2], [1.0, 3.0], np.array([1.0, 2.0], "float32")]
    assert all(onnx.constant(np.array(other)) is not first for other in others)


def test_constants_differ_by_their_bits(onnx):
    assert onnx.constant(0.0) is not onnx.constant(-0.0)
    assert onnx.constant(np.nan) is onnx.constant(np.nan)
    large = np.zeros(1000)
    other = large.copy()
    other[999] = -0.0
    assert onnx.constant(large) is not onnx.constant(other)
    assert onnx.constant(large) is onnx.constant(large.copy())


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::2], np.zeros((0, 3)), np.array(3)]
)
def test_constants_of_any_layout_keep_shape_and_values(onnx, array):
    stored = onnx.constant(array).const_value.numpy()
    np.testing.assert_array_equal(stored, array, strict=True)


def test_constants_have_readable_names(onnx):
    names = [onnx.constant(x).name for x in (2.5, -3, np.ones(2), True)]
    assert names == ["c_2.5", "c_minus_3", "c", "c_True"]
    assert onnx.constant(np.array([7.0]), name="weight").name == "weight"


def test_casts_that_change_nothing_leave_no_node(onnx):
    x = value()
    assert onnx.cast(x, "float64") is x
    assert onnx.cast(onnx.constant(1.5), "int64").const_value.numpy() == 1
    assert list(onnx.nodes) == []


def test_static_shapes_are_constants(onnx):
    x = value(shape=(2, 3))
    assert list(onnx.shape(x).const_value.numpy()) == [2, 3]
    assert onnx.size(x, -1).const_value.numpy() == 3
    assert list(onnx.nodes) == []


def test_provenance_is_put_on_every_node(onnx):
    onnx.provenance = {"pytensor.op": "Square"}
    onnx.call("Square", lambda inner, x: inner.Mul(x, x), onnx.Exp(value()))
    assert all(node.metadata_props["pytensor.op"] == "Square" for node in onnx.nodes)


@pytest.mark.slow
def test_emitting_is_linear():
    def seconds(n):
        onnx = Builder(ModelScope(21))
        x = value()
        start = time.perf_counter()
        for _ in range(n):
            x = onnx.Mul(x, 1.5)
        onnx.own_results([x])
        name_values(onnx.nodes, onnx.scope.names)
        return time.perf_counter() - start

    first, second = (min(seconds(n) for _ in range(3)) for n in (1000, 8000))
    assert second < 3 * 8 * first
