"""Cumulative sums and products of narrow integers are as wide as in NumPy, and in what follows."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph

from pytensor_onnx import export_onnx
from tests.conftest import PY, assert_same, compare_onnx_and_py

NARROW = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32"]
CONSUMERS = {
    "result": lambda c, x: [c],
    "selected": lambda c, x: [c[::-1], c[:, 1], c[[1, 0]]],
    "reshaped": lambda c, x: [c.T, c.ravel(), c[None], pt.repeat(c, 2, axis=0)],
    "written to": lambda c, x: [pt.set_subtensor(c[0], x[1])],
    "computed with": lambda c, x: [
        c + 1,
        c * 2.5,
        c > 1,
        pt.eq(c, 2),
        pt.switch(x, c, x),
        -(c + 1),
    ],
    "cast": lambda c, x: [c.astype("int64"), c.astype("float32"), c.astype("uint8")],
    "reduced": lambda c, x: [c.sum(), c.max(axis=0), c.mean(), c.all(), c.argmax()],
    "accumulated again": lambda c, x: [pt.cumsum(c, axis=1), pt.cumprod(c + c)],
    "multiplied": lambda c, x: [pt.dot(c.astype("int32"), x.T.astype("int32"))],
}


def values(dtype):
    return np.array([[1, 0, 1], [1, 1, 1]], dtype) * np.array(min(100, np.iinfo("int8").max), dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_results_have_the_dtype_of_numpy(dtype, axis):
    x = pt.matrix("x", dtype=dtype)
    value = values(dtype)
    found = pytensor.function([x], [pt.cumsum(x, axis), pt.cumprod(x, axis)], mode="ONNX")(value)
    for result, expected in zip(
        found, (np.cumsum(value, axis), np.cumprod(value, axis)), strict=True
    ):
        assert_same(result, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16"])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_results_computed_from_them_are_those_of_pytensor(consumer, dtype):
    x = pt.matrix("x", dtype=dtype)
    results = CONSUMERS[consumer](pt.cumsum(x, axis=0), x)
    compare_onnx_and_py([x], results, [values(dtype)])


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_joined_with_others_they_are_narrow(dtype):
    x = pt.matrix("x", dtype=dtype)
    compare_onnx_and_py([x], pt.join(0, pt.cumsum(x, axis=0), x), [values(dtype)])


def test_nothing_is_accumulated():
    x = pt.matrix("x", dtype="bool")
    first, *others = ([np.ones(shape, bool)] for shape in [(0, 3), (2, 0)])
    compare_onnx_and_py([x], [pt.cumsum(x, 0), pt.cumprod(x, 1), pt.cumsum(x)], first, also=others)


def test_a_number_is_a_vector_of_one():
    x = pt.scalar("x", dtype="int8")
    compare_onnx_and_py([x], [pt.cumsum(x), pt.cumprod(x)], [np.int8(100)])


def test_exported_files_are_verified_with_them():
    x = pt.vector("x", dtype="bool")
    program = export_onnx([x], pt.cumsum(x))
    assert program(np.ones(3, bool)).tolist() == [1, 2, 3]


def test_in_functions_of_the_model():
    x = pt.vector("x", dtype="bool")
    inner = OpFromGraph([x], [pt.cumsum(x), pt.cumsum(x) > 1])
    outer = OpFromGraph([x], [inner(x)[0], x])
    compare_onnx_and_py([x], [*inner(x), outer(x)[0][::-1]], [np.ones(3, bool)])


def test_in_loops():
    x = pt.matrix("x", dtype="int8")
    sums = pytensor.scan(lambda r: pt.cumsum(r)[-1] > 127, [x], return_updates=False)
    rows = pytensor.scan(pt.cumsum, [x], return_updates=False)
    compare_onnx_and_py([x], [sums, rows], [values("int8")])


def test_a_loop_that_adds_up_wraps_around():
    x = pt.vector("x", dtype="int8")
    start = pt.zeros((), dtype="int8")
    for step in (lambda e, y: e + y, lambda e, y: e * y):
        rows = pytensor.scan(step, [x], [start + np.int8(1)], return_updates=False)
        compare_onnx_and_py([x], rows, [np.full(3, 100, "int8")])


def test_shared_variables_keep_their_dtype():
    x = pt.vector("x", dtype="int8")
    for mode in (PY, "ONNX"):
        state = pytensor.shared(np.ones(3, "int8"))
        step = pytensor.function(
            [x], pt.cumsum(x), updates={state: pt.cumsum(x + state)}, mode=mode
        )
        assert step(np.full(3, 100, "int8")).tolist() == [100, 200, 300]
        if mode == "ONNX":
            assert state.get_value().dtype == "int8"
            assert state.get_value().tolist() == [101, -54, 47]
