"""Files for runtimes of other makers."""

import base64
import json

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.special
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg import lstsq

from pytensor_onnx import UnsupportedOpError, export_onnx, load, nn
from pytensor_onnx.conversion import ConversionOptions, convert
from pytensor_onnx.encodings.generators import joined
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.ops.random.draws import Threefry
from pytensor_onnx.passes.legaliser.small_words import split_words
from pytensor_onnx.passes.matching import store_constants
from pytensor_onnx.random import large_words, small_words
from tests.conftest import compare_onnx_and_py, op_types


def portable(inputs, outputs, **options):
    return export_onnx(inputs, outputs, target="portable", **options)


def test_functions_are_written_out_and_constants_folded():
    x = pt.vector("x")
    program = compare_onnx_and_py([x], pt.erf(x), [np.linspace(-3, 3, 7)], target="portable")
    assert not program.proto.functions
    assert {o.domain for o in program.proto.opset_import} == {""}
    assert all(len(node.inputs) > 0 for node in program.model.graph)


def test_standard_is_another_name_of_the_target():
    x = pt.matrix("x")
    programs = [export_onnx([x], x.max(axis=0), target=t) for t in ("portable", "standard")]
    assert op_types(programs[0]) == op_types(programs[1]) == ["ReduceMax"]


def test_attention_has_no_arithmetic_on_sizes():
    q = pt.tensor("q", shape=(None, 5, 8), dtype="float32")
    attended = nn.attention(q, q, q, q_num_heads=2, kv_num_heads=2)
    program = portable([q], attended)
    assert not {"Where", "Sign", "Shape", "Max"} & set(op_types(program))


def test_checks_leave_no_nodes():
    x = pt.dvector("x")
    checked = pytensor.raise_op.Assert("x must be positive")(x, (x > 0).all())
    assert op_types(portable([x], checked, verify=False)) == ["Identity"]


def test_intermediate_sizes_have_no_names():
    x = pt.matrix("x")
    program = portable([x], pt.exp(pt.tanh(x)).sum(axis=0))
    within = [v for node in program.model.graph for v in node.outputs if not v.is_graph_output()]
    assert all(value.shape is None for value in within)
    assert all(value.dtype is not None for value in within)


@pytest.mark.parametrize("n_steps", [3, 1])
def test_loops_of_known_steps(n_steps):
    x = pt.vector("x")
    states = pytensor.scan(pt.cos, outputs_info=x, n_steps=n_steps, return_updates=False)
    compare_onnx_and_py([x], states, [np.array([0.5, 1.0])], target="portable")


def test_masks_are_positions():
    x = pt.matrix("x")
    value = np.array([[1.0, -2.0], [3.0, -4.0]])
    program = compare_onnx_and_py([x], [x[x > 0], x[x[:, 0] > 2]], [value], target="portable")
    assert "Compress" not in op_types(program)
    assert "NonZero" in op_types(program)


def test_the_state_is_a_plain_input_with_its_value_in_the_metadata(tmp_path):
    x, total = pt.scalar("x"), pytensor.shared(np.arange(3.0), name="total")
    path = tmp_path / "sum.onnx"
    program = portable([x], total.sum(), path=path, updates={total: total + x})
    assert not program.model.graph.inputs[1].is_initializer()
    assert list(program.model.graph.inputs[1].shape) == [3]
    metadata = {p.key: p.value for p in onnx.load(path).metadata_props}
    entry = json.loads(metadata["state_values"])["total"]
    value = np.frombuffer(base64.b64decode(entry["data"]), entry["dtype"]).reshape(entry["shape"])
    np.testing.assert_array_equal(value, [0, 1, 2])
    session = onnxruntime.InferenceSession(path)
    feed = {"x": np.array(2.0), "total": value}
    results = dict(zip(["sum", "total_next"], session.run(None, feed), strict=True))
    assert json.loads(metadata["state"]) == {"total": "total_next"}
    np.testing.assert_array_equal(results["total_next"], [2, 3, 4])
    loaded = load(path)
    assert (loaded(2.0), loaded(2.0)) == (3, 9)


