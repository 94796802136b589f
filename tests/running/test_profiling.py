"""Times of ONNX Runtime's nodes are those of PyTensor's."""

import copy
import io
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.debug.monitormode import MonitorMode
from pytensor.compile.debug.profiling import ProfileStats
from pytensor.compile.mode import Mode
from pytensor.link.basic import WrapLinkerMany

from pytensor_onnx import ONNXLinker, compile_onnx
from pytensor_onnx.rewriting import ONNX_QUERY


@pytest.fixture
def x():
    return pt.matrix("x", dtype="float32")


def graph(x):
    """A fused product, functions of the model called twice, a loop and a branch."""
    w = pytensor.shared(np.ones((3, 4), "float32"), name="w")
    y = pt.tanh(x @ w + np.ones(4, "float32"))
    inner = pt.vector(dtype="float32")
    twice = OpFromGraph([inner], [pt.sin(inner) * 2])
    loop = pytensor.scan(
        lambda row, total: pt.tanh(pt.erfc(row) + total),
        sequences=[y],
        outputs_info=[pt.zeros(4, dtype="float32")],
        return_updates=False,
    )
    return [loop[-1], pt.special.softmax(y, axis=1), twice(twice(y[0])), pt.erfc(y), x]


def counts(stats):
    return {str(op): n for op, n in stats.op_callcount().items()}


def test_times_of_a_function_are_read_by_node(x):
    f = pytensor.function([x], graph(x), mode="ONNX", profile=True)
    for _ in range(3):
        f(np.ones((2, 3), "float32"))
    stats = f.profile
    assert {key[0] for key in stats.apply_time} == {f.maker.fgraph}
    assert {key[1] for key in stats.apply_time} <= f.maker.fgraph.apply_nodes
    found = counts(stats)
    for name, calls in (("Tanh", 3), ("Erfc", 3), ("OpFromGraph", 6), ("Scan", 3), ("Softmax", 3)):
        assert sum(n for op, n in found.items() if op.startswith(name)) == calls
    assert all(n % 3 == 0 for n in found.values())
    pytensor.dprint(f, file=io.StringIO())
    assert 0 < sum(stats.apply_time.values()) <= stats.vm_call_time
    text = io.StringIO()
    stats.summary(file=text)
    for part in ("Time in 3 calls", "Class\n---", "Ops\n---", "Apply\n------", "Tanh"):
        assert part in text.getvalue()


def test_reading_between_calls_adds_up(x):
    f = pytensor.function([x], pt.exp(x), mode="ONNX", profile=True)
    for calls in (1, 2, 3):
        f(np.ones((2, 3), "float32"))
        assert counts(f.profile) == {"Exp": calls}


def test_the_first_call_may_be_left_out(x):
    stats = ProfileStats(atexit_print=False)
    stats.ignore_first_call = True
    f = pytensor.function([x], pt.exp(x), mode="ONNX", profile=stats)
    for _ in range(4):
        f(np.ones((2, 3), "float32"))
    assert counts(stats) == {"Exp": 3}


def test_updates_and_generators_are_timed(x):
    s, rng = pytensor.shared(np.float32(0)), pt.random.shared_rng(seed=0)
    next_rng, draw = rng.normal(size=3, dtype="float32")
    updates = {s: s + pt.cast(x.sum(), "float32"), rng: next_rng}
    f = pytensor.function([x], draw * s, updates=updates, mode="ONNX", profile=True)
    for _ in range(2):
        f(np.ones((2, 3), "float32"))
    assert s.get_value() == 12
    assert sum(f.profile.apply_time.values()) > 0


def test_times_may_be_switched_off(x):
    stats = ProfileStats(atexit_print=False, flag_time_thunks=False)
    f = pytensor.function([x], pt.exp(x), mode="ONNX", profile=stats)
    f(np.ones((2, 3), "float32"))
    assert not stats.apply_time


def test_profiled_functions_copy_and_pickle(x):
    f = pytensor.function([x], pt.exp(x), mode="ONNX", profile=True)
    f(np.ones((2, 3), "float32"))
    for g in (copy.copy(f), pickle.loads(pickle.dumps(f))):
        np.testing.assert_allclose(g(np.zeros((1, 1), "float32")), [[1.0]])


@pytest.mark.slow
def test_times_of_a_program_are_read_by_node(x):
    total = pytensor.shared(np.float32(0), name="total")
    program = compile_onnx([x], graph(x), verify=False)
    stats = program.profile(np.ones((2, 3), "float32"), calls=4)
    assert set(counts(stats).values()) >= {4}
    assert all(n % 4 == 0 for n in counts(stats).values())
    assert stats.fct_callcount == 4
    counter = compile_onnx([x], x * total, updates={total: total + 1}, verify=False)
    counter.profile(x=np.ones((2, 3), "float32"))
    assert counter.state["total"] == 0
    assert pickle.loads(pickle.dumps(program)).profile(np.ones((2, 3), "float32")).op_time()


def test_monitors_watch_the_graph_of_the_mode_in_pytensors_implementations(x):
    seen = []
    mode = MonitorMode(
        pre_func=lambda fgraph, i, node, thunk: seen.append(str(node.op)), optimizer=ONNX_QUERY
    )
    with pytensor.config.change_flags(cxx=""):
        pytensor.function([x], pt.exp(x).sum(), mode=mode)(np.ones((2, 3), "float32"))
    assert seen[:1] == ["Exp"]
    with pytest.raises(AttributeError, match=r"optimizer=pytensor_onnx.rewriting.ONNX_QUERY"):
        MonitorMode(linker=ONNXLinker())


def test_linkers_that_wrap_others_run_the_function_as_one_thunk(x):
    seen = []

    def watch(fgraph, i, node, thunk):
        thunk()
        seen.append([storage[0] for storage in thunk.outputs])

    mode = Mode(WrapLinkerMany([ONNXLinker()], [watch]), ONNX_QUERY)
    f = pytensor.function([x], [pt.exp(x), x.sum()], mode=mode)
    first, second = f(np.zeros((1, 2), "float32"))
    assert len(seen) == 1
    np.testing.assert_array_equal(first, seen[0][0])
    np.testing.assert_array_equal(second, seen[0][1])
