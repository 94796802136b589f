"""PyTensor's `extra_ops` that are expressions of other operations."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.extra_ops import cpu_contiguous

from tests.conftest import compare_onnx_and_py, numbers_in_double, op_types


def test_cpu_contiguous_leaves_no_node():
    x = pt.matrix("x")
    program = compare_onnx_and_py([x], pt.exp(cpu_contiguous(x)), [np.ones((2, 3))])
    assert op_types(program) == ["Exp"]


@pytest.mark.each_value
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("minlength", [None, 10])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_bincount(weighted, minlength, dtype):
    x, w = pt.tensor("x", dtype=dtype, shape=(None,)), pt.vector("w")
    counts = pt.bincount(x, weights=w if weighted else None, minlength=minlength)
    values = np.array([1, 4, 1, 0, 4, 4], dtype)
    compare_onnx_and_py([x, w], counts, [values, np.arange(6.0)])


@pytest.mark.each_value
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "float64"])
def test_diff(n, axis, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 4))
    values = np.random.default_rng(5).integers(0, 100, (3, 4)).astype(dtype)
    compare_onnx_and_py([x], pt.diff(x, n=n, axis=axis), [values])


def test_squeeze_of_all_axes_and_of_one():
    x = pt.tensor("x", shape=(1, None, 1))
    outputs = [pt.squeeze(x), pt.squeeze(x, axis=0), pt.squeeze(x, axis=-1)]
    compare_onnx_and_py([x], outputs, [np.arange(3.0).reshape(1, 3, 1)])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_compress(axis):
    x, keep = pt.matrix("x"), pt.vector("keep", dtype="bool")
    values = [np.arange(9.0).reshape(3, 3), np.array([True, False, True])]
    compare_onnx_and_py([keep, x], pt.compress(keep, x, axis=axis), values[::-1])


def test_broadcasting():
    x, y, n = pt.col("x"), pt.row("y"), pt.lscalar("n")
    outputs = [*pt.broadcast_arrays(x, y), pt.broadcast_to(x, (2, 3, n))]
    compare_onnx_and_py([x, y, n], outputs, [np.ones((3, 1)), np.arange(4.0)[None], 4])


@pytest.mark.each_value
@pytest.mark.parametrize("repetitions", [2, (2, 3), (1, 2, 2), (0, 2)])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float64"])
def test_tile(repetitions, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, 3))
    values = np.arange(6).reshape(2, 3).astype(dtype)
    compare_onnx_and_py([x], pt.tile(x, repetitions), [values])


@pytest.mark.each_value
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("space", [pt.linspace, pt.logspace, pt.geomspace])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_spaces(endpoint, space, count):
    start, stop, n = pt.scalar("start"), pt.scalar("stop"), pt.lscalar("n")
    # PyTensor takes the logarithm of 10 in float32.
    with numbers_in_double():
        outputs = [
            space(start, stop, n, endpoint=endpoint),
            space(start, stop, count, endpoint=endpoint),
        ]
    compare_onnx_and_py([start, stop, n], outputs, [1.5, 4.0, count])


@pytest.mark.slow
def test_space_between_arrays_and_its_gradient():
    start, stop = pt.vector("start"), pt.vector("stop")
    space = pt.linspace(start, stop, 5, axis=-1)
    gradients = pytensor.grad((space**2).sum(), [start, stop])
    values = [np.array([0.0, 1.0]), np.array([2.0, -1.0])]
    compare_onnx_and_py([start, stop], [space, *gradients], values)


def test_grids():
    n, m = pt.lscalar("n"), pt.lscalar("m")
    compare_onnx_and_py([n, m], [*pt.mgrid[0:n, 1:m:2], *pt.ogrid[0:n, 1:m:2]], [3, 6])


def test_one_hot():
    y = pt.lvector("y")
    compare_onnx_and_py([y], pt.extra_ops.to_one_hot(y, 4), [np.array([2, 0, 3])])
