"""Functions of mode ``"ONNX"`` take arguments as PyTensor's do, from several threads at once."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.io import In
from pytensor.compile.mode import Mode, get_mode
from pytensor.raise_op import Assert
from pytensor.tensor.type_other import NoneConst

from pytensor_onnx import InputError, ONNXLinker
from pytensor_onnx.running.executor import ONNXFunction
from pytensor_onnx.running.session import Session

ONNX = get_mode("ONNX")


def unaligned(values):
    raw = np.zeros(8 * len(values) + 1, dtype="uint8")[1:]
    array = raw.view("float64")
    array[:] = values
    return array


class Subclass(np.ndarray):
    pass


ARGUMENTS = {
    "array": (np.array([1.0, 2.0, 3.0]),),
    "list": ([1.0, 2.0, 3.0],),
    "integers": (np.arange(3),),
    "float32": (np.arange(3, dtype="float32"),),
    "big_endian": (np.arange(3, dtype=">f8"),),
    "strided": (np.arange(6.0)[::2],),
    "reversed": (np.arange(3.0)[::-1],),
    "read_only": (np.broadcast_to(1.0, (3,)),),
    "subclass": (np.arange(3.0).view(Subclass),),
    "unaligned": (unaligned([1.0, 2.0, 3.0]),),
    "complex": (np.arange(3) * 1j,),
    "text": (["a", "b", "c"],),
    "none": (None,),
    "variable": (pt.vector(),),
    "too_long": (np.ones(4),),
    "too_many_axes": (np.ones((3, 1)),),
    "no_axes": (1.0,),
    "missing": (),
    "one_too_many": (np.ones(3), np.ones(3)),
}


MODES = {
    "ONNX": "ONNX",
    "plain": Mode(ONNX.linker, ONNX.provided_optimizer.including("random_make_inplace")),
    "python": "FAST_COMPILE",
}
"""Mode ONNX, the mode that `pymc.compile` makes of it, and PyTensor's Python implementation."""


@cache
def doubled(size, mode):
    x = pt.vector("x", shape=(size,))
    return pytensor.function([x], x * 2, mode=MODES[mode])


def outcome(function, arguments):
    try:
        return None, function(*arguments)
    except Exception as error:
        return [type(error), str(error), *getattr(error, "__notes__", [])], None


