"""Long steps of regions in several threads: the same bits for any number of them."""

import os

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import SessionOptions, compile_onnx

THREADS = (1, 2, 3, 16)


def assert_equal_bits(inputs, outputs, values):
    """Compare results with PyTensor's, and those of some threads with those of one."""
    found = {}
    for threads in THREADS:
        options = SessionOptions(threads=threads)
        call = compile_onnx(inputs, outputs, session_options=options, verify=False)
        found[threads] = [np.asarray(x) for x in call(*values)]
        assert call.session.regions
    reference = pytensor.function(inputs, outputs, mode="FAST_COMPILE")(*values)
    for result, expected, output in zip(found[1], reference, outputs, strict=True):
        rtol = 1e-12 if output.type.dtype == "float64" else 1e-5
        np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol)
    for threads in THREADS[1:]:
        for result, of_one in zip(found[threads], found[1], strict=True):
            np.testing.assert_array_equal(result, of_one, err_msg=f"{threads} threads")


def numbers(*shape, dtype="float64"):
    return np.random.default_rng(1).normal(size=shape).astype(dtype)


# Blocks have 512 elements; the last one may have half of them, or up to three halves.
@pytest.mark.parametrize("n", [512 * 400 + rest for rest in (0, 1, 255, 256, 257, 511)])
def test_operations_and_sums_of_numbers(n):
    x, y = pt.vector("x", shape=(n,)), pt.vector("y", shape=(n,))
    # Values that live within a block, that others read later, and conditions.
    bump = pt.exp(-x * x) * y
    switched = pt.switch(x > y, pt.log1p(x * x), bump)
    outputs = [bump + x / (1 + y * y), switched, (bump * switched).sum(), (x * x).sum()]
    assert_equal_bits([x, y], outputs, [numbers(n), numbers(n)[::-1].copy()])


def test_operands_that_broadcast_and_selected_elements():
    n = 100_000
    x, row, column = pt.matrix("x", shape=(n, 3)), pt.vector("row"), pt.matrix("c", shape=(n, 1))
    group = np.random.default_rng(2).integers(0, 7, n)
    effects = pt.vector("effects", shape=(7,))
    mean = effects[group] + x[:, 0]
    outputs = [pt.tanh(x * row + column) * x, (pt.exp(mean) * mean).sum()]
    values = [numbers(n, 3), numbers(3), numbers(n, 1), numbers(7)]
    assert_equal_bits([x, row, column, effects], outputs, values)


def test_numbers_of_float32_and_integers():
    n = 300_000
    x, i = pt.vector("x", dtype="float32", shape=(n,)), pt.vector("i", dtype="int64", shape=(n,))
    outputs = [x * x + x / (1 + x * x), i * i + 3 * i - i // 5]
    whole = np.random.default_rng(3).integers(-99, 99, n)
    assert_equal_bits([x, i], outputs, [numbers(n, dtype="float32"), whole])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_by_rows_and_long_sums(dtype):
    n = 100_003
    a, x = pt.matrix("a", dtype=dtype, shape=(n, 8)), pt.vector("x", dtype=dtype, shape=(8,))
    y = a @ x
    # A sum has more than two chunks of 16,384 terms.
    outputs = [y * y, a.T @ (y + 1), (y * 2) @ a]
    assert_equal_bits([a, x], outputs, [numbers(n, 8, dtype=dtype) / 100, numbers(8, dtype=dtype)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    x = pt.vector("x", shape=(400_000,))
    options = SessionOptions(threads=2)
    call = compile_onnx([x], pt.exp(x) * x + 1, session_options=options, verify=False)
    value = numbers(400_000)
    expected = call(value)
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(call(value), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
