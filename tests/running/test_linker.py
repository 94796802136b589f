"""Functions in mode ``"ONNX"`` behave as ordinary PyTensor functions."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import SymbolicOp
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode, get_mode
from pytensor.raise_op import Assert

from pytensor_onnx import InputError, ONNXLinker, onnx_funcify
from pytensor_onnx.rewriting import ONNX_QUERY

FROZEN = Mode(ONNXLinker(freeze=True), ONNX_QUERY)


@pytest.fixture
def x():
    return pt.vector("x")


def test_mode_and_linker_are_registered_by_name(x):
    assert isinstance(get_mode("ONNX").linker, ONNXLinker)
    f = pytensor.function([x], 2 * x, mode=Mode("onnx", "fast_run"))
    np.testing.assert_array_equal(f([1.0, 2.0]), [2.0, 4.0])


@pytest.mark.parametrize("order", ["import pytensor\nimport pytensor_onnx", "import pytensor_onnx"])
@pytest.mark.few(1)
def test_mode_may_be_the_default(order):
    code = (
        order
        + """
import pytensor, pytensor.tensor as pt
x = pt.vector("x")
pytensor.config.mode = "ONNX"
s = pytensor.shared(1.0)
f = pytensor.function([x], pt.exp(x).sum() + s, updates={s: s + 1})
print(type(f.maker.linker).__name__, f([0.0]), f([0.0]))
with pytensor.config.change_flags(mode="NUMBA"):
    print(pytensor.compile.mode.get_default_mode() is pytensor.compile.mode.NUMBA)
try:
    pytensor.config.mode = "ONYX"
except ValueError as error:
    print(pytensor.config.mode, "Expected one of" in str(error))
"""
    )
    run = [sys.executable, "-c", code]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == ["ONNXLinker 2.0 3.0", "True", "ONNX True"]


def test_import_is_cheap_and_loads_no_runtime():
    code = """
