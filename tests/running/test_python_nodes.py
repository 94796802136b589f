"""In mode ONNX, Ops without a lowering run in Python, between sessions for all other nodes."""

import copy
import pickle
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import sparse, wrap_py
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode
from pytensor.conditional.op import ifelse
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.scan.utils import until

from pytensor_onnx import (
    ONNXLinker,
    UnsupportedOpError,
    compile_onnx,
    export_function_onnx,
    export_onnx,
)
from pytensor_onnx.rewriting import ONNX_QUERY
from pytensor_onnx.running.python_nodes import Part, PartedGraph
from pytensor_onnx.running.session import Session

pytestmark = pytest.mark.filterwarnings("ignore:operations that cannot be converted")


class Cubed(Op):
    """``x ** 3`` and its slope, with a gradient that is a black box too."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type(), x.type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        (x,) = inputs
        outputs[0][0], outputs[1][0] = np.asarray(x**3), np.asarray(3 * x**2)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        return [cotangents[0] * Slope()(inputs[0])]


class Slope(Op):
    """The derivative of ``x ** 3``."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = np.asarray(3 * inputs[0] ** 2)


class Returns(Op):
    """Return whatever a function returns."""

    def __init__(self, function: Any, destroys: bool = False) -> None:
        self.function = function
        if destroys:
            self.destroy_map = {0: [0]}

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[0].type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = self.function(*inputs)


