"""Models of one region that run without a session of ONNX Runtime."""

import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import InputError, compile_onnx, native
from pytensor_onnx.running.direct_calls import direct_call, no_call
from pytensor_onnx.running.session import Session

pytestmark = pytest.mark.skipif(not native.is_on(), reason="regions need the native library")

DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")


@pytest.fixture
def by_runtime(monkeypatch):
    """Count the runs by ONNX Runtime."""
    runs = []
    run = Session.run_by_runtime

    def count(self, feed):
        runs.append(feed)
        return run(self, feed)

    monkeypatch.setattr(Session, "run_by_runtime", count)
    return runs


def switched(x, y):
    return [pt.switch(x.astype("bool"), y, x), pt.concatenate([x, y]), x.shape[0]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_each_dtype_and_size(dtype, by_runtime):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    f = pytensor.function([x, y], switched(x, y), mode="ONNX")
    for size in (3, 0, 1, 600, 3):
        values = np.arange(size).astype(dtype), np.arange(size)[::-1].astype(dtype, order="C")
        for _ in range(3):
            found = f(*values)
        expected = [
            np.where(values[0].astype(bool), values[1], values[0]),
            np.concatenate(values),
            np.array(size),
        ]
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
            assert type(a) is np.ndarray
    assert not by_runtime


VALUES = np.array([1.0, -2.0, 4.0])
FORMS = {
    "strided": np.repeat(VALUES, 2)[::2],
    "reversed": VALUES[::-1].copy()[::-1],
    "list": [1.0, -2.0, 4.0],
    "integers": VALUES.astype("int8"),
    "big-endian": VALUES.astype(">f8"),
    "unaligned": np.frombuffer(b"0" + VALUES.tobytes(), "u1")[1:].view("float64"),
    "subclass": VALUES.view(type("Own", (np.ndarray,), {})),
    "read-only": np.frombuffer(VALUES.tobytes()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("trusts", [False, True])
def test_other_forms_of_arguments_give_the_same(form, trusts):
    x = pt.vector("x")
    f = pytensor.function([x], [pt.exp(x) + 1, (2 * x).sum()], mode="ONNX")
    f(VALUES), f(VALUES)
    expected = f(VALUES)
    f.trust_input = trusts
    if (trusts, form) in ((True, "integers"), (False, "unaligned")):
        pytest.skip("PyTensor refuses it, or the caller must not give it")
    for a, b in zip(f(FORMS[form]), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "argument",
    [
        *(None, "a", 1, 1.5, [1.0], np.float64(2)),
        *(np.ones(3, "float32"), np.ones(3, object), np.ones((3, 1)), np.ones(())),
    ],
)
def test_a_direct_call_leaves_what_is_no_such_array_to_the_session(argument):
    x = pt.vector("x")
    program = compile_onnx([x], pt.exp(x) + 1)
    program([1.0])
    direct = program.session.direct
    assert direct(np.ones(3)) is not None
    assert direct(argument) is None
    assert direct() is None
    assert direct(np.ones(3), np.ones(3)) is None


def test_a_direct_call_leaves_other_sizes_than_the_model_has_to_the_session():
    x = pt.matrix("x", shape=(None, 3))
    program = compile_onnx([x], pt.exp(x) + 1)
    program(np.ones((2, 3)))
    assert program.session.direct(np.ones((4, 3))) is not None
    assert program.session.direct(np.ones((3, 4))) is None


def test_results_are_arrays_of_their_own():
    x = pt.vector("x")
    f = pytensor.function([x], [x, x + 1, x + 1, pt.zeros(2) + 0 * x.sum()], mode="ONNX")
    value = np.ones(3)
    first = f(value), f(value)
    before = [r.copy() for r in first[1]]
    for result in first[0]:
        result[...] = 7.0
    np.testing.assert_array_equal(value, np.ones(3))
    for a, b in zip(first[1], before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_numbers_of_references_stay():
    x = pt.vector("x")
    f = pytensor.function([x], [pt.exp(x) + 1, (2 * x).sum()], mode="ONNX")
    value, objects = np.ones(3), []
    for _ in range(5):
        f(value)
    for _ in range(3):
        for size in [*range(1, 50)] * 20:
            f(np.ones(size))
        gc.collect()
        objects.append(sys.getallocatedblocks())
    assert objects[2] - objects[1] < 500
    assert sys.getrefcount(value) == 2


def test_sizes_that_do_not_fit_raise_as_ever(by_runtime):
    x, y = pt.vectors("x", "y")
    f = pytensor.function([x, y], pt.exp(x) + y, mode="ONNX")
    for _ in range(2):
        f(np.ones(3), np.ones(3))
    with pytest.raises(InputError, match="1 in y"):
        f(np.ones(3), np.ones(1))
    assert not by_runtime


def test_an_index_out_of_range_raises_as_ever():
    x, i = pt.vector("x"), pt.lvector("i")
    f = pytensor.function([x, i], pt.exp(x)[i] * 2, mode="ONNX")
    for _ in range(3):
        f(np.ones(3), np.array([0, 2]))
    with pytest.raises(IndexError):
        f(np.ones(3), np.array([0, 3]))
    np.testing.assert_array_equal(f(np.zeros(3), np.array([0, 2])), [2.0, 2.0])


def test_threads_share_a_function():
    x = pt.matrix("x")
    f = pytensor.function([x], pt.tanh(x @ x + x).sum(axis=0), mode="ONNX")
    values = [np.random.default_rng(i).normal(size=(i % 5 + 3, i % 5 + 3)) for i in range(40)]
    expected = [np.tanh(v @ v + v).sum(axis=0) for v in values]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for a, b in zip(pool.map(f, values), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.slow
def test_other_threads_run_during_a_long_call():
    n, x = pt.lscalar("n"), pt.scalar("x")
    out = pytensor.scan(pt.cos, outputs_info=[x], n_steps=n, return_updates=False)[-1]
    f = pytensor.function([n, x], out, mode="ONNX")
    f(3, 1.0), f(3, 1.0)
    if f.vm.jit_fn.direct is no_call:
        pytest.skip("the loop is no region by itself")
    turns, is_over = [0], threading.Event()

    def count():
        while not is_over.wait(0.0005):
            turns[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    f(2_000_000, 1.0)
    is_over.set()
    thread.join()
    assert turns[0] > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_process_calls_directly():
    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(x).sum(), mode="ONNX")
    f(np.zeros(3)), f(np.zeros(3))
    child = os.fork()
    if not child:
        os._exit(int(f(np.zeros(3)) != 3.0))
    assert os.waitpid(child, 0)[1] == 0


def test_data_that_are_large_constants_are_read_from_the_model(by_runtime):
    data = np.random.default_rng(0).normal(size=(300, 5))
    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(pt.constant(data) @ x).sum(), mode="ONNX")
    value = np.linspace(0, 1, 5)
    for _ in range(3):
        np.testing.assert_allclose(f(value), np.exp(data @ value).sum(), rtol=1e-12)
    assert not by_runtime


def test_rest_of_data_that_are_computed_once_runs_directly(by_runtime):
    data = pytensor.shared(np.linspace(0, 1, 15_000).reshape(5000, 3), "data")
    x = pt.vector("x")
    f = pytensor.function([x], (pt.exp(data) * x).sum(), mode="ONNX")
    expected = (np.exp(data.get_value()) * [1.0, 2.0, 3.0]).sum()
    f(np.array([1.0, 2.0, 3.0]))
    by_runtime.clear()
    for _ in range(3):
        np.testing.assert_allclose(f(np.array([1.0, 2.0, 3.0])), expected, rtol=1e-12)
    assert not by_runtime


def test_programs_and_functions_with_updates_call_directly(by_runtime):
    x, total = pt.vector("x"), pytensor.shared(0.0, "total")
    updates = {total: total + pt.exp(x).sum()}
    f = pytensor.function([x], total * 2, updates=updates, mode="ONNX")
    program = compile_onnx([x], total * 2, updates=updates)
    by_runtime.clear()
    for step in range(4):
        assert f(np.zeros(3)) == program(np.zeros(3)) == 6.0 * step
    assert total.get_value() == 12.0
    assert not by_runtime


@pytest.mark.parametrize("constant", ["value_floats=[1.5, -2.0]", "value_float=3.0"])
def test_constants_of_other_kinds_are_read(constant, by_runtime):
    text = f"""<ir_version: 10, opset_import: ["": 21]>
    main (float[n] x) => (float[n] z) {{
        c = Constant<{constant}>()
        y = Exp(x)
        z = Mul(y, c)
    }}"""
    session = Session(ir.from_onnx_text(text))
    (found,) = session.run({"x": np.zeros(2, "float32")})
    expected = [3.0, 3.0] if "floats" not in constant else [1.5, -2.0]
    np.testing.assert_array_equal(found, np.array(expected, "float32"))
    assert session.direct is not no_call
    assert not by_runtime


def test_a_model_of_several_parts_has_no_direct_call():
    x = pt.vector("x")
    program = compile_onnx([x], [pt.exp(x) + 1, x[pt.argmax(x) :]])
    program([1.0, 2.0])
    assert program.session.direct is no_call
    model, _ = program.session.serialized
    assert direct_call(model, ["x"], ["output_0", "output_1"]) is no_call
