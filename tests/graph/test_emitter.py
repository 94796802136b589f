"""The builder emits typed nodes and shares constants."""

import re
import time

import numpy as np
import onnx_ir as ir
import pytest

from pytensor_onnx.errors import LoweringError
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.names import name_values
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.operators.dims import dims_of
from tests.graph.conftest import value

DOUBLE, FLOAT, INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


def test_values_know_dtype_and_shape(build):
    x = value()
    y = build.MatMul(x, np.ones((3, 2)))
    assert (y.dtype, dims_of(y)) == (DOUBLE, ("n", 2))
    best = build.ArgMax(y, axis=1, keepdims=0)
    assert (best.dtype, dims_of(best)) == (INT64, ("n",))


def test_several_outputs_are_a_list_of_typed_values(build):
    values, positions = build.TopK(value(), build.ints([2]), outputs=2)
    assert (values.dtype, positions.dtype) == (DOUBLE, INT64)
    parts = build.Split(value(), build.ints([1, 2]), axis=1, outputs=2)
    assert [part.dtype for part in parts] == [DOUBLE, DOUBLE]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
def test_python_numbers_take_the_dtype_of_the_operand_they_meet(build, dtype):
    x = value(dtype=ir.DataType.from_numpy(np.dtype(dtype)))
    for y in (build.Add(x, 1), build.Add(1, x)):
        constant = next(v for v in y.producer().inputs if v is not x)
        assert constant.const_value.numpy().dtype == dtype
        assert constant.const_value.numpy().shape == ()


def test_numpy_values_keep_their_dtype(build):
    y = build.Gather(value(), np.array([0, 2]), axis=1)
    assert y.producer().inputs[1].dtype == INT64
    with pytest.raises(LoweringError, match="must have one dtype"):
        build.Add(value(dtype=FLOAT), np.float64(1))


def test_plain_indices_and_axes_become_int64(build):
    y = build.Slice(value(), [0], [2], [1])
    assert [v.dtype for v in y.producer().inputs[1:]] == [INT64] * 3


@pytest.mark.parametrize(
    ("dtype", "number", "error"),
    [(INT64, 0.5, TypeError), (INT64, 2.0, TypeError), (ir.DataType.INT8, 300, OverflowError)],
)
def test_numbers_that_the_dtype_cannot_hold_are_refused(build, dtype, number, error):
    with pytest.raises(error):
        build.Mul(value(dtype=dtype), number)


def test_a_number_among_numbers_only_has_no_dtype(build):
    with pytest.raises(TypeError, match=r"Add:[\s\S]*no operand tells the dtype of 1"):
        build.Add(1, 2)


def test_exponents_have_the_dtype_of_the_base_unless_they_have_their_own(build):
    for exponent, dtype in ((2.0, FLOAT), (3, FLOAT), (np.int64(3), INT64)):
        y = build.Pow(value(dtype=FLOAT), exponent)
        assert y.dtype == FLOAT
        assert y.producer().inputs[1].dtype == dtype


def test_too_many_operands_are_refused(build):
    with pytest.raises(TypeError, match=r"Exp:[\s\S]*takes 1 operands, and was given 2"):
        build.Exp(value(), value())


@pytest.mark.parametrize(
    ("emit", "reason"),
    [
        (lambda build, x: build.Srhink(x), "did you mean Shrink?"),
        (lambda build, x: build.RMSNormalization(x, x), "opset 23 has it"),
        (lambda build, x: build.Shrink(x, lamdb=1.0), "did you mean lambd?"),
        (lambda build, x: build.Transpose(x, prem=[1, 0]), "did you mean perm?"),
        (lambda build, x: build.Concat(x, x), "needs the attribute 'axis'"),
        (lambda build, x: build.OneHot(x), "takes 3 operands, and was given 1"),
        (lambda build, x: build.Max(), "takes 1 or more operands, and was given 0"),
        (lambda build, x: build.Clip(x, 0, 1, 2), "takes 1 to 3 operands, and was given 4"),
        (lambda build, x: build.Where(x, x, x), "operand 1 is of float64, and must be of bool"),
        (lambda build, x: build.Add(x, np.int64(1)), "the operands have: float64, int64"),
        (lambda build, x: build.And(x, x), "must be of bool"),
    ],
)
def test_misused_operators_are_refused_with_advice_and_the_line(build, emit, reason):
    with pytest.raises(LoweringError) as raised:
        emit(build, value())
    assert reason in str(raised.value)
    assert re.search(r"emitted at:.*test_emitter\.py:\d+  .lambda build, x: ", str(raised.value))


def test_unknown_methods_are_refused(build):
    with pytest.raises(AttributeError):
        _ = build.no_such_method


def test_equal_constants_are_stored_once(build):
    first = build.constant(np.array([1.0, 2.0]))
    assert build.constant(np.array([1.0, 2.0])) is first
    assert build.subgraph().constant(np.array([1.0, 2.0])) is first
    others = [[[1.0, 2.0]], [1, 2], [1.0, 3.0], np.array([1.0, 2.0], "float32")]
    assert all(build.constant(np.array(other)) is not first for other in others)


def test_constants_differ_by_their_bits(build):
    assert build.constant(0.0) is not build.constant(-0.0)
    assert build.constant(np.nan) is build.constant(np.nan)
    large = np.zeros(1000)
    other = large.copy()
    other[999] = -0.0
    assert build.constant(large) is not build.constant(other)
    assert build.constant(large) is build.constant(large.copy())


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::2], np.zeros((0, 3)), np.array(3)]
)
def test_constants_of_any_layout_keep_shape_and_values(build, array):
    stored = build.constant(array).const_value.numpy()
    np.testing.assert_array_equal(stored, array, strict=True)


def test_constants_have_readable_names(build):
    names = [build.constant(x).name for x in (2.5, -3, np.ones(2), True)]
    assert names == ["c_2.5", "c_minus_3", "c", "c_True"]
    assert build.constant(np.array([7.0]), name="weight").name == "weight"


def test_casts_that_change_nothing_leave_no_node(build):
    x = value()
    assert build.cast(x, "float64") is x
    assert build.cast(build.constant(1.5), "int64").const_value.numpy() == 1
    assert list(build.nodes) == []


def test_static_shapes_are_constants(build):
    x = value(shape=(2, 3))
    assert list(build.shape(x).const_value.numpy()) == [2, 3]
    assert build.size(x, -1).const_value.numpy() == 3
    assert list(build.nodes) == []


def test_provenance_is_put_on_every_node(build):
    build.provenance = {"pytensor.op": "Square"}
    build.call("Square", lambda inner, x: inner.Mul(x, x), build.Exp(value()))
    assert all(node.metadata_props["pytensor.op"] == "Square" for node in build.nodes)


@pytest.mark.slow
def test_emitting_is_linear():
    def seconds(n):
        build = Builder(ModelScope(21))
        x = value()
        start = time.perf_counter()
        for _ in range(n):
            x = build.Mul(x, 1.5)
        build.own_results([x])
        name_values(build.nodes, build.scope.names)
        return time.perf_counter() - start

    first, second = (min(seconds(n) for _ in range(3)) for n in (1000, 8000))
    assert second < 3 * 8 * first