class TextType(Type):
    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> str:
        if not isinstance(data, str):
            raise TypeError("no text")
        return data

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class ToText(Op):
    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [TextType()()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = repr(float(inputs[0]))


class OfText(Op):
    __props__ = ()

    def make_node(self, text: Any) -> Apply:
        return Apply(self, [text], [pt.dscalar()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = np.asarray(float(inputs[0]))


def raising(*values: Any) -> Any:
    raise LookupError("the simulator has no such state")


cubed = Cubed()


@pytest.fixture
def x():
    return pt.dvector("x")


def parts_of(function: Any) -> tuple[int, list[str]]:
    """Return the number of sessions of a function and its Ops in Python."""
    parted = function.vm.jit_fn
    assert isinstance(parted, PartedGraph)
    steps = [step for step, _ in parted._steps]
    n_sessions = sum(isinstance(step, Part) for step in steps)
    return n_sessions, [type(step.node.op).__name__ for step in parted.python_nodes]


def compare(inputs: list, outputs: Any, *values: Any) -> Any:
    """Return a function of mode ONNX that returns in two calls what PyTensor's Python Ops do."""
    reference = pytensor.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")
    function = pytensor.function(inputs, outputs, mode="ONNX", on_unused_input="ignore")
    for _ in range(2):
        expected, found = reference(*values), function(*values)
        many = isinstance(expected, list)
        for a, b in zip(expected if many else [expected], found if many else [found], strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12)
            assert (b.dtype, b.shape) == (a.dtype, a.shape)
    return function


def test_a_wrapped_python_function(x):
    @wrap_py(itypes=[pt.dvector, pt.dscalar], otypes=[pt.dscalar])
    def score(values, scale):
        return np.asarray((values * scale).sum())

    s = pt.dscalar("s")
    f = compare([x, s], pt.exp(score(x + 1, s * 2)) + x, [0.5, -0.5], -0.3)
    assert parts_of(f) == (2, ["FromFunctionOp"])


def test_several_outputs_of_which_some_are_unused(x):
    first, second = cubed(x * 2)
    assert parts_of(compare([x], [first, second, first + second], [1.0, 2.0])) == (2, ["Cubed"])
    compare([x], [second, x + 1], [1.0, 2.0])


def test_a_black_box_of_inputs_alone_returned_as_it_is(x):
    f = compare([x], cubed(x)[0], [1.0, 2.0])
    assert parts_of(f) == (0, ["Cubed"])


def test_sessions_for_the_graph_between_two_black_boxes(x):
    y = pt.sin(cubed(pt.exp(x))[0]).sum()
    z = cubed(y)[1] * x + y
    assert parts_of(compare([x], [z, pt.cos(x)], [0.1, 0.2])) == (3, ["Cubed", "Cubed"])


def test_black_boxes_side_by_side_share_the_sessions(x):
    boxes = [cubed(x + i)[0] for i in range(4)]
    assert parts_of(compare([x], sum(boxes), [0.1, 0.2])) == (2, ["Cubed"] * 4)


def test_gradient_by_the_pullback_of_the_op(x):
    loss = (pt.exp(cubed(pt.sin(x))[0])).sum()
    f = compare([x], [loss, pt.grad(loss, x)], [0.3, -2.0, 0.0])
    assert sorted(parts_of(f)[1]) == ["Cubed", "Slope"]


@pytest.mark.parametrize(
    "value", [np.array([]), np.array([np.nan, np.inf, -np.inf, -0.0]), np.array([1e-310])]
)
def test_empty_arrays_and_special_values(x, value):
    compare([x], pt.abs(cubed(x * 1.0)[0]) + x, value)
    compare([x], cubed(x.sum())[0] * 2, value)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64"])
def test_dtypes_pass_as_they_are(dtype):
    y = pt.matrix("y", dtype=dtype)
    same = Returns(lambda y: y[::-1])
    f = compare([y], pt.concatenate([same(y.T), y.T]), np.array([[0, 1], [1, 1]], dtype))
    assert parts_of(f) == (2, ["Returns"])


def test_complex_numbers():
    z = pt.zvector("z")
    conjugated = Returns(np.conj)
    compare([z], conjugated(z * 2) + z, np.array([1 + 2j, 3 - 1j]))


def test_sparse_matrices():
    m = sparse.csr_matrix("m", dtype="float64")
    import scipy.sparse

    doubled = Returns(lambda m: m * 2)
    value = scipy.sparse.csr_matrix(np.eye(3))
    compare([m], sparse.dense_from_sparse(doubled(m)) + 1, value)
    with pytest.raises(UnsupportedOpError, match=r"(?s)exp.*x\.toarray"):
        pytensor.function([m], [pt.exp(m), doubled(m)], mode="ONNX")


def test_values_that_are_no_tensors_pass_between_python_nodes():
    x = pt.dscalar("x")
    f = compare([x], OfText()(ToText()(x * 2)) + 1, 0.1)
    assert parts_of(f) == (2, ["ToText", "OfText"])
    given = TextType()("text")
    g = pytensor.function([given, x], [OfText()(given) * x, ToText()(x)], mode="ONNX")
    assert g("1.5", 2.0) == [3.0, "2.0"]


def test_results_are_converted_to_the_type_of_the_op(x):
    as_number = Returns(lambda x: float(np.sum(x)))
    y = pt.dscalar("y")
    f = pytensor.function([y], [as_number(y), as_number(y) + 1], mode="ONNX")
    for result, expected in zip(f(2.0), (2.0, 3.0), strict=True):
        assert isinstance(result, np.ndarray)
        assert result == expected
    narrow = pytensor.function([x], Returns(lambda x: x.astype("float32"))(x) + 1, mode="ONNX")
    assert narrow([1.0]).dtype == "float64"


def test_a_result_of_another_rank_is_an_error(x):
    f = pytensor.function([x], Returns(np.sum)(x) + 1, mode="ONNX")
    with pytest.raises(TypeError, match="dim") as caught:
        f([1.0])
    assert "Returns" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("trust", [False, True])
def test_ops_in_place_change_no_array_but_their_own(x, trust):
    def fill(x):
        x.fill(7.0)
        return x

    fills = Returns(fill, destroys=True)
    s = pytensor.shared(np.array([1.0, 2.0]))
    y = x * 2
    outputs = [fills(y), y + 1, fills(x), fills(s), s + x]
    f = pytensor.function([x], outputs, mode="ONNX", trust_input=trust, accept_inplace=True)
    for _ in range(2):
        given = np.array([3.0, 4.0])
        found = f(given)
        for a, b in zip(found, [[7, 7], [7, 9], [7, 7], [7, 7], [4, 6]], strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(given, [3.0, 4.0])
        np.testing.assert_array_equal(s.get_value(), [1.0, 2.0])


def test_results_share_no_memory_with_what_was_given(x):
    s = pytensor.shared(np.array([1.0, 2.0]))
    same = Returns(lambda x: x)
    f = pytensor.function([x], [same(x), same(s), same(x)[1:]], mode="ONNX")
    given = np.array([3.0, 4.0])
    for result in f(given):
        result[:] = 0
    np.testing.assert_array_equal(given, [3.0, 4.0])
    np.testing.assert_array_equal(s.get_value(), [1.0, 2.0])
    g = pytensor.function([In(x, borrow=True)], Out(same(x), borrow=True), mode="ONNX")
    g(given)[:] = 0
    np.testing.assert_array_equal(given, [3.0, 4.0])


def test_results_of_one_call_are_not_overwritten_by_the_next(x):
    f = pytensor.function([x], cubed(x)[0], mode="ONNX")
    first = f([1.0, 2.0])
    f([3.0, 4.0])
    np.testing.assert_array_equal(first, [1.0, 8.0])


def test_inputs_and_constants_returned_beside_a_black_box(x):
    s, three = pytensor.shared(np.array([5.0])), pt.as_tensor(np.array([3.0]))
    f = pytensor.function([x], [x, s, three, cubed(x)[0]], mode="ONNX")
    given = np.array([2.0])
    for _ in range(2):
        found = f(given)
        np.testing.assert_array_equal(np.ravel(found), [2.0, 5.0, 3.0, 8.0])
        for result in found:
            result[:] = 0


def test_updates_of_shared_variables(x):
    total, last = pytensor.shared(np.zeros(2)), pytensor.shared(np.ones(2))
    updates = {total: total + cubed(x)[0], last: cubed(last * 2)[0]}
    f = pytensor.function([x], cubed(x + last)[1] + total, updates=updates, mode="ONNX")
    np.testing.assert_allclose(f([1.0, 2.0]), [12.0, 27.0])
    np.testing.assert_allclose(f([1.0, 2.0]), [3 * 81.0 + 1, 300.0 + 8])
    np.testing.assert_allclose(total.get_value(), [2.0, 16.0])
    np.testing.assert_allclose(last.get_value(), [4096.0, 4096.0])
    total.set_value(np.array([100.0, 200.0, 300.0]))
    last.set_value(np.zeros(3))
    np.testing.assert_allclose(f(np.zeros(3)), [100.0, 200.0, 300.0])


def test_swapped_shared_variables_beside_a_black_box(x):
    a, b = pytensor.shared(np.array([1.0])), pytensor.shared(np.array([2.0]))
    f = pytensor.function([x], cubed(x)[0], updates={a: b, b: a}, mode="ONNX")
    f([0.0])
    assert (a.get_value(), b.get_value()) == (2.0, 1.0)
    a.get_value(borrow=True)[:] = 9.0
    assert b.get_value() == 1.0


def test_an_error_leaves_shared_variables_as_they_are():
    s = pytensor.shared(1.0)
    updates = {s: s + 1}
    f = pytensor.function([], Returns(raising)(s), updates=updates, mode="ONNX")
    with pytest.raises(LookupError, match="no such state"):
        f()
    assert s.get_value() == 1.0


def test_exceptions_of_python_reach_the_caller(x):
    error = LookupError("no state", 3)

    def fail(x):
        raise error

    f = pytensor.function([x], Returns(fail)(x + 1) * 2, mode="ONNX")
    with pytest.raises(LookupError) as caught:
        f([1.0])
    assert caught.value is error
    assert caught.value.args == ("no state", 3)
    assert "test_python_nodes.py" in caught.value.__notes__[0]


def test_frozen_shared_variables(x):
    w = pytensor.shared(np.array([1.0, 2.0]))
    mode = Mode(ONNXLinker(freeze=True), ONNX_QUERY)
    f = pytensor.function([x], cubed(x * w)[0] + w, mode=mode)
    w.set_value(np.array([9.0, 9.0]))
    np.testing.assert_array_equal(f([1.0, 1.0]), [2.0, 10.0])


@pytest.mark.slow
def test_generators_pass_through_python_and_sessions():
    class Dice(pt.random.op.RandomVariable):
        name = "dice"
        signature = "()->()"
        dtype = "int64"

        @classmethod
        def rng_fn(cls, rng, sides, size=None):
            return rng.integers(1, sides + 1, size=size)

    rng = pytensor.shared(np.random.default_rng(3))
    next_rng, draw = Dice()(6, size=(100,), rng=rng, return_next_rng=True)
    last_rng, noise = pt.random.normal(size=(100,), rng=next_rng, return_next_rng=True)
    f = pytensor.function([], [draw, noise], updates={rng: last_rng}, mode="ONNX")
    assert parts_of(f)[1] == ["Dice"]
    kind = type(rng.get_value().bit_generator)
    expected = pytensor.function([], draw, mode="FAST_COMPILE")()
    np.testing.assert_array_equal(f()[0], expected)
    draws = [f() for _ in range(3)]
    assert len({tuple(d) for d, _ in draws}) == len({tuple(n) for _, n in draws}) == 3
    assert all(d.min() == 1 and d.max() == 6 for d, _ in draws)
    assert type(rng.get_value().bit_generator) is kind
    before = pytensor.function([], noise, mode="ONNX")
    np.testing.assert_array_equal(before(), before())


def test_functions_with_a_black_box_are_inlined(x):
    inner = pt.dvector()
    nested = OpFromGraph([inner], [pt.exp(cubed(pt.sin(inner))[0])])
    outer = OpFromGraph([inner], [nested(inner) * 2, inner + 1])
    f = compare([x], sum(outer(x + 1)), [0.1, 0.2])
    assert parts_of(f) == (2, ["Cubed"])
    twice = OpFromGraph([inner], [cubed(inner)[0]] * 2 + [inner])
    f = compare([x], twice(x), [0.1, 0.2])
    given = np.array([1.0, 2.0])
    for result in f(given):
        result[:] = 0
    np.testing.assert_array_equal(given, [1.0, 2.0])
    np.testing.assert_array_equal(f([1.0, 2.0]), [[1, 8], [1, 8], [1, 2]])


def test_a_loop_with_a_black_box_runs_in_python_as_a_whole(x):
    def step(row, total):
        return total + cubed(row)[0].sum()

    totals = pytensor.scan(step, pt.exp(x)[:, None], [np.float64(0)], return_updates=False)
    with pytest.warns(UserWarning, match=r"Scan.* as a whole, for Cubed in it"):
        f = compare([x], [totals[-1] * 2, totals], [0.1, 0.2, 0.3])
    assert parts_of(f) == (2, ["Scan"])
    loss = totals[-1] ** 2
    compare([x], pt.grad(loss, x), [0.1, 0.2, 0.3])


def test_a_batch_of_a_black_box(x):
    f = compare([x], pt.vectorize(lambda v: Slope()(v + 1), "()->()")(x) * 2, [1.0, 2.0])
    assert parts_of(f)[1]


@pytest.mark.slow
def test_a_loop_that_ends_early_and_one_with_a_generator():
    def grow(v):
        return cubed(v)[0], until(v > 2)

    start = pt.dscalar("start")
    values = pytensor.scan(grow, outputs_info=[start], n_steps=20, return_updates=False)
    compare([start], [values, pt.grad(values[-1], start)], 1.1)
    rng = pytensor.shared(np.random.default_rng(0))

    def walk(total, rng):
        next_rng, draw = pt.random.normal(rng=rng, return_next_rng=True)
        return total + cubed(draw)[0], next_rng

    start = [np.float64(0), rng]
    walks, last = pytensor.scan(walk, outputs_info=start, n_steps=4, return_updates=False)
    f = pytensor.function([], walks, updates={rng: last}, mode="ONNX")
    assert parts_of(f)[1] == ["Scan"]
    assert len(np.unique([f(), f()])) == 8


@pytest.mark.parametrize("value", [-2.0, -0.5, 0.5, 2.0])
def test_branches_within_branches(x, value):
    c = pt.dscalar("c")
    box = cubed(x + 1)[0]
    inner = ifelse(c > 1, box * 2, x), ifelse(c < -1, box, x * 3)
    compare([c, x], ifelse(c > 0, *inner), value, [1.0, 2.0])


def test_a_function_may_call_itself(x):
    def count(v):
        return v if v[0] > 3 else f(v + 1)

    f = pytensor.function([x], Returns(count)(x * 1.0) + 0.0, mode="ONNX")
    np.testing.assert_array_equal(f([1.0]), [4.0])


def test_numbers_and_indices_of_a_black_box(x):
    class Largest(Op):
        __props__ = ()

        def make_node(self, x: Any) -> Apply:
            return Apply(self, [x], [pytensor.scalar.int64()])

        def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = int(inputs[0].argmax())

    compare([x], [x[Largest()(x) :] * 2, x[Largest()(x + 1)]], [1.0, 3.0, 2.0])


@pytest.mark.parametrize("condition", [0.0, 1.0])
def test_only_the_chosen_branch_runs(x, condition):
    calls = []

    def note(x):
        calls.append(x)
        return x * 2

    c = pt.dscalar("c")
    chosen = ifelse(c > 0.5, Returns(note)(x + 1) * 3, Returns(raising)(x - 1))
    f = pytensor.function([c, x], [chosen, x], mode="ONNX")
    if condition:
        np.testing.assert_array_equal(f(condition, [1.0])[0], [12.0])
        assert len(calls) == 1
    else:
        with pytest.raises(LookupError, match="no such state"):
            f(condition, [1.0])
        assert not calls


def test_a_branch_without_its_black_box_runs_sessions(x):
    c = pt.dscalar("c")
    compare([c, x], ifelse(c > 0.5, cubed(x + 1)[0].sum(), pt.exp(x).sum()) + 1, 0.0, [1.0])
    compare([c, x], ifelse(c > 0.5, cubed(x + 1)[0], x), 0.0, [1.0])


def test_one_warning_names_each_op_its_line_and_the_option(x):
    y = cubed(x)[0]
    z = Slope()(y + 1)
    f = pytensor.function([x], z * 2, mode="ONNX")
    with pytest.warns(UserWarning, match="run in Python") as caught:
        f([1.0, 2.0])
    f([1.0, 2.0])  # warnings are errors
    (warning,) = caught
    text = str(warning.message)
    assert warning.filename == __file__
    assert text.count(f"{__file__}:") == 2
    for part in ("- Cubed", "- Slope", "y = cubed(x)[0]", "python_fallback=False"):
        assert part in text


def test_the_warning_tells_the_share_of_the_first_call(x):
    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def slow(v):
        time.sleep(0.3)
        return v + 1

    f = pytensor.function([x], slow(x * 2) + 1, mode="ONNX")
    with pytest.warns(UserWarning, match=r"which took (8|9|10)\d% of the first call:"):
        f([1.0])


def test_the_option_off_raises_an_error_with_all_of_them(x):
    off = Mode(ONNXLinker(python_fallback=False), ONNX_QUERY)
    with pytest.raises(UnsupportedOpError, match=r"(?s)2 parts.*Cubed.*Slope"):
        pytensor.function([x], Slope()(cubed(x)[0] + 1), mode=off)
    with pytest.raises(UnsupportedOpError, match="Cubed"):
        pytensor.function([x], cubed(x)[0], mode=off.including("fast_run"))


def test_exports_refuse_black_boxes(x, tmp_path):
    f = pytensor.function([x], cubed(x)[0] + 1, mode="ONNX")
    path = str(tmp_path / "model.onnx")
    with pytest.raises(UnsupportedOpError, match="Cubed"):
        export_function_onnx(f, path)
    with pytest.raises(UnsupportedOpError, match="Cubed"):
        export_onnx([x], cubed(x)[0] + 1, path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UnsupportedOpError, match="Cubed"):
        compile_onnx([x], cubed(x)[0])


def test_an_op_that_runs_nowhere_has_the_error_of_the_conversion(x):
    class Nowhere(pytensor.graph.op._NoPythonOp):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

    with pytest.raises(UnsupportedOpError, match="Nowhere"):
        pytensor.function([x], Nowhere()(x), mode="ONNX")


def test_functions_without_black_boxes_have_one_session_and_no_warning(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = pytensor.function([x], pt.exp(x) + 1, mode="ONNX")
    assert type(f.vm.jit_fn) is Session


def test_copies_and_pickles(x):
    s = pytensor.shared(np.zeros(1))
    f = pytensor.function([x], cubed(x)[0] * 2, updates={s: s + 1}, mode="ONNX")
    for g in (copy.copy(f), pickle.loads(pickle.dumps(f))):
        np.testing.assert_array_equal(g([2.0]), [16.0])


def test_several_threads_may_call_one_function(x):
    f = pytensor.function([x], pt.exp(cubed(pt.sin(x))[0]).sum(), mode="ONNX")

    def call(i):
        values = np.full(50 + i % 7, i / 100.0)
        return f(values), np.exp(np.sin(values) ** 3).sum()

    with ThreadPoolExecutor(4) as pool:
        for found, expected in pool.map(call, range(200)):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_profile_has_the_time_in_python(x):
    def slow(x):
        import time

        time.sleep(0.01)
        return x + 1

    f = pytensor.function([x], Returns(slow)(x * 2) * 3, mode="ONNX", profile=True)
    for _ in range(3):
        f([1.0])
    (key,) = [key for key in f.profile.apply_time if isinstance(key[1].op, Returns)]
    assert key[0] is f.maker.fgraph
    assert key[1] in f.maker.fgraph.apply_nodes
    assert f.profile.apply_callcount[key] == 3
    assert 0.03 <= f.profile.apply_time[key] <= f.profile.vm_call_time
    f.profile.summary()


def test_jit_fn_returns_the_outputs_for_arrays(x):
    w = pytensor.shared(np.array([3.0]))
    for y in (pt.exp(x) * w, cubed(pt.exp(x))[0] * w):
        f = pytensor.function([x], [y, y.sum()], mode="ONNX")
        found = f.vm.jit_fn(np.array([1.0]), w.get_value())
        for a, b in zip(found, f([1.0]), strict=True):
            np.testing.assert_array_equal(a, b)


class Misfit(Op):
    """Log-likelihood by element, as PyMC's page on black boxes has it."""

    __props__ = ()

    def make_node(self, slope: Any, offset: Any, x: Any, data: Any) -> Apply:
        inputs = [pt.as_tensor(v) for v in (slope, offset, x, data)]
        return Apply(self, inputs, [inputs[-1].type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        slope, offset, x, data = inputs
        outputs[0][0] = -0.5 * (data - slope * x - offset) ** 2

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        slope, offset = MisfitGradient()(*inputs)
        totals = [pt.sum(cotangents[0] * factor) for factor in (slope, offset)]
        of_data = [pt.zeros_like(v) for v in inputs[2:]]
        return [pt.full_like(v, t) for v, t in zip(inputs[:2], totals, strict=True)] + of_data


class MisfitGradient(Op):
    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[-1].type(), inputs[-1].type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        slope, offset, x, data = inputs
        outputs[0][0] = (data - slope * x - offset) * x
        outputs[1][0] = data - slope * x - offset


def black_box_model(kind: str) -> Any:
    pm = pytest.importorskip("pymc")
    x = np.linspace(0, 2, 9)
    data = 2 * x + 1 + np.cos(20 * x)

    def logp(data: Any, slope: Any, offset: Any) -> Any:
        return Misfit()(slope, offset, x, data)

    with pm.Model() as model:
        slope, width = pm.Normal("slope"), pm.HalfNormal("width")
        offset = pt.as_tensor(width).squeeze()
        if kind == "Potential":
            pm.Potential("y", logp(data, slope, offset).sum())
        else:
            pm.CustomDist("y", slope, offset, logp=logp, observed=data)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Potential", "CustomDist"])
def test_density_and_gradient_of_a_model_with_a_black_box(kind):
    model = black_box_model(kind)
    point = {"slope": np.asarray(1.5), "width_log__": np.asarray(-0.3)}
    for function in (model.compile_logp, model.compile_dlogp):
        expected, found = (function(mode=mode)(point) for mode in ("FAST_COMPILE", "ONNX"))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
@pytensor.config.change_flags(cxx="", mode="FAST_COMPILE")
def test_a_model_with_a_black_box_is_sampled():
    pm = pytest.importorskip("pymc")
    options = {"draws": 5, "tune": 5, "chains": 1, "progressbar": False, "random_seed": 1}
    with black_box_model("Potential"):
        trace = pm.sample(step=pm.Slice(), compile_kwargs={"mode": "ONNX"}, **options)
        other = pm.sample(step=pm.Slice(), compile_kwargs={"mode": "FAST_COMPILE"}, **options)
    found, expected = (t.posterior["slope"].values for t in (trace, other))
    assert len(np.unique(found)) == 5
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytensor.config.change_flags(cxx="", mode="FAST_COMPILE")
def test_prior_predictive_of_a_python_sampler():
    pm = pytest.importorskip("pymc")

    def draw(mu: Any, rng: Any = None, size: Any = None) -> np.ndarray:
        return rng.normal(loc=mu, scale=0.1, size=size)

    with pm.Model():
        mu = pm.Normal("mu")
        pm.CustomDist("y", mu, random=draw, observed=np.zeros(50))
        options = {"draws": 30, "random_seed": 1, "compile_kwargs": {"mode": "ONNX"}}
        tree = pm.sample_prior_predictive(**options)
    y, mu = tree.prior_predictive["y"].values[0], tree.prior["mu"].values[0]
    assert len(np.unique(y)) == y.size
    np.testing.assert_allclose(y.mean(axis=1), mu, atol=0.1)
    np.testing.assert_allclose((y - mu[:, None]).std(), 0.1, rtol=0.1)


@pytest.mark.slow
@pytensor.config.change_flags(cxx="", mode="FAST_COMPILE")
def test_a_simulator_by_sequential_monte_carlo():
    pm = pytest.importorskip("pymc")

    def simulate(rng: Any, mu: Any, size: Any = None) -> np.ndarray:
        return rng.normal(mu, 1, size=100)

    data = np.random.default_rng(1).normal(2, 1, size=100)
    with pm.Model():
        mu = pm.Normal("mu", 0, 5)
        pm.Simulator("y", simulate, params=(mu,), sum_stat="sort", epsilon=1, observed=data)
        options = {"chains": 1, "cores": 1, "progressbar": False, "random_seed": 1}
        mode = {"mode": "ONNX"}
        trace = pm.sample_smc(draws=100, compile_kwargs=mode, **options)
        tree = pm.sample_posterior_predictive(trace, compile_kwargs=mode, progressbar=False)
    assert abs(float(trace.posterior["mu"].mean()) - data.mean()) < 0.3
    assert abs(float(tree.posterior_predictive["y"].mean()) - data.mean()) < 0.3