def test_a_state_that_grows_keeps_its_free_size():
    x, seen = pt.scalar("x"), pytensor.shared(np.zeros(0), name="seen")
    program = portable([x], seen.sum(), updates={seen: pt.concatenate([seen, x[None]])})
    assert [program(value) for value in (1.0, 2.0, 3.0)] == [0, 1, 3]


def test_float32_has_no_float64_within():
    x, a = pt.vector("x"), pt.matrix("a", shape=(4, 4))
    values = pt.linalg.svd(a, compute_uv=False)
    factors = [values, *pt.linalg.eigh(a), pt.linalg.cholesky(a)]
    outputs = [x.sum(), x.mean(), pt.cumsum(x), *factors]
    program = portable([x, a], outputs, precision="float32", verify=False)
    found = [v for node in all_nodes(program.model.graph) for v in node.outputs]
    assert {v.dtype.numpy() for v in found if v.dtype.is_floating_point()} == {np.dtype("float32")}


def in_float32(inputs, outputs):
    return portable(inputs, outputs, precision="float32", verify=False)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 3), (2, 5), (1, 1), (2, 40, 40)])
@pytest.mark.parametrize("kind", ["random", "of rank one", "zero"])
def test_singular_vectors_in_float32_have_errors_of_float32(shape, kind):
    rng = np.random.default_rng(3)
    column = rng.normal(size=(*shape[:-1], 1))
    value = {"random": rng.normal(size=shape), "of rank one": column * np.ones(shape[-1])}
    a = value.get(kind, np.zeros(shape)).astype("float32")
    x = pt.tensor("x", shape=(None,) * len(shape), dtype="float32")
    u, s, vt = (y.astype("float64") for y in in_float32([x], list(pt.linalg.svd(x)))(a))
    size = np.linalg.norm(a, 2, axis=(-2, -1)).max() + 1e-30
    assert np.abs(s - np.linalg.svd(a.astype("float64"), compute_uv=False)).max() < 5e-7 * size
    k = s.shape[-1]
    assert np.abs((u[..., :k] * s[..., None, :]) @ vt[..., :k, :] - a).max() < 2e-6 * size
    for q in (u, vt):
        np.testing.assert_allclose(q @ np.swapaxes(q, -1, -2) - np.eye(q.shape[-1]), 0, atol=3e-6)


@pytest.mark.parametrize("n", [1, 3, 30])
def test_eigenvectors_in_float32_have_errors_of_float32(n):
    a = np.random.default_rng(4).normal(size=(n, n))
    a = (a + a.T).astype("float32")
    x = pt.matrix("x", dtype="float32")
    w, v = (y.astype("float64") for y in in_float32([x], list(pt.linalg.eigh(x)))(a))
    size = np.abs(w).max()
    assert np.abs(w - np.linalg.eigvalsh(a.astype("float64"))).max() < 1e-6 * size
    assert np.abs((v * w) @ v.T - a).max() < 3e-6 * size


@pytest.mark.slow
def test_elements_that_are_not_finite_make_factors_of_float32_nan():
    x = pt.matrix("x", dtype="float32")
    factors = [*pt.linalg.svd(x), *pt.linalg.eigh(x)]
    results = in_float32([x], factors)(np.array([[np.inf, 0], [0, 1]], "float32"))
    assert all(np.isnan(result).all() for result in results)


def test_tract_refuses_strided_slices_of_a_reshape(tmp_path):
    tract = pytest.importorskip("tract", reason="tract is in the dependency group 'runtimes'")
    x = pt.matrix("x", shape=(3, 3), dtype="float32")
    value = np.arange(9, dtype="float32").reshape(3, 3)
    strided = export_onnx([x], pt.diagonal(x), tmp_path / "strided.onnx", verify=False)
    assert op_types(strided) == ["Reshape", "Slice"]
    with pytest.raises(Exception, match="Invalid axis"):
        tract.onnx().load(str(tmp_path / "strided.onnx")).into_model().into_runnable().run([value])
    program = portable([x], pt.diagonal(x))
    assert op_types(program)[-1] == "Gather"
    np.testing.assert_array_equal(program(value), [0, 4, 8])