import sys, time
start = time.process_time()
import pytensor
middle = time.process_time()
import pytensor_onnx
print((time.process_time() - middle) / (middle - start))
print([m for m in ("onnxruntime", "onnx", "pymc", "pytensor_ml") if m in sys.modules])
"""
    run = [sys.executable, "-c", code]
    ratio, modules = subprocess.run(
        run, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert modules == "[]"
    assert float(ratio) < 1  # of the time that PyTensor itself takes


def test_outputs_have_pytensors_dtypes_and_shapes(x):
    outputs = [x.sum(), x > 0, pt.cast(x, "float32"), x.argmax(), x[None, :], x.shape]
    f = pytensor.function([x], outputs, mode="ONNX")
    for found, variable in zip(f([1.0, 2.0]), outputs, strict=True):
        assert isinstance(found, np.ndarray)
        assert found.dtype == variable.type.dtype
        assert found.ndim == variable.type.ndim
        assert repr(found.dtype) == repr(np.dtype(variable.type.dtype))


def test_sizes_may_differ_from_call_to_call(x):
    y = pt.matrix("y")
    f = pytensor.function([x, y], (x + y).sum(axis=0), mode="ONNX")
    for rows, columns in [(2, 3), (5, 3), (1, 7), (0, 4), (3, 0)]:
        a, b = np.arange(float(columns)), np.ones((rows, columns))
        np.testing.assert_array_equal(f(a, b), (a + b).sum(axis=0))


def test_updates_change_shared_variables(x):
    total, count = pytensor.shared(np.zeros(2), name="total"), pytensor.shared(0, name="count")
    f = pytensor.function([x], total * 2, updates={total: total + x, count: count + 1}, mode="ONNX")
    np.testing.assert_array_equal(f([1.0, 2.0]), [0.0, 0.0])
    np.testing.assert_array_equal(f([1.0, 2.0]), [2.0, 4.0])
    np.testing.assert_array_equal(total.get_value(), [2.0, 4.0])
    assert count.get_value() == 2
    assert count.get_value().dtype == "int64"


def test_set_value_is_seen_by_the_next_call(x):
    w = pytensor.shared(np.array([1.0, 2.0]), name="w")
    f = pytensor.function([x], x * w, mode="ONNX")
    np.testing.assert_array_equal(f([1.0, 1.0]), [1.0, 2.0])
    w.set_value(np.array([3.0, 4.0, 5.0]))
    np.testing.assert_array_equal(f([1.0, 1.0, 1.0]), [3.0, 4.0, 5.0])


def test_swapped_updates_use_the_old_values():
    a, b = pytensor.shared(1.0, name="a"), pytensor.shared(2.0, name="b")
    f = pytensor.function([], [], updates={a: b, b: a}, mode="ONNX")
    assert f() == []
    assert (a.get_value(), b.get_value()) == (2.0, 1.0)


def test_givens_replace_variables(x):
    y = pt.vector("y")
    f = pytensor.function([x], y + 1, givens={y: x * 2}, mode="ONNX")
    np.testing.assert_array_equal(f([1.0]), [3.0])


def test_no_outputs_and_no_updates():
    assert pytensor.function([], [], mode="ONNX")() == []
    assert pytensor.function([], None, mode="ONNX")() == []


def test_function_without_outputs_runs_its_updates(x):
    s = pytensor.shared(0.0)
    assert pytensor.function([x], None, updates={s: x.sum()}, mode="ONNX")([1.0, 2.0]) == []
    assert s.get_value() == 3.0


def test_inputs_returned_as_outputs_are_copies(x):
    f = pytensor.function([x], [x, x, x + 1], mode="ONNX")
    given = np.array([1.0, 2.0])
    first, second, _ = f(given)
    first[0] = 7.0
    np.testing.assert_array_equal(given, [1.0, 2.0])
    np.testing.assert_array_equal(second, [1.0, 2.0])


def test_shared_variables_returned_as_outputs_are_copies():
    s = pytensor.shared(np.array([1.0, 2.0]))
    f = pytensor.function([], s, mode="ONNX")
    f()[0] = 7.0
    np.testing.assert_array_equal(s.get_value(), [1.0, 2.0])


def test_constant_outputs_are_fresh_arrays():
    f = pytensor.function([], pt.as_tensor(np.array([1.0, 2.0])), mode="ONNX")
    f()[0] = 7.0
    np.testing.assert_array_equal(f(), [1.0, 2.0])


def test_inputs_may_be_given_by_name(x):
    y = pt.scalar("y")
    f = pytensor.function([x, y], x * y, mode="ONNX")
    np.testing.assert_array_equal(f(y=3.0, x=[1.0]), [3.0])


def test_borrowed_outputs(x):
    f = pytensor.function([In(x, borrow=True)], Out(x * 2, borrow=True), mode="ONNX")
    np.testing.assert_array_equal(f(np.array([1.0])), [2.0])


def test_trusted_input(x):
    f = pytensor.function([x], x * 2, mode="ONNX", trust_input=True)
    np.testing.assert_array_equal(f(np.array([1.0])), [2.0])


@pytest.mark.parametrize("number", [2, 2.0, np.float64(2), np.float32(2), True])
@pytest.mark.parametrize("keyword", [False, True])
def test_trusted_numbers_and_lists(x, number, keyword):
    y = pt.scalar("y")
    f = pytensor.function([x, y], x * y, mode="ONNX", trust_input=True)
    found = f([1, 2], y=number) if keyword else f([1, 2], number)
    np.testing.assert_array_equal(found, [number, 2 * number])


@pytest.mark.parametrize("value", [2.5, 300, np.nan])
def test_trusted_numbers_that_the_type_cannot_hold_are_refused(value):
    n = pt.scalar("n", dtype="int8")
    f = pytensor.function([n], n + 1, mode="ONNX", trust_input=True)
    assert f(np.int64(3)) == 4
    with pytest.raises(InputError, match="n is int8, which cannot hold"):
        f(value)


def test_strided_and_fortran_ordered_inputs():
    m = pt.matrix("m")
    f = pytensor.function([m], m * 1.0, mode="ONNX")
    a = np.arange(12.0).reshape(3, 4)
    for view in (a[::-1], a.T, a[:, ::2], np.asfortranarray(a), a[:0]):
        np.testing.assert_array_equal(f(view), view)


def test_pickled_function_computes_the_same(x):
    s = pytensor.shared(np.array([1.0, 2.0]), name="s")
    f = pytensor.function([x], x * s, updates={s: s + 1}, mode="ONNX")
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g([1.0, 1.0]), [1.0, 2.0])
    np.testing.assert_array_equal(g([1.0, 1.0]), [2.0, 3.0])
    np.testing.assert_array_equal(f([1.0, 1.0]), [1.0, 2.0])


def test_copied_function_computes_the_same(x):
    s = pytensor.shared(np.array([1.0, 2.0]), name="s")
    f = pytensor.function([x], x * s, mode="ONNX")
    np.testing.assert_array_equal(copy.copy(f)([1.0, 1.0]), [1.0, 2.0])
    other = pytensor.shared(np.array([5.0, 6.0]), name="other")
    np.testing.assert_array_equal(f.copy(swap={s: other})([1.0, 1.0]), [5.0, 6.0])


def test_copy_without_updates(x):
    s = pytensor.shared(0.0)
    f = pytensor.function([x], x + s, updates={s: s + 1}, mode="ONNX")
    g = f.copy(delete_updates=True)
    g([1.0])
    assert s.get_value() == 0.0


def test_several_threads_may_call_one_function(x):
    f = pytensor.function([x], pt.exp(x).sum(), mode="ONNX")

    def call(i):
        values = np.full(50 + i % 7, i / 100.0)
        return f(values), np.exp(values).sum()

    with ThreadPoolExecutor(8) as pool:
        for found, expected in pool.map(call, range(400)):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_frozen_shared_variables_are_stored_in_the_model(x):
    w = pytensor.shared(np.array([1.0, 2.0]), name="w")
    f = pytensor.function([x], x * w, mode=FROZEN)
    w.set_value(np.array([9.0, 9.0]))
    np.testing.assert_array_equal(f([1.0, 1.0]), [1.0, 2.0])


def test_updated_shared_variables_are_never_frozen(x):
    w, n = pytensor.shared(2.0, name="w"), pytensor.shared(0.0, name="n")
    f = pytensor.function([x], x * w + n, updates={n: n + 1}, mode=FROZEN)
    np.testing.assert_array_equal(f([1.0]), [2.0])
    np.testing.assert_array_equal(f([1.0]), [3.0])


def test_frozen_mode_survives_copy_and_pickle(x):
    w = pytensor.shared(np.array([1.0, 2.0]), name="w")
    f = pytensor.function([x], x * w, mode=FROZEN)
    for g in (copy.copy(f), pickle.loads(pickle.dumps(f))):
        assert g.maker.linker.freeze
        np.testing.assert_array_equal(g([1.0, 1.0]), [1.0, 2.0])


def test_two_functions_of_one_mode_do_not_share_graphs(x):
    f = pytensor.function([x], x + 1, mode="ONNX")
    g = pytensor.function([x], x * 3, mode="ONNX")
    np.testing.assert_array_equal(f([1.0]), [2.0])
    np.testing.assert_array_equal(g([1.0]), [3.0])


def test_wrong_input_type_is_refused_by_pytensor(x):
    f = pytensor.function([x], x + 1, mode="ONNX")
    with pytest.raises(TypeError, match=r"Bad input argument|dimension"):
        f(np.ones((2, 2)))


def test_failing_check_raises_its_own_exception(x):
    checked = Assert("x must be positive")(x, (x > 0).all())
    f = pytensor.function([x], checked * 2, mode="ONNX")
    np.testing.assert_array_equal(f([1.0]), [2.0])
    with pytest.raises(AssertionError, match="x must be positive"):
        f([-1.0])
    np.testing.assert_array_equal(f([1.0]), [2.0])


def test_gradients_run(x):
    y = pt.sum(pt.tanh(x) ** 2)
    outputs = [y, pt.grad(y, x)]
    a = np.array([0.5, -1.0, 2.0])
    expected = pytensor.function([x], outputs, mode="FAST_COMPILE")(a)
    for found, wanted in zip(
        pytensor.function([x], outputs, mode="ONNX")(a), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_linker_prints_its_options():
    assert repr(ONNXLinker(freeze=True)) == "ONNXLinker(providers='cpu', freeze=True)"


def test_inner_graph_of_an_op_that_is_an_operator_is_left_alone(x):
    class Rectified(SymbolicOp):
        __props__ = ()

        def build_inner_graph(self, x):
            return [pt.maximum(x * 1.0, 0.0)]

    @onnx_funcify.register(Rectified)
    def lower_rectified(op, node, build, x):
        return build.Relu(x)

    y = Rectified()(x)
    f = pytensor.function([x], y, mode="ONNX")
    (op,) = (node.op for node in f.maker.fgraph.toposort())
    assert op == y.owner.op
    np.testing.assert_array_equal(f([-1.0, 2.0]), [0.0, 2.0])
