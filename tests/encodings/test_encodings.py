"""Encodings of several tensors serve a graph wherever a value may stand."""

import json
import pickle

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.conditional import ifelse
from pytensor.graph.basic import Constant
from pytensor.printing import Print
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.utils import until

from pytensor_onnx import (
    InputError,
    ONNXLinker,
    UnsupportedOpError,
    UnsupportedTypeError,
    export_function_onnx,
    export_onnx,
)
from pytensor_onnx.encodings import registry
from tests.encodings.pairs import (
    Complex,
    Pair,
    Pairs,
    PairType,
    pair,
    parts,
    shared_pair,
    swapped,
    unknown,
)

VM = Mode("vm", None)
VALUE = Pair(np.array([1.5, -2.5]), np.array([3, 4, 5]))
OTHER = Pair(np.array([7.0]), np.array([0, 9]))
NUMBERS = np.array([[1 + 2j, 3 - 1j], [0.5j, -2.0], [4.0, -3j]])


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(registry, "_ENCODINGS", [Pairs(), Complex(), *registry._ENCODINGS])


def assert_equal(found, expected):
    """Assert that results agree, pairs part by part."""
    assert type(found) is type(expected)
    if isinstance(expected, list | Pair):
        for a, b in zip(found, expected, strict=True):
            assert_equal(a, b)
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def compare(inputs, outputs, *values, **options):
    """Return the exported program, which must agree with mode ONNX and with PyTensor."""
    with pytensor.config.change_flags(cxx=""):
        expected = pytensor.function(inputs, outputs, mode=VM, on_unused_input="ignore")(*values)
    for mode in ("ONNX", Mode(ONNXLinker(), None)):
        f = pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")
        assert_equal(f(*values), expected)
    program = export_onnx(inputs, outputs, **options)
    assert_equal(program(*values), expected)
    assert_equal(pickle.loads(pickle.dumps(program))(*values), expected)
    return program


def test_inputs_and_outputs_have_a_tensor_for_each_part():
    p, x = pair("p"), pt.dscalar("x")
    q = swapped(p, x)
    q.name = "q"
    program = compare([p, x], [q, x + parts(q)[0].sum(), p], VALUE, 2.0)
    assert "equal to PyTensor" in str(program.verification)
    graph = program.model.graph
    assert [v.name for v in graph.inputs] == ["p.first", "p.second", "x"]
    assert [v.name for v in graph.outputs][:3] == ["q.first", "q.second", "output_1"]
    described = json.loads(program.model.metadata_props["encodings"])
    whole = {"encoding": "pair", "parts": {"first": "p.first", "second": "p.second"}}
    assert described["inputs"] == {"p": whole}
    assert described["outputs"]["q"]["parts"] == {"first": "q.first", "second": "q.second"}
    assert_equal(program(p=VALUE, x=2.0), program(VALUE, 2.0))


def test_a_runtime_of_its_own_runs_the_tensors():
    p = pair("p")
    program = export_onnx([p], swapped(p, 2.0))
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    found = session.run(None, {"p.first": VALUE.first, "p.second": VALUE.second})
    assert_equal(Pair(*found), program(VALUE))


def test_values_that_do_not_fit_are_refused():
    p = pair("p")
    program = export_onnx([p], parts(p))
    with pytest.raises(InputError, match=r"p\.first: .*p\.second: .* was given float64\[2\]"):
        program(np.zeros(2))
    with pytest.raises(InputError, match="p is given twice"):
        program(VALUE, p=VALUE)
    with pytest.raises(TypeError, match="is no pair"):
        pytensor.function([p], parts(p), mode="ONNX")(np.zeros(2))


def test_examples_are_values():
    p = pair("p")
    program = export_onnx([p], parts(p), example_inputs=[VALUE])
    assert "given inputs (p.first [2], p.second [3])" in str(program.verification)


def test_shared_values_and_updates():
    p = shared_pair(VALUE, "p")
    x = pt.dscalar("x")
    update = {p: swapped(p, x)}
    program = export_onnx([x], parts(p)[0], updates=update)
    assert program.state.keys() == {"p.first", "p.second"}
    assert json.loads(program.model.metadata_props["state"]) == {
        "p.first": "p_next.first",
        "p.second": "p_next.second",
    }
    f = pytensor.function([x], parts(p)[0], updates=update, mode="ONNX")
    exported = export_function_onnx(f)
    expected = [1.5, -2.5, 6.0, 8.0, 10.0, 2.0, -4.0]
    copied = pickle.loads(pickle.dumps(f))
    for run in (program, exported, f, copied):
        np.testing.assert_array_equal(np.concatenate([run(2.0) for _ in range(3)]), expected)
    assert_equal(p.get_value(), Pair(np.array([12.0, 16.0, 20.0]), np.array([2, -4])))
    p.set_value(OTHER)
    assert_equal(f(1.0), OTHER.first)


@pytest.mark.parametrize("freeze", [False, True])
def test_shared_values_without_an_update(freeze):
    p = shared_pair(VALUE, "p")
    f = pytensor.function([], swapped(p, 2.0), mode=Mode(ONNXLinker(freeze=freeze)))
    program = export_onnx([], swapped(p, 2.0))
    expected = f()
    assert_equal(expected, Pair(np.array([6.0, 8.0, 10.0]), np.array([1, -2])))
    assert_equal(program(), expected)
    p.set_value(OTHER)
    assert_equal(f(), expected if freeze else Pair(np.array([0.0, 18.0]), np.array([7])))