def test_infinities_are_found_by_absolute_values():
    x = pt.vector("x")
    value = np.array([np.inf, -np.inf, np.nan, -0.0, 1e308])
    outputs = [pt.isinf(x), pt.isinf(pt.abs(x))]
    program = compare_onnx_and_py([x], outputs, [value], target="portable")
    assert sorted(op_types(program)) == ["Abs", "Equal", "Equal"]


@pytest.mark.parametrize(
    ("function", "reference"),
    [(pt.gammaln, scipy.special.gammaln), (pt.digamma, scipy.special.psi)],
)
def test_gamma_functions_of_float32_are_computed_in_it(function, reference):
    x = pt.vector("x", dtype="float32")
    program = portable([x], function(x), precision="float32", verify=False)
    found = {v.dtype.name for node in program.model.graph for v in node.outputs}
    assert "DOUBLE" not in found
    assert not {"If", "Loop", "Scan", "ReduceLogSum", "GatherElements"} & set(op_types(program))
    ends = -np.linspace(0.03, 20.03, 500), np.linspace(0.01, 6, 500), np.geomspace(1e-10, 1e10, 200)
    value = np.concatenate(ends).astype("float32")
    wanted = reference(value.astype("float64"))
    np.testing.assert_allclose(program(value), wanted, rtol=5e-7, atol=5e-7)


def test_long_arrays_are_no_loops():
    x = pt.vector("x")
    nodes = op_types(portable([x], pt.gammaln(x), verify=False))
    assert not {"Scan", "Pad", "Size"} & set(nodes)


def test_short_loops_are_written_out():
    x = pt.vector("x", shape=(3,))
    rows = pytensor.scan(pt.cos, outputs_info=x, n_steps=4, return_updates=False)
    program = compare_onnx_and_py([x], [rows, rows[-1]], [np.arange(3.0)], target="portable")
    assert op_types(program).count("Cos") == 4
    assert "Loop" not in op_types(program)
    long = pytensor.scan(pt.cos, outputs_info=x, n_steps=1000, return_updates=False)
    assert "Loop" in op_types(portable([x], long[-1], verify=False))


def test_sizes_of_functions_are_found():
    signal = pt.vector("signal", shape=(20,), dtype="float32")
    taps = np.float32([0.5, -1.0, 0.25])
    smoothed = pt.signal.convolve1d(signal, pt.constant(taps), mode="same")
    value = np.linspace(-1, 1, 20, dtype="float32")
    program = compare_onnx_and_py([signal], smoothed, [value], target="portable")
    assert not {"Shape", "If", "Loop", "Sign", "ConstantOfShape"} & set(op_types(program))


def test_no_part_of_a_linear_system_is_empty():
    a, b = pt.matrix("a", shape=(3, 3)), pt.vector("b", shape=(3,))
    value = np.eye(3) * 2 + 1, np.arange(3.0)
    outputs = [pt.linalg.solve(a, b), pt.linalg.det(a)]
    program = compare_onnx_and_py([a, b], outputs, value, target="portable")
    constants = program.model.graph.initializers.values()
    assert all(np.prod(c.shape) for c in constants)


def test_steps_of_slices_are_places():
    x = pt.vector("x", shape=(9,))
    program = compare_onnx_and_py([x], [x[1::3], x[::-1]], [np.arange(9.0)], target="portable")
    assert sorted(op_types(program)) == ["Gather", "Slice"]


