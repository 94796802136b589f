"""Integers that kernels of the installed runtime get wrong, and their neighbours."""

import numpy as np
import onnx_ir as ir
import pytest

from tests.targets.conftest import on_x86, operators, repaired, status_without_traceback

LARGE = 2**53

REDUCED = {
    "Einsum": ([LARGE, 1], LARGE + 1, {"equation": "i->"}),
    "ReduceL1": ([LARGE, 1], LARGE + 1, {"keepdims": 0}),
    "ReduceProd": ([LARGE + 1, 3], 3 * LARGE + 3, {"keepdims": 0}),
    "ReduceSum": ([LARGE, 1], LARGE + 1, {"keepdims": 0}),
    "ReduceSumSquare": ([3 * 10**8 + 1, 1], (3 * 10**8 + 1) ** 2 + 1, {"keepdims": 0}),
}


@pytest.mark.parametrize("op_type", ["Einsum", *operators("integer reductions through double")])
def test_integer_reductions_round_above_2_53(run, op_type):
    values, exact, attributes = REDUCED[op_type]
    assert run(op_type, np.array(values), **attributes) != exact


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceProd"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_reductions_saturate(run, op_type, dtype):
    largest = np.iinfo(dtype).max
    assert run(op_type, np.array([largest, 2], dtype), keepdims=0) == largest


def test_integer_matmul_and_cumsum_are_exact_and_wrap_around(run):
    x = np.array([np.iinfo(np.int64).max, 1])
    assert run("MatMul", x, np.ones(2, int)) == np.iinfo(np.int64).min
    assert run("CumSum", x, np.int64(0))[-1] == np.iinfo(np.int64).min
    assert run("MatMul", np.array([LARGE, 1]), np.ones(2, int)) == LARGE + 1


HALVES = [2**31, 7, 2**32 - 1, 2**31 + 1, 3, 2**31 + 2, 5, 2**31 + 9]

COMPARED_BY_HALVES = {
    "Clip": ((np.array(8), np.array(2**40)), np.clip(HALVES, 8, 2**40), {}),
    "Max": ((np.full(8, 8),), np.maximum(HALVES, 8), {}),
    "Min": ((np.full(8, 8),), np.minimum(HALVES, 8), {}),
    "ReduceMax": ((), max(HALVES), {"keepdims": 0}),
    "ReduceMin": ((), min(HALVES), {"keepdims": 0}),
    "Sign": ((), np.ones(8), {}),
}


@on_x86
@repaired("1.32")
@pytest.mark.parametrize("op_type", operators("int64 compared by halves"))
def test_int64_with_equal_upper_halves_is_compared_by_signed_lower_halves(run, op_type):
    others, right, attributes = COMPARED_BY_HALVES[op_type]
    assert np.any(run(op_type, np.array(HALVES), *others, **attributes) != right)


@pytest.mark.parametrize(
    ("op_type", "compare"), [("Less", np.less), ("Greater", np.greater), ("Equal", np.equal)]
)
def test_int64_comparisons_are_right(run, op_type, compare):
    x, y = np.repeat(HALVES, 8), np.tile(HALVES, 8)
    np.testing.assert_array_equal(run(op_type, x, y), compare(x, y))


def test_int64_topk_is_right(run):
    values, _ = run("TopK", np.array(HALVES), np.array([8]), outputs=2)
    assert list(values) == sorted(HALVES, reverse=True)


def test_integer_pow_rounds_above_2_53(run):
    assert run("Pow", np.array([3, 3]), np.array([39, 39]))[0] != 3**39


def test_integer_pow_does_not_wrap_around(run):
    x = np.array([2**31 - 1, 3], np.int32)
    assert run("Pow", x, np.array([2, 2], np.int32))[0] != 1


@repaired("1.32")
def test_integer_fmod_rounds_above_2_53(run):
    assert run("Mod", np.array([LARGE + 1]), np.array([2]), fmod=1) != 1


def test_integer_modulo_is_exact(run):
    assert run("Mod", np.array([LARGE + 1]), np.array([2]), fmod=0) == 1


@repaired("1.32")
def test_integer_range_miscounts_above_2_53(run):
    assert run("Range", np.int64(LARGE + 1), np.int64(LARGE + 3), np.int64(1)).size != 2


@pytest.mark.parametrize("op_type", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_integer_division_by_zero_fails(run, op_type, dtype):
    with pytest.raises(Exception, match=r"(?i)onnxruntimeerror.*zero"):
        run(op_type, np.array([1, 2], dtype), np.array([0, 1], dtype))


KILLER = """
import sys
import numpy, onnx.helper as h, onnxruntime
op_type, dtype = sys.argv[1:]
x = numpy.array([numpy.iinfo(dtype).min], dtype)
info = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(x.dtype), (1,)) for n in "xyz"]
graph = h.make_graph([h.make_node(op_type, ["x", "y"], ["z"])], "g", info[:2], info[2:])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString())
session.run(None, {"x": x, "y": -numpy.ones_like(x)})
"""


@pytest.mark.slow
@on_x86
@pytest.mark.parametrize("op_type", ["Div", pytest.param("Mod", marks=repaired("1.32"))])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_division_that_overflows_ends_the_process(op_type, dtype):
    assert status_without_traceback(KILLER, op_type, dtype) != 0


@on_x86
def test_casts_to_integers_do_not_saturate(run):
    assert run("Cast", np.array([1e20]), to=ir.DataType.INT32)[0] == np.iinfo(np.int32).min
