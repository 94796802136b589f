"""Functions of the catalogue, in two runtimes, against SciPy and PyTensor."""

import warnings

import jax
import numpy as np
import onnx
import onnxruntime
import pytest
import scipy.special
import scipy.stats as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from pytensor_onnx.catalogue.compile_entry import Compiled, compile_entry
from pytensor_onnx.catalogue.distribution_table import CONTINUOUS, DISCRETE, FURTHER, Distribution
from pytensor_onnx.catalogue.library import build_catalogue, entries, model_of
from pytensor_onnx.catalogue.vectors import examples, expected, run
from pytensor_onnx.errors import ArgumentError

TOLERANCE = {"float64": 1e-11, "float32": 2e-5}
NOT_IN_EVALUATOR = {"QR", "SVD", "CholeskyCovForward", "WishartLogProb", "LKJCorrLogProb"} | {
    entry.name for entry in entries(["matrices"]) if entry.name.startswith("Batch")
}
"""onnx's evaluator joins matrices that a Loop returns, in place of stacking them."""
FEW = (
    *("NormalLogProb", "GammaCdf", "GammaLogProbGrad", "PoissonLogSurvival"),
    *("BinomialLogProbGrad", "NormalRandom", "SimplexLogDet", "IntervalInverse", "Erfcx"),
    *("Cholesky", "MvNormalLogProb", "SplitPRNG", "CholeskyCorrInverse", "WeibullVariance"),
)
BY_NAME = {entry.name: entry for entry in entries()}


def compare(one: Compiled) -> None:
    """Compare a function with PyTensor in float64, in both runtimes and for other ranks."""
    entry, dtype = one.entry, one.dtype
    operands = examples(entry, dtype)
    model = model_of(one)
    onnx.checker.check_model(model, full_check=True)
    found = run(model, operands)
    results = expected(entry, operands) or found
    runs = [found]
    if entry.name not in NOT_IN_EVALUATOR:
        names = [x.name for x in model.graph.input]
        with np.errstate(all="ignore"):
            runs.append(
                ReferenceEvaluator(model).run(None, dict(zip(names, operands, strict=True)))
            )
    for arrays in runs:
        for array, result, argument in zip(arrays, results, entry.outputs, strict=True):
            assert array.dtype == argument.dtype_in(dtype)
            assert array.shape == np.shape(result)
            np.testing.assert_allclose(array, result, TOLERANCE[dtype], TOLERANCE[dtype])
    if entry.kind == "elementwise":
        numbers = [x.reshape(-1)[-1:].reshape(()) for x in operands]
        empty = [np.zeros((0, 1), x.dtype) for x in operands]
        for given, shape in ((numbers, ()), (empty, (0, 1))):
            arrays = run(model_of(one, [np.ndim(x) for x in given]), given)
            assert all(array.shape == shape for array in arrays)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", FEW)
def test_functions_have_the_results_of_pytensor(name: str, dtype: str) -> None:
    compare(compile_entry(BY_NAME[name], dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - FEW))
def test_all_functions_have_the_results_of_pytensor(name: str, dtype: str) -> None:
    compare(compile_entry(BY_NAME[name], dtype))


def in_scipy(distribution: Distribution, parameters: list[np.ndarray]) -> object:
    """Return the frozen distribution of SciPy that the catalogue names."""
    names = {p.name: x for p, x in zip(distribution.parameters, parameters, strict=True)}
    return eval(f"st.{distribution.scipy}", {"st": st, "exp": np.exp, **names})


KNOWN = [x for x in (*CONTINUOUS, *DISCRETE) if x.scipy]


