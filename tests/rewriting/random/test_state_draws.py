"""Graphs draw from states, those within loops, branches and functions too."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional import ifelse
from pytensor.graph.fg import FunctionGraph
from pytensor.scan.utils import until

from pytensor_onnx import UnsupportedOpError, export_onnx, export_value_and_grad
from pytensor_onnx.encodings import is_encoded
from pytensor_onnx.ops.encoded import Decode, Encode
from pytensor_onnx.ops.random import draw_reference as reference
from pytensor_onnx.ops.random.draws import state_variable
from pytensor_onnx.random import state_of
from pytensor_onnx.rewriting.query.encode_values import encode_values, with_tensors
from tests.conftest import Zipf, compare_onnx_and_py, op_types

SEED = 1


def uniform(n, state=None):
    """Return uniform numbers, as the reference draws them."""
    return reference.uniform(state_of(SEED) if state is None else state, n, "float64")[1]


@pytest.fixture
def rng():
    return pt.random.shared_rng(seed=SEED, name="rng")


def run_twice(inputs, outputs, updates, *values):
    """Return the results of two calls, in mode ONNX and of the exported model, which must agree."""
    f = pytensor.function(inputs, outputs, updates=updates, mode="ONNX")
    for variable in updates:
        variable.set_value(seed=SEED)
    found = [f(*values), f(*values)]
    for variable in updates:
        variable.set_value(seed=SEED)
    program = export_onnx(inputs, outputs, updates=updates)
    assert "equal to PyTensor" in str(program.verification)
    for a in found:
        for x, y in zip(a, program(*values), strict=True):
            np.testing.assert_array_equal(x, y)
    return found


def add_uniform(rng, x):
    following, u = rng.uniform()
    return following, x + u


def test_a_graph_of_tensors_is_left():
    rng = pt.random.rng("rng")
    following, x = rng.normal(size=2)
    fgraph = FunctionGraph([rng], [following, x], clone=False)
    encode_values.rewrite(fgraph)
    fgraph = with_tensors(fgraph)
    assert not any(map(is_encoded, fgraph.variables))
    assert [v.type.dtype for v in (*fgraph.inputs, *fgraph.outputs)] == ["uint64"] * 2 + ["float64"]


def test_a_generator_made_of_a_state_is_the_state():
    state = state_variable("state")
    type_ = pt.random.rng().type
    same = Encode(type_)(Decode(type_)(state))
    program = compare_onnx_and_py([state], same, [np.arange(3, dtype="uint64")])
    assert op_types(program) == ["Identity"]


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 1, 0])
def test_a_recurrence_draws_in_every_step(rng, n):
    steps = pt.iscalar("steps")
    following, x = pytensor.scan(
        add_uniform, outputs_info=[rng, pt.zeros(())], n_steps=steps, return_updates=False
    )
    (first,), (second,) = run_twice([steps], [x], {rng: following}, n)
    numbers = uniform(2 * n)
    np.testing.assert_allclose(first, np.cumsum(numbers[:n]), rtol=1e-15)
    np.testing.assert_allclose(second, np.cumsum(numbers[n:]), rtol=1e-15)


@pytest.mark.slow
def test_a_map_draws_anew_for_every_element(rng):
    rows = pt.vector("rows")
    following, x = pytensor.scan(
        lambda a, rng: rng.uniform(a, a + 1),
        sequences=[rows],
        outputs_info=[rng, None],
        return_updates=False,
    )
    (first,), (second,) = run_twice([rows], [x], {rng: following}, np.array([5.0, 5.0, 5.0]))
    np.testing.assert_allclose([*first, *second], 5 + uniform(6), rtol=1e-15)
    (first,), _ = run_twice([rows], [x], {rng: following}, np.array([]))
    assert first.shape == (0,)


@pytest.mark.slow
def test_updates_of_the_older_kind(rng):
    def step(x):
        following, u = pt.random.uniform(rng=rng, return_next_rng=True)
        return x + u, {rng: following}

    with pytest.warns(DeprecationWarning, match="updates"):
        x, updates = pytensor.scan(step, outputs_info=[pt.zeros(())], n_steps=3)
    (first,), (second,) = run_twice([], [x], updates)
    np.testing.assert_allclose(first, np.cumsum(uniform(6)[:3]), rtol=1e-15)
    np.testing.assert_allclose(second, np.cumsum(uniform(6)[3:]), rtol=1e-15)


@pytest.mark.slow
def test_a_loop_that_ends_early_draws_no_further(rng):
    def step(rng, x):
        following, total = add_uniform(rng, x)
        return (following, total), until(total > 2)

    following, x = pytensor.scan(
        step, outputs_info=[rng, pt.zeros(())], n_steps=50, return_updates=False
    )
    following, after = following.uniform()
    (first, drawn), (second, _) = run_twice([], [x, after], {rng: following})
    totals = np.cumsum(uniform(50))
    n = 1 + np.argmax(totals > 2)
    np.testing.assert_allclose(first, totals[:n], rtol=1e-15)
    np.testing.assert_array_equal(drawn, uniform(n + 1)[n])
    np.testing.assert_allclose(second[0], uniform(n + 2)[n + 1], rtol=1e-15)


@pytest.mark.slow
def test_a_loop_within_a_loop(rng):
    def outer(rng, x):
        following, rows = pytensor.scan(
            add_uniform, outputs_info=[rng, x], n_steps=3, return_updates=False
        )
        return following, rows[-1]

    following, x = pytensor.scan(
        outer, outputs_info=[rng, pt.zeros(())], n_steps=2, return_updates=False
    )
    (first,), (second,) = run_twice([], [x], {rng: following})
    np.testing.assert_allclose(first, np.cumsum(uniform(6))[2::3], rtol=1e-14)
    np.testing.assert_allclose(second, np.cumsum(uniform(12)[6:])[2::3], rtol=1e-14)


def test_a_generator_that_a_loop_only_reads_gives_the_same_in_every_step(rng):
    x = pytensor.scan(
        lambda a, rng: a + rng.uniform()[1],
        sequences=[pt.arange(3.0)],
        non_sequences=[rng],
        return_updates=False,
    )
    f = pytensor.function([], x, mode="ONNX")
    np.testing.assert_allclose(f(), uniform(1) + np.arange(3), rtol=1e-15)


@pytest.mark.slow
def test_vectors_and_two_generators_in_one_loop(rng):
    other = pt.random.shared_rng(seed=SEED, name="other")
    n = pt.lscalar("n")

    def step(first, second, x):
        first, u = first.uniform(size=n)
        second, k = second.integers(0, 10, size=(n,))
        return first, second, x + u * k

    first, second, x = pytensor.scan(
        step, outputs_info=[rng, other, pt.zeros(n)], n_steps=4, return_updates=False
    )
    (a,), (b,) = run_twice([n], [x], {rng: first, other: second}, 3)
    assert a.shape == (4, 3)
    steps = np.diff(np.concatenate([np.zeros((1, 3)), a]), axis=0) / uniform(12).reshape((4, 3))
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-12)
    assert not np.array_equal(a, b)


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_draws_or_does_not(rng, condition):
    chosen = pt.bscalar("chosen")
    following, u = rng.uniform()
    following, x = ifelse(chosen, [following, u], [rng, pt.constant(np.float64(-1))])
    _, after = following.uniform()
    f = pytensor.function([chosen], [x, after], mode="ONNX")
    np.testing.assert_array_equal(f(condition), uniform(2) if condition else [-1, uniform(1)[0]])


@pytest.mark.slow
@pytest.mark.parametrize("inline", [True, False])
def test_a_function_of_a_generator_is_opened(rng, inline):
    inner = pt.random.rng()
    following, u = inner.uniform(size=2)
    op = OpFromGraph([inner], [following, u * 2], inline=inline)
    second, x = op(rng)
    third, y = op(second)
    (first,), (then,) = run_twice([], [pt.concatenate([x, y])], {rng: third})
    np.testing.assert_array_equal([*first, *then], 2 * uniform(8))


def test_a_cost_and_its_gradient_see_the_same_draw(rng):
    a = pt.dscalar("a")
    following, u = rng.uniform(size=3)
    cost = ((a * u) ** 2).sum()
    outputs = [cost, pt.grad(cost, a)]
    f = pytensor.function([a], outputs, updates={rng: following}, mode="ONNX")
    cost, gradient = f(1.5)
    np.testing.assert_allclose(cost, (1.5 * uniform(3)) @ (1.5 * uniform(3)), rtol=1e-12)
    np.testing.assert_allclose(gradient, 2 * cost / 1.5, rtol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options",
    [
        {"inline_functions": True},
        {"opset_version": 18},
        {"opset_version": 26},
        {"target": "standard"},
        {"target": "web", "precision": "float64"},
    ],
    ids=str,
)
def test_options_of_the_export_change_no_draw(rng, options):
    n = pt.lscalar("n")
    following, x = pytensor.scan(
        add_uniform, outputs_info=[rng, pt.zeros(())], n_steps=n, return_updates=False
    )
    following, k = following.integers(0, n, size=(n, 2))
    program = export_onnx([n], [x, k], updates={rng: following}, **options)
    found, integers = program(4)
    np.testing.assert_allclose(found, np.cumsum(uniform(4)), rtol=1e-15)
    assert integers.shape == (4, 2)
    assert set(integers.ravel()) <= {0, 1, 2, 3}


@pytest.mark.slow
def test_draws_with_named_dimensions():
    rng, m, n = (
        px.random.shared_rng(seed=SEED, name="rng"),
        px.xtensor("m", dims=("a",)),
        pt.lscalar("n"),
    )
    following, x = rng.uniform(m, m + 1, extra_dims={"b": n})
    (first,), (second,) = run_twice([m, n], [x], {rng: following}, np.array([3.0, 5.0]), 2)
    expected = uniform(8).reshape((2, 2, 2)) + np.array([3, 5])
    np.testing.assert_allclose([first, second], expected, rtol=1e-15)


def test_draws_keep_their_names(rng):
    following, x = rng.normal(2, 3, size=4)
    x.name = "noise"
    program = export_onnx([], [x], updates={rng: following}, verify=False)
    assert program.model.graph.outputs[0].name == "noise"
    assert op_types(program) == ["StandardNormal_float64", "Mul", "Add"]


def test_a_distribution_without_a_sampler_is_named_in_a_loop(rng):
    def step(rng, x):
        following, u = Zipf()(2.0, rng=rng, return_next_rng=True)
        return following, x + u

    following, x = pytensor.scan(
        step, outputs_info=[rng, pt.zeros((), "int64")], n_steps=3, return_updates=False
    )
    with pytest.raises(UnsupportedOpError, match="no sampler is defined for zipf") as raised:
        export_onnx([], x, updates={rng: following})
    assert "1 part" in str(raised.value)
    assert "exponential" in str(raised.value)


def test_a_generator_beside_other_inputs_leaves_gradients_and_lengths():
    rng, v, w = pt.random.rng("rng"), pt.vector("v"), pt.vector("w")
    following, noise = rng.uniform(size=2)
    x = pytensor.scan(
        lambda a, x, w, noise: pt.tanh(x + a * w.sum() + noise.sum()),
        sequences=[v],
        outputs_info=[pt.zeros(())],
        non_sequences=[w, noise],
        return_updates=False,
    )
    program = export_value_and_grad([rng, v, w], x.sum())
    names = [value.name for value in program.model.graph.outputs]
    assert names == ["cost", "grad_v", "grad_w"]
    following, rows = pytensor.scan(
        lambda a, rng, x, w: add_uniform(rng, x + a * w.sum()),
        sequences=[v],
        outputs_info=[following, pt.zeros(())],
        non_sequences=[w],
        return_updates=False,
    )
    f = pytensor.function([rng, v, w], [rows.shape[0], rows], mode="ONNX")
    n, found = f(np.random.default_rng(SEED), np.ones(3), np.ones(2))
    assert n == 3
    np.testing.assert_allclose(found, 2 * np.arange(1, 4) + np.cumsum(uniform(5)[2:]), rtol=1e-12)


def test_a_generator_that_is_an_input_and_an_output():
    rng = pt.random.rng("rng")
    _, x = rng.uniform()
    f = pytensor.function([rng], [rng, x], mode="ONNX")
    generator, found = f(np.random.default_rng(SEED))
    np.testing.assert_array_equal(state_of(generator), state_of(SEED))
    assert found == uniform(1)[0]