def test_the_incomplete_beta_function_of_float32_is_computed_in_it():
    a, b, x = (pt.vector(name, dtype="float32") for name in "abx")
    program = portable([a, b, x], pt.betainc(a, b, x), precision="float32", verify=False)
    assert not {"If", "Loop", "Scan"} & set(op_types(program))
    assert "DOUBLE" not in {v.dtype.name for node in program.model.graph for v in node.outputs}
    rng = np.random.default_rng(0)
    values = [10 ** rng.uniform(-2, 2, 5000), 10 ** rng.uniform(-2, 2, 5000), rng.random(5000)]
    ends = [[2, 0, 2, -1, 2, 3], [3, 3, 0, 2, 3, 2], [0, 0.5, 0.5, 0.5, 1, 2]]
    values = [np.float32([*v, *e]) for v, e in zip(values, ends, strict=True)]
    wanted = scipy.special.betainc(*(v.astype("float64") for v in values))
    np.testing.assert_allclose(program(*values), wanted, atol=6e-7)


def test_a_step_in_another_runtime_keeps_the_state():
    x, total = pt.scalar("x"), pytensor.shared(0.0, name="total")
    program = portable([x], [total, 2 * x], updates={total: total + x})
    session = onnxruntime.InferenceSession(program.proto.SerializeToString())
    names = [output.name for output in session.get_outputs()]

    def run(feed):
        return dict(zip(names, session.run(None, feed), strict=True))

    assert program.step(run, 3.0) == [0, 6]
    assert program.step(run, x=1.0) == [3, 2]
    assert program.state["total"] == 4


def drawn(target, draw, **options):
    rng = pt.random.shared_rng(seed=5, name="rng")
    following, x = draw(rng)
    return export_onnx([], x, target=target, updates={rng: following}, **options)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.uniform(size=5, dtype="float32"),
        lambda rng: rng.normal(size=(3, 2)),
        lambda rng: rng.integers(-3, 10, size=6),
        lambda rng: rng.gamma(2.0, scale=1.0, size=4),
    ],
)
def test_draws_by_small_words_have_equal_bits(draw):
    portable, default = drawn("portable", draw), drawn("onnxruntime", draw)
    for _ in range(2):
        np.testing.assert_array_equal(portable(), default())
    state = portable.state["rng"]
    assert state.dtype == "int32"
    np.testing.assert_array_equal(large_words(state), default.state["rng"])


def test_words_of_signed_integers_have_all_their_bits():
    rows, count = pt.imatrix("rows"), pt.lvector("count")
    fgraph = FunctionGraph([rows, count], [joined(rows) + count.astype("uint64")], clone=False)
    options = ConversionOptions(opset_version=21, output_names=["words"])
    converted = convert(fgraph, options)
    model = converted.model
    split_words(model.graph, converted.scope)
    store_constants(model.graph, converted.scope)
    assert "Div" in {node.op_type for node in model.graph}
    words = np.array([3, 2**63, 2**64 - 1, 0], "uint64")
    counts = np.array([0, 2**40 + 7, -1, -(2**63)])
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    [found] = session.run(None, {"rows": small_words(words), "count": counts})
    np.testing.assert_array_equal(found, words + counts.astype("uint64"))


@pytest.mark.slow
def test_state_of_small_words_is_loaded_and_goes_on(tmp_path):
    program = drawn("portable", lambda rng: rng.uniform(size=3), path=tmp_path / "draws.onnx")
    loaded = load(tmp_path / "draws.onnx")
    first, second = program(), program()
    np.testing.assert_array_equal([loaded(), loaded()], [first, second])


def test_draws_of_float32_have_no_integers_of_64_bits_but_sizes():
    program = drawn("portable", lambda rng: rng.normal(size=3), precision="float32", verify=False)
    dtypes = {v.dtype for node in program.model.graph for v in node.outputs}
    assert ir.DataType.UINT64 not in dtypes