@pytest.mark.parametrize(
    "distribution",
    [pytest.param(x, marks=pytest.mark.slow if x in FURTHER[2:] else ()) for x in KNOWN],
    ids=lambda x: x.name,
)
def test_parameterisations_are_those_of_scipy(distribution: Distribution) -> None:
    name = distribution.name
    value, *parameters = examples(BY_NAME[f"{name}LogProb"], "float64")
    frozen = in_scipy(distribution, parameters)
    density = frozen.logpmf if distribution.is_discrete else frozen.logpdf
    functions = {
        "LogProb": (density, value),
        "Cdf": (frozen.cdf, value),
        "LogCdf": (frozen.logcdf, value),
        "LogSurvival": (frozen.logsf, value),
        "Icdf": (frozen.ppf, None),
    }
    if name == "VonMises":
        # SciPy has angles of one turn around the location.
        below = frozen.cdf(-np.pi)
        functions["Cdf"] = lambda x: frozen.cdf(x) - below, value
        functions["LogCdf"] = lambda x: np.log(frozen.cdf(x) - below), value
        functions["LogSurvival"] = lambda x: np.log1p(below - frozen.cdf(x)), value
        del functions["Icdf"]
    for suffix, (function, at) in functions.items():
        if f"{name}{suffix}" in BY_NAME:
            entry = BY_NAME[f"{name}{suffix}"]
            points = examples(entry, "float64")[0] if at is None else at
            (found,) = expected(entry, [points, *parameters])
            np.testing.assert_allclose(found, function(points), 1e-8, 1e-10, err_msg=suffix)
    for suffix, exact in (("Mean", frozen.mean()), ("Variance", frozen.var())):
        if f"{name}{suffix}" in BY_NAME:
            (found,) = expected(BY_NAME[f"{name}{suffix}"], parameters)
            np.testing.assert_allclose(found, exact, 1e-6, err_msg=suffix)


@pytest.mark.parametrize(
    "distribution",
    [
        pytest.param(x, marks=() if x.name in ("Gamma", "Binomial") else pytest.mark.slow)
        for x in KNOWN
        if f"{x.name}Random" in BY_NAME
    ],
    ids=lambda x: x.name,
)
def test_draws_have_the_distribution(distribution: Distribution) -> None:
    entry = BY_NAME[f"{distribution.name}Random"]
    state, _, *parameters = examples(entry, "float64")
    model = model_of(compile_entry(entry, "float64"))
    n = 20_000
    drawn, after = run(model, [state, np.array([n, 3]), *parameters])
    assert np.array_equal(after, jax.random.key_data(jax.random.split(jax.random.key(42)))[0])
    again, _ = run(model, [after, np.array([n, 3]), *parameters])
    assert not np.array_equal(drawn, again)
    for i in range(3):
        frozen = in_scipy(distribution, [x[i] for x in parameters])
        if distribution.name == "VonMises":
            # SciPy has angles of one turn around the location.
            turn = parameters[0][i] - np.pi
            drawn[:, i] = (drawn[:, i] - turn) % (2 * np.pi) + turn
        if not distribution.is_discrete:
            assert st.kstest(drawn[:, i], frozen.cdf).pvalue > 1e-4
            continue
        values, counts = np.unique(drawn[:, i], return_counts=True)
        shares = frozen.pmf(values) * n
        large = shares > 5
        chi = ((counts - shares)[large] ** 2 / shares[large]).sum()
        assert st.chi2.sf(chi, max(large.sum() - 1, 1)) > 1e-4


