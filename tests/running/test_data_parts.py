"""Functions of mode ``"ONNX"`` compute what depends on data alone once, and never from old data."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, get_mode
from pytensor.conditional.op import ifelse
from pytensor.raise_op import Assert

from pytensor_onnx import ONNXLinker, SessionOptions
from pytensor_onnx.running.data_parts import DividedSession

DATA = np.linspace(-2.0, 2.0, 50)


def kernel_of(x):
    return pt.exp(-((x[:, None] - x[None, :]) ** 2))


def expected(data, v):
    return np.exp(-((data[:, None] - data[None, :]) ** 2)) @ v


@pytest.fixture
def x():
    return pytensor.shared(DATA.copy(), name="x", shape=(None,))


def function_of(x, **options):
    v = pt.vector("v")
    return pytensor.function([v], kernel_of(x) @ v, mode="ONNX", **options)


def assert_same(function, data, v=None):
    v = np.arange(len(data), dtype="float64") if v is None else v
    np.testing.assert_allclose(function(v), expected(data, v), rtol=1e-12)


def is_divided(function):
    return isinstance(function.vm.jit_fn, DividedSession)


def count_runs(function, monkeypatch):
    """Return the list to which each run of the part of the data appends."""
    runs, part = [], function.vm.jit_fn.data
    run = part.run
    monkeypatch.setattr(part, "run", lambda feed: runs.append(1) or run(feed))
    return runs


def test_data_are_computed_once_for_each_change(x, monkeypatch):
    f = function_of(x)
    runs = count_runs(f, monkeypatch)
    for _ in range(5):
        assert_same(f, DATA)
    assert len(runs) == 1
    x.set_value(DATA + 1.0)
    for _ in range(5):
        assert_same(f, DATA + 1.0)
    assert len(runs) == 2
    x.set_value((DATA + 1.0).copy())
    assert_same(f, DATA + 1.0)
    assert len(runs) == 2, "equal values are the same data"


def test_jit_fn_takes_arrays_of_all_inputs(x):
    f, v = function_of(x), np.ones(50)
    assert is_divided(f)
    for data in (DATA, DATA + 1.0, DATA * 2.0):
        (found,) = f.vm.jit_fn(v, data)
        np.testing.assert_allclose(found, expected(data, v), rtol=1e-12)
    assert_same(f, DATA)


def test_description_names_the_data(x):
    f = function_of(x)
    assert any("computed once for x" in line and "Exp" in line for line in f.vm.jit_fn.kernels())


def borrowed(x, values):
    array = values.copy()
    x.set_value(array, borrow=True)
    array[0] += 7.0
    return array


def in_place(x, values):
    x.get_value(borrow=True)[...] = values
    return values


def one_element(x, values):
    x.get_value(borrow=True, return_internal_type=True)[3] = 0.25
    changed = DATA.copy()
    changed[3] = 0.25
    return changed


CHANGES = {
    "set": lambda x, values: x.set_value(values) or values,
    "borrowed": borrowed,
    "in_place": in_place,
    "one_element": one_element,
    "longer": lambda x, values: x.set_value(np.arange(70.0) / 70) or np.arange(70.0) / 70,
    "shorter": lambda x, values: x.set_value(DATA[:2]) or DATA[:2],
    "one": lambda x, values: x.set_value(DATA[:1]) or DATA[:1],
    "empty": lambda x, values: x.set_value(DATA[:0]) or DATA[:0],
    "nan": lambda x, values: x.set_value(values * np.nan) or values * np.nan,
    "strided": lambda x, values: x.set_value(np.repeat(values, 2)[::2], borrow=True) or values,
    "reversed": lambda x, values: x.set_value(values[::-1], borrow=True) or values[::-1],
}


@pytest.mark.parametrize("name", CHANGES)
def test_results_are_those_of_the_present_data(x, name):
    f = function_of(x)
    assert is_divided(f)
    for _ in range(3):
        assert_same(f, DATA)
    data = CHANGES[name](x, DATA[::-1] * 1.5)
    for _ in range(3):
        assert_same(f, data)
    x.set_value(DATA)
    for _ in range(3):
        assert_same(f, DATA)


def test_array_borrowed_by_the_variable_changes_between_calls(x):
    f = function_of(x)
    array = DATA.copy()
    x.set_value(array, borrow=True)
    for i in range(20):
        array[i] = -i
        assert_same(f, array)


def test_large_arrays_are_compared_whole():
    data = np.linspace(0.0, 1.0, 40_001)
    x, a = pytensor.shared(data, name="x", borrow=True, shape=(None,)), pt.scalar("a")
    f = pytensor.function([a], a * pt.exp(pt.sin(x)).sum(), mode="ONNX")
    assert is_divided(f)
    for place in (0, 20_000, 40_000):
        f(1.0)
        data[place] = 9.0
        np.testing.assert_allclose(f(2.0), 2.0 * np.exp(np.sin(data)).sum(), rtol=1e-12)
    large = data.astype("float32")[:-1]
    y = pytensor.shared(large, borrow=True, shape=(None,))
    g = pytensor.function([a], a * pt.exp(pt.sin(y)).sum(), mode="ONNX")
    g(1.0)
    large[-1] = -9.0
    np.testing.assert_allclose(g(1.0), np.exp(np.sin(large)).sum(dtype="float64"), rtol=1e-4)


def test_equal_bytes_of_another_shape_are_other_data():
    x, v = pytensor.shared(np.arange(600.0).reshape(20, 30), shape=(None, None)), pt.scalar("v")
    f = pytensor.function([v], v * pt.exp(pt.sin(x)).sum(axis=0), mode="ONNX")
    assert is_divided(f)
    for shape in ((20, 30), (30, 20), (20, 30), (30, 20)):
        data = np.arange(600.0).reshape(shape)
        x.set_value(data)
        np.testing.assert_allclose(f(2.0), 2.0 * np.exp(np.sin(data)).sum(axis=0), rtol=1e-12)
    for shape in ((0, 5), (5, 0), (0, 3)):
        x.set_value(np.zeros(shape))
        assert f(2.0).shape == shape[1:]


def test_negative_zero_and_nan_are_told_by_their_bits(monkeypatch):
    data = np.full(300, np.nan)
    x, v = pytensor.shared(data, shape=(None,), borrow=True), pt.scalar("v")
    f = pytensor.function([v], v * pt.exp(pt.sin(1.0 / x)), mode="ONNX")
    runs = count_runs(f, monkeypatch)
    for _ in range(3):
        assert np.isnan(f(1.0)).all()
    assert len(runs) == 1
    data[:] = 0.0
    g = pytensor.function([v], v * pt.exp(pt.arctan(1.0 / x)), mode="ONNX")
    assert is_divided(g)
    np.testing.assert_allclose(g(1.0), np.full(300, np.exp(np.pi / 2)))
    data[:] = -0.0
    np.testing.assert_allclose(g(1.0), np.full(300, np.exp(-np.pi / 2)))


def test_other_dtypes_and_ranks_are_refused_by_the_variable(x):
    f = function_of(x)
    assert_same(f, DATA)
    for wrong in (DATA * 1j, DATA[:, None]):
        with pytest.raises(TypeError):
            x.set_value(wrong)
    assert_same(f, DATA)


def test_data_that_change_in_each_call_run_undivided(x, monkeypatch):
    f = function_of(x)
    runs = count_runs(f, monkeypatch)
    for i in range(40):
        x.set_value(DATA + i)
        assert_same(f, DATA + i)
    assert len(runs) < 15
    for _ in range(5):
        assert_same(f, DATA + 39)
    assert len(runs) < 15
    x.set_value(DATA)
    assert_same(f, DATA)


def test_two_functions_share_a_variable(x):
    f, g = function_of(x), function_of(x)
    assert_same(f, DATA)
    x.set_value(DATA * 2)
    assert_same(g, DATA * 2)
    assert_same(f, DATA * 2)
    x.get_value(borrow=True)[0] = 11.0
    changed = np.array([11.0, *DATA[1:] * 2])
    assert_same(f, changed)
    assert_same(g, changed)


def test_a_variable_that_another_function_updates(x):
    f, step = function_of(x), pytensor.function([], [], updates={x: x * 1.5}, mode="ONNX")
    assert_same(f, DATA)
    step()
    assert_same(f, DATA * 1.5)


def test_a_variable_that_the_function_updates_is_no_data(x):
    f = function_of(x, updates={x: x + 1.0})
    assert not is_divided(f)
    for i in range(3):
        assert_same(f, DATA + i)


def test_copies_and_pickles_have_their_own_data(x):
    f = function_of(x)
    assert_same(f, DATA)
    loaded, other = pickle.loads(pickle.dumps(f)), pytensor.shared(DATA * 3, shape=(None,))
    swapped = f.copy(swap={x: other})
    x.set_value(DATA * 2)
    assert_same(f, DATA * 2)
    assert_same(f.copy(), DATA * 2)
    assert_same(loaded, DATA)
    assert_same(swapped, DATA * 3)
    assert is_divided(loaded)
    assert is_divided(swapped)
    other.set_value(DATA * 4)
    assert_same(swapped, DATA * 4)


def test_threads_get_results_of_one_state_of_the_data(x):
    f, v = function_of(x), np.arange(50.0)
    right = [expected(DATA * i, v) for i in range(4)]

    def call(i):
        if i % 7 == 0:
            x.set_value(DATA * (i % 4))
        found = f(v)
        return any(np.allclose(found, each, rtol=1e-12) for each in right)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(400)))
    x.set_value(DATA)
    assert_same(f, DATA)


def test_generators_are_no_data(x):
    rng, v = pytensor.shared(np.random.default_rng(1)), pt.vector("v")
    next_rng, noise = pt.random.normal(size=50, rng=rng, return_next_rng=True)
    f = pytensor.function([v], kernel_of(x) @ v + noise, updates={rng: next_rng}, mode="ONNX")
    zeros = np.zeros(50)
    draws = [f(zeros) for _ in range(3)]
    assert not np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[1], draws[2])
    noise = f(zeros)
    rng.set_value(np.random.default_rng(1))
    np.testing.assert_array_equal(f(zeros), draws[0])
    assert not np.array_equal(noise, draws[0])


def test_a_failing_check_of_the_data_raises_its_own_error():
    x, v = pytensor.shared(DATA + 3, name="x", shape=(None,)), pt.vector("v")
    positive = Assert("data are positive")(x, pt.all(x > 0))
    f = pytensor.function([v], kernel_of(pt.log(positive)) @ v, mode="ONNX")
    assert is_divided(f)
    assert_same(f, np.log(DATA + 3))
    x.set_value(DATA)
    for _ in range(3):
        with pytest.raises(AssertionError, match="data are positive"):
            f(DATA)
    x.set_value(DATA + 3)
    assert_same(f, np.log(DATA + 3))


def test_sizes_that_do_not_fit_raise_as_undivided(x):
    f = function_of(x)
    frozen = function_of(x, name="f")
    assert_same(f, DATA)
    for given in (np.ones(3), np.ones(1)):
        with pytest.raises(Exception, match="x") as divided:
            f(given)
        with pytest.raises(type(divided.value)) as whole:
            frozen.vm.jit_fn.whole.run(dict(zip(("v", "x"), (given, DATA), strict=True)))
        assert str(divided.value).splitlines()[0] == str(whole.value).splitlines()[0]
    assert_same(f, DATA)


def test_lazy_branches_of_data_stay_lazy():
    x, c, v = pytensor.shared(DATA, shape=(None,)), pt.bscalar("c"), pt.vector("v")
    checked = Assert("data are positive")(x, pt.all(x > 0))
    f = pytensor.function([c, v], ifelse(c, kernel_of(checked) @ v, v), mode="ONNX")
    np.testing.assert_array_equal(f(0, DATA), DATA)
    with pytest.raises(AssertionError, match="data are positive"):
        f(1, DATA)


def test_results_are_arrays_of_their_own(x):
    v = pt.vector("v")
    f = pytensor.function([v], [kernel_of(x), kernel_of(x) @ v], mode="ONNX")
    first = f(DATA)[0]
    first[...] = 0.0
    np.testing.assert_allclose(f(DATA)[0] @ DATA, expected(DATA, DATA), rtol=1e-12)


@pytest.mark.parametrize("kernels", [True, False])
def test_with_and_without_the_native_library(x, kernels):
    linker = ONNXLinker(session_options=SessionOptions(kernels=kernels))
    v = pt.vector("v")
    mode = Mode(linker, get_mode("ONNX").provided_optimizer)
    f = pytensor.function([v], kernel_of(x) @ v, mode=mode)
    assert is_divided(f)
    assert_same(f, DATA)
    x.set_value(DATA * 2)
    assert_same(f, DATA * 2)


UNDIVIDED = {
    "sum": lambda x, v: (x + v).sum(),
    "cast": lambda x, v: x.astype("float32") * v,
    "shape": lambda x, v: v * x.shape[0],
    "difference": lambda x, v: (x[:, None] - x[None, :]) * v,
    "large_difference": lambda x, v: (x[:1, None] + pt.arange(4000)) * v,
}


@pytest.mark.parametrize("name", UNDIVIDED)
def test_little_work_stays_in_the_call(x, name):
    v = pt.vector("v")
    assert not is_divided(pytensor.function([v], UNDIVIDED[name](x, v), mode="ONNX"))


def test_functions_without_arguments_are_undivided(x):
    f = pytensor.function([], kernel_of(x).sum(), mode="ONNX")
    assert not is_divided(f)


def test_other_calls_than_the_direct_one(x):
    v = pt.vector("v")
    f = pytensor.function([v], kernel_of(x) @ v, mode="ONNX", profile=True)
    assert_same(f, DATA)
    g = function_of(x)
    x.set_value(DATA * 2)
    np.testing.assert_allclose(g(v=list(DATA)), expected(DATA * 2, DATA), rtol=1e-12)
    g.trust_input = True
    np.testing.assert_allclose(g(DATA), expected(DATA * 2, DATA), rtol=1e-12)