def test_words_of_a_seed_are_small():
    seed, places = pt.lscalar("seed"), pt.lvector("places")
    counters = places.astype("uint64")
    words = Threefry()(seed.astype("uint64"), np.uint64(5), counters, np.uint64(0))
    outputs = [(word // np.uint64(2**40)).astype("int64") for word in words]
    programs = [export_onnx([seed, places], outputs, target=t) for t in ("portable", "onnxruntime")]
    found, wanted = (program(-3, [0, 1, 2**50]) for program in programs)
    np.testing.assert_array_equal(found, wanted)
    dtypes = {v.dtype for node in programs[0].model.graph for v in node.outputs}
    assert ir.DataType.UINT64 not in dtypes


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "int32", "int64", "float16", "float64"]
)
def test_words_are_cast_to_every_dtype(dtype):
    x = pt.lvector("x")
    words = (x.astype("uint64") ^ np.uint64(5)).astype(dtype)
    values = np.array([0, 5, 2, 300, 60_000, -1 if dtype != "float16" else 7])
    expected = (values.astype("uint64") ^ np.uint64(5)).astype(dtype)
    np.testing.assert_array_equal(portable([x], words, verify=False)(values), expected)


@pytest.mark.parametrize("shape", [(2, 1), (1, 1), (3,)], ids=str)
@pytest.mark.parametrize("size", [1, 3])
def test_words_are_moved_by_constants_of_other_shapes(size, shape):
    x = pt.lvector("x", shape=(size,))
    sixteen = np.full(shape, 16, "uint64")
    words = [op(x.astype("uint64") ^ np.uint64(5), sixteen) for op in (pt.int_div, pt.mul)]
    values = np.array([1000, -5, 2**40])[:size]
    given = values.astype("uint64") ^ np.uint64(5)
    expected = [given // sixteen, given * sixteen]
    results = portable([x], [y.astype("int64") for y in words], verify=False)(values)
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(found, wanted.astype("int64"))


@pytest.mark.few(1)
@pytest.mark.parametrize("shape", [(4, 4), (8, 3), (3, 8)], ids=str)
def test_least_squares_have_no_float64(shape):
    rng = np.random.default_rng(5)
    x, y = pt.tensor("x", shape=shape, dtype="float32"), pt.tensor("y", shape=(shape[0], 2))
    results = [pt.linalg.pinv(x), *lstsq(x, y, -1.0)]
    program = portable([x, y], results, precision="float32", verify=False)
    assert ir.DataType.DOUBLE not in {
        v.dtype for node in all_nodes(program.model.graph) for v in node.outputs
    }
    a, b = (rng.normal(size=n).astype("float32") for n in (shape, (shape[0], 2)))
    inverse, solution, residuals, rank, singular = program(a, b)
    wanted = np.linalg.lstsq(a.astype("float64"), b.astype("float64"), rcond=-1)
    exact, condition = np.linalg.pinv(a.astype("float64")), np.linalg.cond(a)
    size = np.linalg.norm(exact, 2)
    assert np.linalg.norm(inverse - exact, 2) < 5e-7 * condition * size
    error = np.linalg.norm(solution - wanted[0], 2)
    assert error < 5e-7 * condition * size * np.linalg.norm(b, 2)
    np.testing.assert_allclose(residuals, wanted[1], rtol=1e-5)
    np.testing.assert_allclose(singular, wanted[3], rtol=0, atol=5e-7 * singular[0])
    assert rank == wanted[2]
    # Rows that are multiples of one leave one singular value.
    multiples = np.outer(np.arange(1, 1 + shape[0]), a[0]).astype("float32")
    assert program(multiples, b)[3] == 1


def test_operations_that_keep_float64_are_listed():
    x = pt.tensor("x", shape=(3,), dtype="float32")
    kept, none = (
        [str(c) for c in portable([x], f(x), precision="float32", verify=False).changes]
        for f in (pt.gamma, pt.gammaln)
    )
    assert any(text.startswith("float64 kept within Gamma") for text in kept)
    assert not any("float64" in text for text in none)


@pytest.mark.slow
def test_refusals_name_the_operations_of_the_user_and_the_way_out():
    x = pt.matrix("x", shape=(None, 4))
    outputs = [pt.gammaln(x), pt.betainc(x, 2.0, 3.0)]
    with pytest.raises(UnsupportedOpError) as caught:
        export_onnx([x], outputs, target="openvino", verify=False)
    head, betainc, gammaln, way_out = str(caught.value).splitlines()
    assert head == "the target 'openvino' cannot run these operations:"
    assert betainc.startswith("- Betainc (")
    assert "outputs = [pt.gammaln(x), pt.betainc" in gammaln
    assert "and 6 more of float64, for which the runtime returns other numbers" in gammaln
    assert way_out == 'With precision="float32" the target runs all.'
    export_onnx([x], outputs, target="openvino", verify=False, precision="float32")


def test_float32_is_no_way_out_where_it_is_refused_too():
    x = pt.matrix("x", shape=(None, 4))
    with pytest.raises(UnsupportedOpError) as caught:
        export_onnx([x], pt.gammainc(2.0, x), target="openvino", verify=False)
    assert 'precision="float32"' not in str(caught.value)


TAILS = np.array([-700.0, -300, -87, -40, -37, -19, -1e-3, 1e-300, 19, 40, 700])


# tract has no Round in float64, which the exponential of softplus takes.
@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        ("portable", "float64"),
        ("portable", "float32"),
        ("tract", "float32"),
        ("openvino", "float32"),
    ],
)
def test_sigmoids_and_their_gradients_keep_their_tails(target, dtype):
    x = pt.vector("x", dtype=dtype)
    values = TAILS[np.abs(TAILS) < (80 if dtype == "float32" else 800)].astype(dtype)
    density = 3 * pt.log(pt.softplus(x)) - pt.softplus(x)
    outputs = [pt.sigmoid(x), pt.softplus(x), pt.grad(density.sum(), x)]
    sigmoid, softplus, gradient = export_onnx([x], outputs, target=target, verify=False)(values)
    exact = values.astype("float64")
    rtol = 1e-14 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(sigmoid, scipy.special.expit(exact), rtol=rtol)
    np.testing.assert_allclose(softplus, np.logaddexp(exact, 0), rtol=rtol)
    slope = scipy.special.expit(exact) * (3 / np.logaddexp(exact, 0) - 1)
    np.testing.assert_allclose(gradient, slope, rtol=10 * rtol)