def with_call(library: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that somebody writes without this package, with functions of a library."""
    domain = "pytensor.prob.float32"
    nodes = [
        helper.make_node("Exp", ["z"], ["sigma"]),
        helper.make_node("NormalLogProb", ["x", "mu", "sigma"], ["each"], domain=domain),
        helper.make_node("ReduceSum", ["each"], ["total"], keepdims=0),
    ]
    vectors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in ("x", "mu", "z")]
    total = helper.make_tensor_value_info("total", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "density", vectors, [total])
    model = helper.make_model(graph, opset_imports=library.opset_import, ir_version=10)
    model.functions.extend(library.functions)
    return model


def test_a_library_links_into_a_fresh_model() -> None:
    library = build_catalogue(["normal"], dtypes=["float32"])
    onnx.checker.check_model(library)
    model = with_call(library)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x, mu, z = (np.random.default_rng(i).normal(size=5).astype("float32") for i in range(3))
    (total,) = session.run(None, {"x": x, "mu": mu, "z": z})
    np.testing.assert_allclose(total, st.norm.logpdf(x, mu, np.exp(z)).sum(), rtol=1e-5)


def test_models_of_functions_compose() -> None:
    inverse, density = (
        model_of(compile_entry(BY_NAME[name], "float64"), [1])
        if name == "LogInverse"
        else model_of(compile_entry(BY_NAME[name], "float64"), [1, 1, 1])
        for name in ("LogInverse", "GammaLogProb")
    )
    model = onnx.compose.merge_models(
        onnx.compose.add_prefix(inverse, "a_", rename_functions=False),
        onnx.compose.add_prefix(density, "b_", rename_functions=False),
        io_map=[("a_value", "b_value")],
    )
    real, alpha, beta = np.array([0.5, -1.0]), np.array([2.0, 3.0]), np.array([1.0, 0.5])
    (found,) = run(model, [real, alpha, beta])
    exact = st.gamma.logpdf(np.exp(real), alpha, scale=1 / beta)
    np.testing.assert_allclose(found, exact, 1e-12)


def test_kernels_take_the_place_of_bodies() -> None:
    from pytensor_onnx import native

    if native.library() is None:
        pytest.skip("the kernels are not built")
    one = compile_entry(BY_NAME["GammaLn"], "float64")
    options = onnxruntime.SessionOptions()
    native.register(options, [f.name for f in one.called])
    session = onnxruntime.InferenceSession(model_of(one, [1]).SerializeToString(), options)
    x = np.linspace(0.1, 50.0, 1000)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], scipy.special.gammaln(x), 1e-12)


def test_documentation_has_the_errors_of_its_dtype() -> None:
    for name, dtype, unit in (
        ("NormalCdf", "float64", "e-15 of the result, against mpmath at 54 points"),
        ("Erfc", "float32", "ulp"),
        ("Cholesky", "float32", "e-08 of the largest element"),
    ):
        text = compile_entry(BY_NAME[name], dtype).function.doc_string
        assert unit in text.split("Largest error: ")[1]
    drawn = compile_entry(BY_NAME["NormalRandom"], "float32").function.doc_string
    assert "Largest error" not in drawn


def test_names_select_functions() -> None:
    names = {entry.name for entry in entries(["Interval", "psi"])}
    assert names == {"IntervalForward", "IntervalInverse", "IntervalLogDet", "Psi"}
    with pytest.raises(ArgumentError, match="did you mean gamma"):
        entries(["gama"])


def test_functions_of_both_dtypes_share_a_file() -> None:
    library = build_catalogue(["exponential"])
    domains = {f.domain for f in library.functions}
    assert domains > {"pytensor.prob.float32", "pytensor.prob.float64"}
    keys = [(f.domain, f.name) for f in library.functions]
    assert len(keys) == len(set(keys))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onnx.checker.check_model(library)


def assert_normal(model: onnx.ModelProto) -> None:
    """Run a model of the operands of NormalLogProb, and compare its density with SciPy's."""
    onnx.checker.check_model(model)
    x, mu, sigma = np.array([[0.5, -1.0, 2.0], [0.0, 1.0, -1.0], [1.0, 2.0, 0.5]], "float32")
    (found,) = run(model, [x, mu, sigma])
    np.testing.assert_allclose(found, st.norm.logpdf(x, mu, sigma), 1e-5)


def test_onnxscript_calls_functions_of_a_library() -> None:
    onnxscript = pytest.importorskip("onnxscript")
    from onnxscript import FLOAT

    library = build_catalogue(["NormalLogProb"], dtypes=["float32"])
    prob = onnxscript.values.Opset("pytensor.prob.float32", 1)

    def density(x: FLOAT["n"], mu: FLOAT["n"], sigma: FLOAT["n"]) -> FLOAT["n"]:  # noqa: F821
        return prob.NormalLogProb(x, mu, sigma)

    # It evaluates the annotations of the source with names of the module.
    density.__globals__.update(FLOAT=FLOAT)
    script = onnxscript.script(default_opset=onnxscript.opset21)(density)
    model = script.to_model_proto(opset_version=21)
    model.functions.extend(library.functions)
    known = {x.domain for x in model.opset_import}
    model.opset_import.extend(x for x in library.opset_import if x.domain not in known)
    assert_normal(model)


def test_spox_takes_models_of_functions() -> None:
    spox = pytest.importorskip("spox")
    model = model_of(compile_entry(BY_NAME["NormalLogProb"], "float32"), [1, 1, 1])
    flat = onnx.inliner.inline_local_functions(model)
    given = {
        name: spox.argument(spox.Tensor(np.float32, ("n",))) for name in ("value", "mu", "sigma")
    }
    (log_prob,) = spox.inline(flat)(**given).values()
    assert_normal(spox.build(given, {"log_prob": log_prob}))