def test_constants():
    x = pt.dscalar("x")
    compare([x], [swapped(Constant(PairType(), VALUE), x), Constant(PairType(), OTHER)], 3.0)


@pytest.mark.parametrize("inline", [True, False])
def test_functions(inline):
    p, x = pair("p"), pt.dscalar("x")
    op = OpFromGraph([p, x], [swapped(p, x), parts(p)[1]], inline=inline)
    q, whole = op(p, x)
    compare([p, x], [*op(q, x), whole], VALUE, 2.0)


@pytest.mark.parametrize("condition", [True, False])
def test_branches(condition):
    p, c = pair("p"), pt.bscalar("c")
    q, total = ifelse(c, [swapped(p, 2.0), parts(p)[0].sum()], [p, pt.constant(np.float64(0))])
    compare([p, c], [q, total], VALUE, np.int8(condition))


@pytest.mark.parametrize("condition", [True, False])
def test_a_compiled_function_with_branches(condition):
    p, c = pair("p"), pt.bscalar("c")
    q, total = ifelse(c, [swapped(p, 2.0), parts(p)[0].sum()], [p, pt.constant(np.float64(0))])
    f = pytensor.function([p, c], [q, total], mode=Mode("vm"))
    assert_equal(export_function_onnx(f)(VALUE, np.int8(condition)), f(VALUE, np.int8(condition)))


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 1, 0])
def test_states_and_parameters_of_loops(n):
    p, q, steps = pair("p"), pair("q"), pt.lscalar("steps")

    def step(x, q, p):
        x = x + parts(p)[0].sum() + parts(q)[1].sum()
        return x, swapped(q, 2.0)

    x, last = pytensor.scan(
        step, outputs_info=[pt.zeros(()), q], non_sequences=[p], n_steps=steps, return_updates=False
    )
    # A loop that carries a pair of changing sizes keeps its form.
    compare([p, q, steps], [x, last], VALUE, OTHER, n)


def test_a_loop_within_a_loop_that_ends_early():
    p = pair("p")

    def inner(x, q):
        return x + parts(q)[1].sum(), swapped(q, 1.0)

    def outer(x, q):
        xs, q = pytensor.scan(inner, outputs_info=[x, q], n_steps=2, return_updates=False)
        return (xs[-1], q), until(xs[-1] > 20)

    xs, last = pytensor.scan(
        outer, outputs_info=[pt.zeros((), "int64"), p], n_steps=9, return_updates=False
    )
    program = compare([p], [xs, last], Pair(np.array([2.0]), np.array([4])))
    assert len(program(Pair(np.array([2.0]), np.array([4])))[0]) == 4


def test_checks():
    p, x = pair("p"), pt.dscalar("x")
    checked = CheckAndRaise(ValueError, "negative")(p, x > 0)
    compare([p, x], [checked, parts(checked)[1]], VALUE, 2.0)
    with pytest.raises(ValueError, match="negative"):
        pytensor.function([p, x], parts(checked), mode="ONNX")(VALUE, -1.0)


@pytest.mark.slow
def test_checks_and_prints_of_generators():
    rng, n = pytensor.shared(np.random.default_rng(3)), pt.lscalar("n")
    checked = CheckAndRaise(ValueError, "no draws")(Print("rng")(rng), n > 0)
    draws = pytensor.function([n], pt.random.normal(size=n, rng=checked), mode="ONNX")
    plain = pytensor.function([n], pt.random.normal(size=n, rng=rng), mode="ONNX")
    np.testing.assert_array_equal(draws(3), plain(3))
    with pytest.raises(ValueError, match="no draws"):
        draws(0)


def test_an_op_without_a_rewrite_is_named():
    p = pair("p")
    q, total = unknown(swapped(p, 2.0))
    with pytest.raises(UnsupportedOpError, match=r"no lowering is registered for .*Unknown"):
        export_onnx([p], [total, *parts(q)])


def test_types_without_an_encoding_are_refused(monkeypatch):
    monkeypatch.setattr(registry, "_ENCODINGS", registry._ENCODINGS[2:])
    with pytest.raises(UnsupportedTypeError, match="only dense tensors and scalars"):
        export_onnx([pair("p")], pt.constant(1.0))


def test_loops_trace_values_of_a_tensor_type():
    z, start, both = pt.zmatrix("z"), pt.zvector("start"), pt.zmatrix("both")

    def step(row, before, one, two):
        return row[::-1], before[::-1], two, one

    mapped, single, swaps, read = pytensor.scan(
        step,
        sequences=[z],
        outputs_info=[None, start, {"initial": both, "taps": [-2, -1]}, None],
        return_updates=False,
    )
    outputs = [mapped, single[-1], swaps, read[1:], z[pt.lscalar("i")]]
    i = outputs[-1].owner.inputs[1].owner.inputs[0]
    program = compare(
        [z, start, both, i], outputs, NUMBERS, NUMBERS[0], NUMBERS[:2], 1, verify=False
    )
    names = [value.name for value in program.model.graph.inputs]
    assert names == ["z.real", "z.imag", "start.real", "start.imag", "both.real", "both.imag", "i"]


def test_an_op_on_encoded_tensors_is_refused():
    z = pt.zvector("z")
    with pytest.raises(UnsupportedOpError, match="operation on complex numbers"):
        export_onnx([z], pt.exp(z)[:1])