@pytest.mark.each_value
@pytest.mark.parametrize("mode", ["ONNX", "plain"])
@pytest.mark.parametrize("size", [None, 3], ids=["any_size", "size_3"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_taken_or_refused_as_by_pytensor(name, size, mode):
    error, expected = outcome(doubled(size, "python"), ARGUMENTS[name])
    for _ in range(2):
        found_error, found = outcome(doubled(size, mode), ARGUMENTS[name])
        assert found_error == error
        if error is None:
            np.testing.assert_array_equal(found, expected, strict=True)


def test_arrays_of_other_bytes_or_alignment_are_checked_after_calls_that_fit():
    f, values = doubled(3, "plain"), np.arange(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(f(values), 2 * values)
        np.testing.assert_array_equal(f(values.astype(">f8")), 2 * values)
        np.testing.assert_array_equal(f(np.arange(3, dtype="int8")), 2 * values)
        with pytest.raises(TypeError, match="not aligned"):
            f(unaligned(values))
        with pytest.raises(TypeError, match="shape"):
            f(np.ones(4))


def test_trust_is_for_the_calls_made_with_it():
    x = pt.vector("x", shape=(3,), dtype="float64")
    f = pytensor.function([x], x.sum(), mode="ONNX", trust_input=True)
    with pytest.raises(Exception, match="x"):
        f(np.ones(4))
    assert f([1, 2, 3]) == 6
    f.trust_input = False
    with pytest.raises(TypeError, match="shape"):
        f(np.ones(4))


@pytest.mark.parametrize("n_outputs", [0, 1])
def test_trusted_arrays_of_another_byte_order_keep_their_numbers(n_outputs):
    x, total = pt.vector("x"), pytensor.shared(np.zeros(3))
    updates = {total: total + x}
    f = pytensor.function([x], [x * 2] * n_outputs, mode="ONNX", updates=updates, trust_input=True)
    values = np.arange(3.0)
    mapped = values.astype(">f8").view(np.memmap)
    for given in (values.astype(">f8"), values, values.astype(">f8"), mapped):
        for found in f(given):
            np.testing.assert_array_equal(found, 2 * values, strict=True)
    np.testing.assert_array_equal(total.get_value(), 4 * values)


def test_strict_inputs_take_their_own_dtype_only():
    x = pt.vector("x", dtype="float64")
    f = pytensor.function([In(x, strict=True)], x * 2, mode="ONNX")
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    with pytest.raises(TypeError, match="expected an ndarray"):
        f([1.0, 1.0])


@pytest.mark.parametrize("downcast", [True, False, None])
def test_dtypes_are_cast_as_the_function_allows(downcast):
    x = pt.vector("x", dtype="int8")
    functions = [
        pytensor.function([x], x + 1, mode=mode, allow_input_downcast=downcast)
        for mode in ("FAST_COMPILE", "ONNX")
    ]
    for value in (np.arange(3), np.arange(3, dtype="int8"), [1, 2], [300, 1], np.array([2.5])):
        (expected_error, expected), (error, found) = (outcome(f, (value,)) for f in functions)
        assert error == expected_error
        if error is None:
            np.testing.assert_array_equal(found, expected, strict=True)


def test_axes_of_one_size_are_checked_again_where_a_shared_variable_changes():
    x, w = pt.vector("x"), pytensor.shared(np.ones(3))
    f = pytensor.function([x], x + w, mode="ONNX")
    np.testing.assert_array_equal(f(np.ones(3)), 2 * np.ones(3))
    w.set_value(np.ones(1))
    for _ in range(2):
        with pytest.raises(InputError, match="dimension"):
            f(np.ones(3))
    w.set_value(np.ones(3))
    np.testing.assert_array_equal(f(np.ones(3)), 2 * np.ones(3))


@pytest.mark.parametrize("value", [2, 2.5, np.float64(2.5), np.float32(2.5), np.array(2.5), True])
def test_scalars_are_taken_as_by_pytensor(value):
    x = pt.scalar("x")
    expected = pytensor.function([x], x * 2, mode="FAST_COMPILE")(value)
    found = pytensor.function([x], x * 2, mode="ONNX")(value)
    np.testing.assert_array_equal(found, expected, strict=True)


def test_refused_argument_is_named():
    x, y = pt.vectors("x", "y")
    f = pytensor.function([x, y], x + y, mode="ONNX")
    with pytest.raises(TypeError) as error:
        f(np.ones(3), np.ones((3, 3)))
    assert "at index 1" in "".join(error.value.__notes__)


@pytest.fixture
def meeting(monkeypatch):
    """Let every run of a session wait until two of them are under way."""
    run, barrier = Session.run_by_runtime, threading.Barrier(2, timeout=5)

    def wait_and_run(self, feed):
        barrier.wait()
        return run(self, feed)

    monkeypatch.setattr(Session, "run_by_runtime", wait_and_run)


@pytest.mark.usefixtures("meeting")
@pytest.mark.parametrize("mode", ["ONNX", "plain"])
def test_calls_without_updates_run_at_the_same_time(mode):
    x, w = pt.vector("x"), pytensor.shared(2.0)
    f = pytensor.function([x], x * w, mode=MODES[mode])
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(f, [np.ones(2), np.ones(3)]))
    assert [len(result) for result in results] == [2, 3]


@pytest.mark.parametrize("mode", ["ONNX", "plain"])
def test_calls_with_updates_run_one_after_the_other(mode):
    x, total = pt.scalar("x"), pytensor.shared(0.0)
    f = pytensor.function([x], total, updates={total: total + x}, mode=MODES[mode])
    with ThreadPoolExecutor(8) as pool:
        before = list(pool.map(f, np.ones(400)))
    assert sorted(map(float, before)) == list(range(400))
    assert total.get_value() == 400


ARGUMENT = pt.vector("x")
CALLS = pytensor.shared(0, name="calls")
GENERATOR = pt.random.shared_rng(seed=1, name="rng")
FOLLOWING, DRAWN = GENERATOR.normal()
WITH_NONE = {
    "last": ([ARGUMENT * 2, NoneConst], {}),
    "several": ([NoneConst, ARGUMENT * 2, NoneConst, ARGUMENT[0]], {}),
    "single": (NoneConst, {}),
    "alone": ([NoneConst, NoneConst], {}),
    "updates": ([NoneConst, CALLS, NoneConst], {CALLS: CALLS + 1}),
    "updates_alone": (NoneConst, {CALLS: CALLS + 1}),
    "generator": ([NoneConst, DRAWN > 100, NoneConst], {GENERATOR: FOLLOWING}),
    "complex": ([NoneConst, ARGUMENT * 1j], {}),
}


@pytest.mark.parametrize("name", WITH_NONE)
def test_outputs_may_be_none(name):
    outputs, updates = WITH_NONE[name]

    def results(mode):
        CALLS.set_value(0)
        f = pytensor.function(
            [ARGUMENT], outputs, updates=updates, mode=mode, on_unused_input="ignore"
        )
        a = np.array([1.0, 2.0])
        pickled = pickle.loads(pickle.dumps(f))
        return [f(a), f(a), f.copy(share_memory=False)(a), pickled(a), CALLS.get_value()]

    assert str(results("ONNX")) == str(results("FAST_COMPILE"))


VECTOR, MATRIX = pt.vector("v", dtype="float64"), pt.matrix("m", dtype="float64", shape=(2, 3))
COMPLEX = pt.vector("z", dtype="complex128")
WEIGHT = pytensor.shared(np.ones(3), "weight")
VALUES = (np.arange(3.0),)


def made(inputs, outputs, mode="ONNX", **options):
    return lambda: pytensor.function(inputs, outputs, mode=mode, **options)


def copied(**options):
    return made([VECTOR], VECTOR + WEIGHT)().copy(**options)


def drawn():
    rng = pt.random.shared_rng(seed=1)
    following, draws = rng.normal(size=3)
    return pytensor.function([VECTOR], VECTOR + draws, updates={rng: following}, mode="ONNX")


OTHER_WEIGHT = pytensor.shared(np.zeros(3), "other weight")
WAYS = {
    "mode": (made([VECTOR], VECTOR * 2), VALUES),
    "plain mode": (made([VECTOR], VECTOR * 2, MODES["plain"]), VALUES),
    "linker by name": (made([VECTOR], VECTOR * 2, Mode("onnx", "fast_run")), VALUES),
    "linker with options": (made([VECTOR], VECTOR + WEIGHT, Mode(ONNXLinker(freeze=True))), VALUES),
    "fewer rewrites": (made([VECTOR], VECTOR * 2, ONNX.excluding("fusion")), VALUES),
    "trusted": (made([VECTOR], VECTOR * 2, trust_input=True), VALUES),
    "static shape": (made([MATRIX], MATRIX * 2), (np.ones((2, 3)),)),
    "three arrays": (
        made(pt.vectors("abc"), VECTOR * 2, on_unused_input="ignore", givens={VECTOR: WEIGHT}),
        VALUES * 3,
    ),
    "no arguments": (made([], WEIGHT * 2), ()),
    "several outputs": (made([VECTOR], [VECTOR, VECTOR.sum(), VECTOR.shape]), VALUES),
    "shared variable": (made([VECTOR], VECTOR + WEIGHT), VALUES),
    "updates": (made([VECTOR], VECTOR * 2, updates={CALLS: CALLS + 1}), VALUES),
    "generator": (drawn, VALUES),
    "strict": (made([In(VECTOR, strict=True, borrow=True)], VECTOR * 2), VALUES),
    "complex": (made([COMPLEX], COMPLEX * 2), (np.arange(3) * 1j,)),
    "copy": (copied, VALUES),
    "swapped copy": (lambda: copied(swap={WEIGHT: OTHER_WEIGHT}), VALUES),
    "pickle": (
        lambda: pickle.loads(pickle.dumps(made([VECTOR], VECTOR * 2, MODES["plain"])())),
        VALUES,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_functions_made_in_any_way_call_the_session_directly(way, monkeypatch):
    make, values = WAYS[way]
    f = make()
    assert type(f) is ONNXFunction
    monkeypatch.setattr(Function, "__call__", None)
    for _ in range(2):
        f(*values)


def test_functions_with_a_profile_count_their_calls():
    f = pytensor.function([VECTOR], VECTOR * 2, mode=MODES["plain"], profile=True)
    f(*VALUES)
    f(*VALUES)
    assert f.profile.fct_callcount == 2


def test_an_update_is_not_made_where_the_call_fails():
    checked = Assert("negative")(VECTOR, (VECTOR >= 0).all())
    total = pytensor.shared(np.zeros(3))
    f = pytensor.function([VECTOR], checked, updates={total: total + checked}, mode="ONNX")
    with pytest.raises(AssertionError, match="negative"):
        f(-np.ones(3))
    np.testing.assert_array_equal(total.get_value(), 0)
    assert f(np.ones(3)).sum() == total.get_value().sum() == 3


KEYWORDS = {
    "in_order": {"a": 1.0, "b": 2.0},
    "out_of_order": {"b": 2.0, "a": 1.0},
    "missing": {"a": 1.0},
    "unknown": {"a": 1.0, "c": 2.0},
    "too_many": {"a": 1.0, "b": 2.0, "c": 3.0},
    "shared": {"a": 1.0, "s": 3.0},
    "wrong": {"a": 1.0, "b": [1.0]},
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords_are_taken_or_refused_as_by_pytensor(name):
    a, b, s = pt.scalar("a"), pt.scalar("b"), pytensor.shared(4.0, "s")
    functions = [pytensor.function([a, b], a - b + s, mode=m) for m in ("FAST_COMPILE", "ONNX")]
    (expected_error, expected), (error, found) = (
        outcome(lambda f=f: f(**KEYWORDS[name]), ()) for f in functions
    )
    assert error == expected_error
    assert found == expected


def test_a_name_of_two_inputs_is_no_keyword():
    a, b = pt.scalar("a"), pt.scalar("a")
    f = pytensor.function([a, b], a - b, mode="ONNX")
    assert f(3.0, 1.0) == 2
    with pytest.raises(TypeError, match="Ambiguous name"):
        f(3.0, a=1.0)