def test_operators_that_lose_nothing_stay():
    x = pt.vector("x", dtype="float32")
    outputs = [pt.exp(x), pt.log(x), pt.tanh(x), pt.arctan(x), nn.sigmoid(x), nn.gelu(x), nn.elu(x)]
    found = op_types(portable([x], outputs, verify=False))
    assert sorted(found) == ["Atan", "Elu", "Exp", "Gelu", "Log", "Sigmoid", "Tanh"]


def test_a_file_for_openvino_says_how_to_compute_in_float32():
    x = pt.vector("x")
    program = export_onnx([x], pt.exp(x), target="openvino", verify=False)
    assert '"INFERENCE_PRECISION_HINT": "f32"' in program.changes[-1].text
    assert not any("INFERENCE" in change.text for change in portable([x], pt.exp(x)).changes)


@pytest.mark.parametrize("target", ["portable", "tract"])
@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int64"])
def test_sums_and_products_of_wide_integers_wrap_around(dtype, target):
    x = pt.vector("x", dtype=dtype)
    values = np.array([2**32 - 1, 2**32 - 3, 2**31, 7]).astype(dtype)
    program = export_onnx([x], [x.sum(), x.prod()], target=target)
    for some in (values, values[:1], values[:0]):
        for found, expected in zip(program(some), (some.sum(), some.prod()), strict=True):
            assert found == expected
            assert found.dtype == expected.dtype


@pytest.mark.parametrize("axis", [0, (0, 2), None])
@pytest.mark.parametrize("keepdims", [True, False])
def test_products_along_axes_are_exact(axis, keepdims):
    x = pt.tensor3("x", dtype="int64")
    values = np.random.default_rng(0).integers(-(2**30), 2**30, (3, 4, 2))
    program = export_onnx([x], x.prod(axis=axis, keepdims=keepdims), target="tract")
    np.testing.assert_array_equal(program(values), values.prod(axis=axis, keepdims=keepdims))
