"""Verification compares with PyTensor and names the first node that diverges."""

import warnings

import numpy as np
import onnx_ir as ir
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph import Apply, Op
from pytensor.raise_op import Assert

from pytensor_onnx import VerificationError, compile_onnx, export_onnx, onnx_funcify


class Halve(Op):
    """An operation whose lowering is wrong."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] / 2


@onnx_funcify.register(Halve)
def lower_halve(op, node, build, x):
    return build.Mul(x, 0.4)


@pytest.fixture
def x():
    return pt.vector("x")


def test_verified_program_says_so(x):
    assert "equal to PyTensor on sampled inputs" in str(export_onnx([x], pt.exp(x)).verification)
    given = export_onnx([x], pt.exp(x), example_inputs=[np.ones(3)])
    assert "equal to PyTensor on given inputs (x [3])" in str(given.verification)


def test_unverified_program_says_so(x):
    assert str(export_onnx([x], pt.exp(x), verify=False).verification) == "not verified"


def test_first_diverging_node_is_named(x):
    with pytest.raises(VerificationError) as raised:
        export_onnx([x], pt.tanh(Halve()(pt.exp(x))) + 1)
    message = str(raised.value)
    assert message.startswith("output 'output_0' differs from PyTensor: largest difference")
    assert "The first node that diverges is 'mul', which computes Halve" in message
    assert "test_verification.py" in message
    verification = raised.value.verification
    assert (verification.verdict, verification.node) == ("different", "mul")
    assert "test_verification.py" in verification.line
    assert [bool(value.problem) for value in verification.values] == [False, True, True, True]
    assert verification.values[0].largest < 1e-14
    assert verification.values[1].relative > 0.1
    assert str(verification) == message


def test_all_values_are_compared_on_demand(x):
    program = export_onnx([x], {"y": pt.tanh(pt.exp(x)) + 1})
    assert program.verification.values == ()
    values = program.verify([[0.5, 2.0]], values=True).verification.values
    assert [value.computes for value in values] == ["Exp", "Tanh", "Add"]
    assert values[-1].name == "y"
    assert all(value.relative < 1e-15 for value in values)
    assert "| y | Add |" in program.report()


def test_file_is_not_written_when_verification_fails(x, tmp_path):
    with pytest.raises(VerificationError):
        export_onnx([x], Halve()(x), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_verification_can_be_switched_off(x, tmp_path):
    export_onnx([x], Halve()(x), tmp_path / "model.onnx", verify=False)
    assert (tmp_path / "model.onnx").exists()


def test_verification_on_given_inputs(x):
    program = compile_onnx([x], Halve()(x), verify=False)
    program.verify([np.zeros(3)])
    with pytest.raises(VerificationError):
        program.verify([np.ones(3)])


def test_invalid_model_is_refused(x):
    program = compile_onnx([x], pt.exp(x), verify=False)
    next(iter(program.model.graph)).attributes["no_such_attribute"] = ir.AttrInt64("no_such", 1)
    with pytest.raises(VerificationError, match=r"(?i)attribute"):
        program.verify()


def test_inputs_that_pytensor_refuses_are_reported():
    x, shape = pt.vector("x"), pt.lvector("shape")
    y = x.reshape(shape, ndim=3)
    text = "not compared, as PyTensor fails on all sampled inputs"
    with pytest.warns(UserWarning, match=text) as warned:
        program = export_onnx([x, shape], y)
    assert {w.filename for w in warned if text in str(w.message)} == {__file__}
    assert program.verification.verdict == "not compared"
    assert "not compared" in str(program.verification)
    assert "not compared" in program.report()
    assert "give example_inputs" in str(program.verification)
    given = export_onnx([x, shape], y, verify=False).verify([np.ones(6), np.array([1, 2, 3])])
    assert "equal to PyTensor on given inputs" in str(given.verification)
    with pytest.raises(VerificationError, match="PyTensor itself fails"):
        program.verify([np.ones(6), np.array([4, 4, 4])])


def test_sizes_that_must_agree_are_sampled_equal():
    x, w, b = pt.matrix("x"), pt.matrix("w"), pt.vector("b")
    assert "equal to PyTensor" in str(export_onnx([x, w, b], pt.tanh(x @ w + b)).verification)


def test_state_is_verified():
    x, w = pt.vector("x"), pytensor.shared(np.ones(3), name="w")
    assert "equal to PyTensor" in str(export_onnx([x], x * w, updates={w: w + x}).verification)


def test_inputs_are_sampled_as_long_as_the_state():
    x, w = pt.vector("x"), pytensor.shared(np.ones(11), name="w")
    program = export_onnx([x], x * w, updates={w: w + x})
    assert "equal to PyTensor on sampled inputs (x [11])" in str(program.verification)


@pytest.mark.slow
def test_one_long_and_one_short_vector_are_sampled():
    """Coefficients and the state of a differential equation of two variables."""
    x, y = pt.vector("x"), pt.vector("y")
    z = pytensor.scan(
        lambda y, x: y + 0.1 * pt.stack([x[0] * y[0] - x[1] * y[1], x[2] * y[0] - x[3] * y[1]]),
        outputs_info=[y],
        non_sequences=[x],
        n_steps=3,
        return_updates=False,
    )
    for inputs in ([x, y], [y, x]):
        assert "equal to PyTensor" in str(export_onnx(inputs, z).verification)


def test_error_says_which_samples_were_used_and_how_to_give_others(x):
    message = (
        r"Compared on sampled inputs \(x \[3\]\); "
        r"give example_inputs to compare on inputs of your own"
    )
    with pytest.raises(VerificationError, match=message):
        export_onnx([x], Halve()(x))
    with pytest.raises(VerificationError, match=r"Compared on given inputs \(x \[2\]\);"):
        export_onnx([x], Halve()(x), example_inputs=[np.ones(2)])


@pytest.mark.parametrize(
    "compute",
    [
        lambda a, b: pt.log(a - 50),
        lambda a, b: pt.log(-50 - a),
        lambda a, b: pt.sqrt(a - 50) + pt.arcsin(b - 0.5),
        lambda a, b: pt.arccosh(a * 10),
        lambda a, b: pt.log(Assert("must be large")(a, (a > 60).all()) - 50),
        lambda a, b: pt.log1p(-b) + pt.log(b),
        lambda a, b: a[5:] + b[5:],
    ],
)
def test_other_inputs_are_sampled_where_nothing_is_finite(compute):
    a, b = pt.vector("a"), pt.vector("b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = export_onnx([a, b], compute(a, b))
    assert str(program.verification).startswith("checked, loaded and equal to PyTensor on sampled")
    with pytest.raises(VerificationError, match="differs from PyTensor"):
        export_onnx([a, b], Halve()(compute(a, b)))


def test_integers_are_sampled_of_several_sizes():
    n = pt.lvector("n")
    assert "equal to PyTensor" in str(export_onnx([n], pt.log(n - 60.5)).verification)
    with pytest.raises(VerificationError):
        export_onnx([n], Halve()(pt.log(n - 60.5)))


@pytest.mark.parametrize(
    "unpack", [lambda x: x[:12].reshape((3, 4)).sum() + x[12:16].sum(), lambda x: x.reshape((4, 6))]
)
def test_packed_vectors_are_sampled_as_long_as_their_parts(unpack):
    x = pt.vector("x")
    assert "equal to PyTensor" in str(export_onnx([x], pt.tanh(unpack(x))).verification)
    with pytest.raises(VerificationError, match="differs from PyTensor"):
        export_onnx([x], Halve()(unpack(x)))


def test_outputs_without_a_finite_value_are_not_called_equal(x):
    y = pt.log(-1 - x**2)
    y.name = "y"
    with pytest.warns(UserWarning, match="not compared: y, without a finite value on any"):
        program = export_onnx([x], y)
    assert str(program.verification).startswith("checked and loaded, but not compared: y")
    assert "not compared: y" in program.report()
    with pytest.warns(UserWarning, match="not compared: y"):
        program = export_onnx([x], [x + 1, y])
    assert "equal to PyTensor on sampled inputs (x [3])" in str(program.verification)
    assert "not compared: y" in str(program.verification)
    with pytest.warns(UserWarning, match="not compared: output_0"):
        program = export_onnx([x], pt.log(x), example_inputs=[-np.ones(3)])
    assert str(program.verification).startswith("checked and loaded, but not compared")


def test_outputs_that_are_always_empty_are_no_reason_to_warn(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export_onnx([x], [x + 1, pt.zeros((0, 2))])


def chaotic(x, steps=20):
    """The sine map: each step doubles the error."""
    for _ in range(steps):
        x = pt.sin(np.float32(np.pi) * x)
    return x


def chaotic_loop(x):
    return pytensor.scan(
        lambda s: pt.sin(np.float32(np.pi) * s),
        outputs_info=[x],
        n_steps=20,
        return_updates=False,
    )[-1]


@pytest.mark.parametrize("compute", [chaotic, chaotic_loop])
@pytest.mark.parametrize("values", [np.array([0.3, 0.4, 0.77]), np.array([0.3])])
def test_ill_conditioned_graphs_are_judged_by_float64(compute, values):
    x = pt.vector("x", dtype="float32")
    given = [values.astype("float32")]
    with pytest.warns(UserWarning, match="compared within rounding only"):
        program = export_onnx([x], compute(x), example_inputs=given)
    assert "as near to float64 as rounding in PyTensor on given inputs" in str(program.verification)
    assert "which are ill-conditioned (output_0: ONNX Runtime is " in str(program.verification)


def test_ill_conditioned_graphs_of_float64_are_judged_by_inputs_rounded_differently():
    x = pt.vector("x", dtype="float64")
    y = pt.concatenate([x, -x[::-1]]).sum() + 1
    given = [np.random.default_rng(0).normal(size=1001) * 1e9]
    with pytest.warns(UserWarning, match="compared within rounding only"):
        export_onnx([x], y, example_inputs=given)
    with pytest.raises(VerificationError):
        export_onnx([x], y + Halve()(y), example_inputs=given)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: pt.linalg.inv(x @ x.T),
        lambda x: pt.linalg.slogdet(x @ x.T)[1],
        lambda x: pt.linalg.solve(x @ x.T, x),
        lambda x: pt.linalg.solve(x @ x.T, x, assume_a="pos"),
    ],
)
@pytest.mark.few(1)
def test_products_that_are_singular_for_tall_matrices_are_compared_on_wide_ones(compute):
    x = pt.matrix("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        program = export_onnx([x], compute(x))
    assert "equal to PyTensor on sampled inputs (x [2, 5])" in str(program.verification)
    with pytest.raises(VerificationError):
        export_onnx([x], Halve()(compute(x)))


def network(x, weights, last=1.0):
    """Ill-conditioned where inputs are large, well-conditioned where they are below one."""
    for w in weights:
        x = pt.sin(8 * pt.dot(x, w) ** 3)
    return x * np.float32(last)


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(8, 8)) * 0.4).astype("float32") for _ in range(4)]


def test_a_network_is_also_compared_where_it_is_well_conditioned(weights):
    x = pt.tensor("x", shape=(3, 8), dtype="float32")
    program = export_onnx([x], network(x, weights))
    assert "equal to PyTensor on sampled inputs (x [3, 8]; values near 0)" in str(
        program.verification
    )
    assert ", which are ill-conditioned (output_0: ONNX Runtime is " in str(program.verification)


@pytest.mark.parametrize("layer", range(4))
@pytest.mark.parametrize("by", [1.01, -1.0])
def test_wrong_weights_of_an_ill_conditioned_network_are_refused(weights, layer, by):
    x = pt.tensor("x", shape=(3, 8), dtype="float32")
    program = export_onnx([x], network(x, weights), verify=False)
    value = next(
        v
        for v in program.model.graph.initializers.values()
        if np.array_equal(v.const_value.numpy(), weights[layer])
    )
    wrong = weights[layer].copy()
    wrong[2] *= by
    value.const_value = ir.tensor(wrong, name=value.name)
    with pytest.raises(VerificationError, match=r"Compared with float64, ONNX Runtime is .* away"):
        program.verify()


@pytest.mark.slow
def test_wrong_operators_of_an_ill_conditioned_network_are_refused(weights):
    x = pt.tensor("x", shape=(3, 8), dtype="float32")
    with pytest.raises(VerificationError):
        export_onnx([x], network(x, weights[:3]) + Halve()(x))
    with pytest.raises(VerificationError):
        export_onnx([x], network(Halve()(x), weights))


@pytest.mark.slow
def test_few_wrong_elements_are_refused_beside_ill_conditioned_ones():
    """A quarter of the elements is chaotic, another quarter wrong."""
    x = pt.vector("x", dtype="float32")
    y = pt.concatenate([chaotic(x[:8], 30), x[8:]])
    z = pt.concatenate([chaotic(x[:8], 30), x[8:24], x[24:] + Halve()(x[24:])])
    given = [np.random.default_rng(1).random(32).astype("float32")]
    with pytest.warns(UserWarning, match="ill-conditioned"):
        export_onnx([x], y, example_inputs=given)
    with pytest.raises(VerificationError):
        export_onnx([x], z, example_inputs=given)


def test_verification_needs_no_compiler(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a compiler was called")

    monkeypatch.setattr("pytensor.link.c.cmodule.GCC_compiler.compile_str", refuse)
    x = pt.vector("x")
    shift = 0.1234567  # a graph that no cache of compiled modules knows
    op = OpFromGraph([x], [pt.exp(x) * shift + x])
    assert "equal to PyTensor" in str(export_onnx([x], op(x)).verification)


def masked_root(x):
    """A function whose gradient as written multiplies an unused NaN by zero."""
    return pt.switch(pt.ge(x[0], 3), pt.sqrt(x[1] - 3), x[2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_that_are_nan_only_as_written_are_compared_with_the_rewritten_graph(dtype):
    x = pt.vector("x", dtype=dtype)
    gradient = pt.grad(masked_root(x), x)
    gradient.name = "gradient"
    values = np.array([0, 1, 5], dtype=dtype)
    program = export_onnx([x], gradient, example_inputs=[values])
    np.testing.assert_array_equal(program(values), [0, 0, 1])
    assert (
        "agrees with the graph as written and, where that is not finite (gradient), with "
        "PyTensor's rewritten graph" in program.report()
    )


@pytest.mark.parametrize("where", [0, 1, 2])
def test_nan_of_the_graph_as_written_hides_no_wrong_number(where):
    x = pt.vector("x")
    gradient = pt.grad(masked_root(x), x)
    wrong = pt.set_subtensor(gradient[where], Halve()(gradient[where] + 1))
    with pytest.raises(VerificationError, match="differs from PyTensor"):
        export_onnx([x], wrong, example_inputs=[np.array([0.0, 1, 5])])


def test_nan_of_the_graph_as_written_is_right():
    x = pt.vector("x")
    program = export_onnx([x], pt.sqrt(x), example_inputs=[[-1.0, 4.0]])
    np.testing.assert_array_equal(program([-1.0, 4.0]), [np.nan, 2])
    assert "rewritten" not in str(program.verification)


def test_overflow_of_the_graph_as_written_is_compared_with_the_rewritten_graph():
    x = pt.vector("x")
    large = np.array([1.0, 1000.0])
    program = export_onnx([x], pt.log(pt.exp(x)), example_inputs=[large])
    np.testing.assert_array_equal(program(large), large)
    assert "PyTensor's rewritten graph" in str(program.verification)


def test_graphs_that_fail_only_as_written_are_compared_with_the_rewritten_graph(x):
    y = Assert("never")(x, pt.eq(x.shape[0], -1)).shape[0] * x
    for options in ({}, {"example_inputs": [np.ones(3)]}):
        program = export_onnx([x], y, **options)
        assert "rewritten graph, as the graph as written fails (never)" in str(program.verification)
    with pytest.raises(VerificationError, match="differs from PyTensor"):
        export_onnx([x], Halve()(y))


def frames(x, length):
    starts = 8 * pt.arange((x.shape[0] - length) // 8 + 1)
    return x[starts[:, None] + pt.arange(length)]


@pytest.mark.parametrize("reduce", [pt.sum, pt.mean])
@pytest.mark.parametrize("length", [16, 100])
def test_longer_inputs_are_sampled_where_shorter_ones_fail(x, reduce, length):
    spectra = pt.fft.rfft(frames(x, length))
    power = reduce((spectra**2).sum(axis=-1), axis=0)
    assert "equal to PyTensor on sampled inputs" in str(export_onnx([x], power).verification)


def test_programs_that_fail_on_all_samples_ask_for_example_inputs(x):
    y = (pt.fft.rfft(frames(x, 1000)) ** 2).sum()
    with pytest.raises(VerificationError, match=r"(?s)fails on sampled.*give example_inputs"):
        export_onnx([x], y)
    assert "equal" in str(export_onnx([x], y, example_inputs=[np.ones(1016)]).verification)


@pytest.mark.parametrize(
    "output", ["sigmoid", "gradient", pytest.param("density", marks=pytest.mark.slow)]
)
def test_operators_that_lose_their_tails_are_found(monkeypatch, output):
    """As files for other runtimes had ONNX Runtime's Sigmoid, which is zero below -37."""
    monkeypatch.setattr("pytensor_onnx.targets.profiles.COARSE", np.inf)
    x = pt.vector("x")
    density = (3 * pt.log(pt.softplus(x)) - pt.softplus(x)).sum()
    outputs = {"sigmoid": pt.sigmoid(x), "gradient": pt.grad(density, x)}
    if output in outputs:
        with pytest.raises(VerificationError, match=r"found 0\.0, .*\n.*\n.*values at -40"):
            export_onnx([x], outputs[output], target="portable")
        return
    pm, pymc = pytest.importorskip("pymc"), pytest.importorskip("pytensor_onnx.pymc")
    with pm.Model() as model:
        pm.Poisson("y", pt.softplus(pm.Normal("eta", 0, 100)), observed=[3])
    with pytest.raises(VerificationError, match=r"dlogp.*\n.*\n.*values extreme"):
        pymc.export_logp(model, target="portable")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: pt.log(1 - pt.sigmoid(x)),
        lambda x: pt.sqrt(x**2 + 1) - abs(x),
        lambda x: pt.log(pt.exp(x) + pt.exp(-x)),
        lambda x: (x + 1e-3) - x,
        lambda x: 1 - pt.tanh(x) ** 2,
    ],
)
def test_tails_where_formulas_round_or_overflow_are_no_differences(function):
    x = pt.vector("x")
    assert export_onnx([x], function(x)).verification.verdict == "equal"
