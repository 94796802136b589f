import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import export_onnx
from pytensor_onnx.nn.norm import (
    batch_norm,
    batch_norm_train,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from tests.conftest import assert_same, compare_onnx_and_py, op_types

RNG = np.random.default_rng(0)
EPSILON = 1e-3  # not a float32
PARAMETERS = {name: RNG.uniform(0.5, 1.5, 4) for name in ("gamma", "beta", "mean", "var")}
LAST = {name: RNG.uniform(0.5, 1.5, (5, 6)) for name in ("gamma", "beta")}


def column(vector):
    return vector.reshape(-1, 1, 1)


def standardised(x, axes):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + EPSILON)


def norms(x):
    """Return all norms of an array (N, 4, 5, 6) and their values by definition, in float64."""
    p = {name: value.astype(x.dtype) for name, value in PARAMETERS.items()}
    last = {name: value.astype(x.dtype) for name, value in LAST.items()}
    gamma, beta = p["gamma"], p["beta"]
    row = {name: value[0] for name, value in last.items()}
    return {
        "batch": (
            batch_norm(x, **p, epsilon=EPSILON),
            lambda v: (
                (v - column(PARAMETERS["mean"]))
                / np.sqrt(column(PARAMETERS["var"]) + EPSILON)
                * column(PARAMETERS["gamma"])
                + column(PARAMETERS["beta"])
            ),
        ),
        "layer": (
            layer_norm(x, **row, epsilon=EPSILON),
            lambda v: standardised(v, -1) * LAST["gamma"][0] + LAST["beta"][0],
        ),
        "layer, two axes, no shift": (
            layer_norm(x, last["gamma"], axis=2, epsilon=EPSILON),
            lambda v: standardised(v, (2, 3)) * LAST["gamma"],
        ),
        "layer, no parameters": (
            layer_norm(x, epsilon=EPSILON),
            lambda v: standardised(v, -1),
        ),
        "rms": (
            rms_norm(x, row["gamma"], epsilon=EPSILON),
            lambda v: v / np.sqrt((v**2).mean(-1, keepdims=True) + EPSILON) * LAST["gamma"][0],
        ),
        "instance": (
            instance_norm(x, gamma, beta, epsilon=EPSILON),
            lambda v: (
                standardised(v, (2, 3)) * column(PARAMETERS["gamma"]) + column(PARAMETERS["beta"])
            ),
        ),
        "group": (
            group_norm(x, 2, gamma, beta, epsilon=EPSILON),
            lambda v: (
                standardised(v.reshape(len(v), 2, -1), -1).reshape(v.shape)
                * column(PARAMETERS["gamma"])
                + column(PARAMETERS["beta"])
            ),
        ),
    }


def symbol(dtype):
    return pt.tensor("x", shape=(None, 4, None, 6), dtype=dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("spread", [1.0, 1e-2])
def test_norms_are_as_defined(dtype, spread):
    value = (2 * spread + spread * RNG.standard_normal((2, 4, 5, 6))).astype(dtype)
    x = symbol(dtype)
    graphs, definitions = zip(*norms(x).values(), strict=True)
    atol = {"float16": 5e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    program = compare_onnx_and_py([x], graphs, [value], atol=atol)
    if dtype == "float16":
        return
    for found, definition in zip(program(value), definitions, strict=True):
        assert_same(found, definition(value.astype("float64")).astype(dtype), atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_numbers_far_from_zero_lose_no_more_than_rounding(dtype):
    value = (1000 + RNG.standard_normal((2, 4, 5, 6))).astype(dtype)
    x = symbol(dtype)
    graphs, definitions = zip(*norms(x).values(), strict=True)
    found = pytensor.function([x], graphs, mode="ONNX")(value)
    for y, definition in zip(found, definitions, strict=True):
        atol = 3e-3 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(y, definition(value.astype("float64")), rtol=0, atol=atol)


def operators(graph, **options):
    x = graph.owner.inputs[0]
    return op_types(export_onnx([x], graph, verify=False, **options))


def test_a_norm_is_one_operator_in_float32():
    graphs = {name: graph for name, (graph, _) in norms(symbol("float32")).items()}
    assert operators(graphs["batch"]) == ["BatchNormalization"]
    assert operators(graphs["layer"]) == ["LayerNormalization"]
    assert operators(graphs["layer, two axes, no shift"]) == ["LayerNormalization"]
    assert operators(graphs["layer, no parameters"]) == ["LayerNormalization"]
    instance = ["Shape", "Max", "Reshape", "InstanceNormalization", "Reshape"]
    assert operators(graphs["instance"]) == instance
    assert operators(graphs["group"], target="standard") == ["GroupNormalization"]
    assert operators(graphs["rms"], opset_version=23) == ["RMSNormalization"]
    composite = ["Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul"]
    assert operators(graphs["rms"]) == composite
    known = group_norm(pt.tensor("x", shape=(None, 4, 5, 6), dtype="float32"), 2, *np.ones((2, 4)))
    grouped = ["Reshape", "InstanceNormalization", "Reshape", "Mul", "Add"]
    assert operators(known) == grouped
    x = pt.tensor("x", shape=(None, 4, None, None), dtype="float32")
    sizes = ["Shape", "Shape", "Shape", "Concat"]
    checked = [*sizes, grouped[0], *instance, *grouped[2:]]
    assert sorted(operators(group_norm(x, 2, *np.ones((2, 4))))) == sorted(checked)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_axes_and_defaults_are_as_defined(dtype):
    value = RNG.standard_normal((2, 4, 5, 6)).astype(dtype)
    x, row = symbol(dtype), pt.matrix("row", shape=(None, 4), dtype=dtype)
    weight = RNG.uniform(0.5, 1.5, (4, 5, 6)).astype(dtype)
    p = {name: vector.astype(dtype) for name, vector in PARAMETERS.items()}
    graphs = [
        layer_norm(x, weight, weight + 1, axis=1, epsilon=EPSILON),
        layer_norm(x, axis=-2, epsilon=EPSILON),
        rms_norm(x, axis=2, epsilon=EPSILON),
        rms_norm(x, weight, axis=-3, epsilon=EPSILON),
        batch_norm(row, **p, epsilon=EPSILON),
        group_norm(row, 2, p["gamma"], p["beta"], epsilon=EPSILON),
        layer_norm(x),
        rms_norm(x),
    ]
    v, rows = value.astype("float64"), value[:, :, 0, 0].astype("float64")
    names = ("mean", "var", "gamma", "beta")
    mean, var, gamma, beta = (PARAMETERS[name] for name in names)
    grouped = standardised(rows.reshape(2, 2, 2), -1).reshape(2, 4)
    last = (v**2).mean(-1, keepdims=True)
    spread = v.var(-1, keepdims=True) + 1e-5
    expected = [
        standardised(v, (1, 2, 3)) * weight + weight + 1,
        standardised(v, (2, 3)),
        v / np.sqrt((v**2).mean((2, 3), keepdims=True) + EPSILON),
        v / np.sqrt((v**2).mean((1, 2, 3), keepdims=True) + EPSILON) * weight,
        (rows - mean) / np.sqrt(var + EPSILON) * gamma + beta,
        grouped * gamma + beta,
        (v - v.mean(-1, keepdims=True)) / np.sqrt(spread),
        v / np.sqrt(last + 1e-5),
    ]
    atol = 2e-6 if dtype == "float32" else 1e-13
    values = [value, value[:, :, 0, 0]]
    program = compare_onnx_and_py([x, row], graphs, values, atol=atol)
    for found, right in zip(program(*values), expected, strict=True):
        assert_same(found, right.astype(dtype), atol=atol)


def test_batch_norm_in_float64_is_one_operator_with_an_exact_epsilon():
    graph, _ = norms(symbol("float64"))["batch"]
    assert operators(graph) == ["BatchNormalization"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_agree_with_those_of_plain_expressions(dtype):
    x, w = symbol(dtype), pt.tensor4("w", dtype=dtype)
    gamma, beta, mean, var = (pt.vector(name, dtype=dtype) for name in "gbmv")
    scale, shift = pt.vector("s", dtype=dtype), pt.vector("t", dtype=dtype)
    eps = np.asarray(EPSILON, dtype)

    def plain(axes):
        centred = x - x.mean(axis=axes, keepdims=True)
        return centred / pt.sqrt(pt.sqr(centred).mean(axis=axes, keepdims=True) + eps)

    def across(v):
        return v.dimshuffle("x", 0, "x", "x")

    def affine(y):
        return y * across(gamma) + across(beta)

    grouped = x.reshape((x.shape[0], 2, 2, -1))
    centred = grouped - grouped.mean(axis=(2, 3), keepdims=True)
    deviation = pt.sqrt(pt.sqr(centred).mean(axis=(2, 3), keepdims=True) + eps)
    cases = [
        (
            batch_norm(x, gamma, beta, mean, var, EPSILON),
            affine((x - across(mean)) / pt.sqrt(across(var) + eps)),
            [x, gamma, beta, mean, var],
        ),
        (
            batch_norm_train(x, gamma, beta, mean, var, epsilon=EPSILON)[0],
            affine(plain((0, 2, 3))),
            [x, gamma, beta],
        ),
        (
            layer_norm(x, scale, shift, epsilon=EPSILON),
            plain(-1) * scale + shift,
            [x, scale, shift],
        ),
        (
            rms_norm(x, scale, epsilon=EPSILON),
            x / pt.sqrt(pt.sqr(x).mean(axis=-1, keepdims=True) + eps) * scale,
            [x, scale],
        ),
        (instance_norm(x, gamma, beta, EPSILON), affine(plain((2, 3))), [x, gamma, beta]),
        (
            group_norm(x, 2, gamma, beta, EPSILON),
            affine((centred / deviation).reshape(x.shape)),
            [x, gamma, beta],
        ),
    ]
    found, expected = [], []
    for ours, definition, wrt in cases:
        found += pytensor.grad((ours * w).sum(), wrt)
        expected += pytensor.grad((definition * w).sum(), wrt)
    inputs = [x, w, gamma, beta, mean, var, scale, shift]
    sizes = [(2, 4, 5, 6)] * 2 + [4] * 4 + [6] * 2
    values = [RNG.uniform(0.5, 2.0, size).astype(dtype) for size in sizes]
    ours = pytensor.function(inputs, found, mode="ONNX")(*values)
    theirs = pytensor.function(inputs, expected, mode="ONNX")(*values)
    rtol, atol = (1e-4, 1e-4) if dtype == "float32" else (1e-10, 1e-11)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("shape", [(None, 4), (None, 4, None, 6)])
def test_batch_norm_in_training_uses_and_updates_the_statistics(shape):
    x = pt.tensor("x", shape=shape)
    value = RNG.standard_normal([size or 3 for size in shape])
    results = batch_norm_train(
        x, PARAMETERS["gamma"], PARAMETERS["beta"], np.zeros(4), np.ones(4), 0.3, EPSILON
    )
    y, mean, var = compare_onnx_and_py([x], results, [value], atol=1e-14)(value)
    axes = (0, *range(2, value.ndim))
    np.testing.assert_allclose(mean, 0.3 * value.mean(axes), rtol=1e-12)
    np.testing.assert_allclose(var, 0.7 + 0.3 * value.var(axes), rtol=1e-12)
    sizes = (-1, *[1] * (value.ndim - 2))
    scale, shift = (PARAMETERS[name].reshape(sizes) for name in ("gamma", "beta"))
    np.testing.assert_allclose(y, standardised(value, axes) * scale + shift, rtol=1e-11, atol=1e-13)


def test_norms_of_an_empty_batch_are_empty():
    x = symbol("float32")
    graphs = [graph for graph, _ in norms(x).values()]
    compare_onnx_and_py([x], graphs, [np.ones((0, 4, 5, 6), "float32")])


@pytest.mark.slow
def test_nan_and_infinities_spread_over_the_normalised_axes():
    value = RNG.standard_normal((3, 4, 5, 6)).astype("float32")
    value[0, 0, 0, 0], value[1, 1, 1, 1], value[2, 2, 2, 2] = np.nan, np.inf, -np.inf
    x = symbol("float32")
    compare_onnx_and_py([x], [graph for graph, _ in norms(x).values()], [value], atol=2e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: batch_norm(x, *np.ones((4, 3))), "gamma has 3 numbers, but there are 4"),
        (lambda x: batch_norm(x, 1.0, *np.ones((3, 4))), "gamma must be a vector"),
        (lambda x: batch_norm(x[0, 0, 0], *np.ones((4, 4))), "takes an array .N, C"),
        (lambda x: layer_norm(x, np.ones(5)), "gamma has the shape"),
        (lambda x: layer_norm(x, axis=4), "along axis 4 of an array of 4 dimensions"),
        (lambda x: group_norm(x, 3, *np.ones((2, 4))), "4 channels cannot be divided into 3"),
        (lambda x: instance_norm(x[:, :, 0, 0], *np.ones((2, 4))), "got 2 dimensions"),
    ],
)
def test_arguments_that_do_not_fit_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make(symbol("float32"))


def in_onnx(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="ONNX")


def trained(x, gamma, beta):
    """Batch norm in training, and the same as a plain expression."""
    axes = (0, *range(2, x.type.ndim))
    across = ["x", 0, *["x"] * (x.type.ndim - 2)]
    centred = x - x.mean(axis=axes, keepdims=True)
    root = pt.sqrt(pt.sqr(centred).mean(axis=axes, keepdims=True) + np.asarray(EPSILON, x.dtype))
    plain = centred / root * gamma.dimshuffle(across) + beta.dimshuffle(across)
    start = np.zeros(4, x.dtype), np.ones(4, x.dtype)
    return batch_norm_train(x, gamma, beta, *start, 0.3, EPSILON), plain


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 4, 5, 6), (None, 4, None, None), (7, 4)])
def test_gradients_of_batch_norm_in_training_are_normalisations(shape):
    x = pt.tensor("x", shape=shape, dtype="float32")
    w = x.type("w")
    gamma, beta = (pt.tensor(name, shape=(4,), dtype="float32") for name in "gb")
    (y, mean, var), plain = trained(x, gamma, beta)
    gradients = [pt.grad((z * w).sum(), [x, gamma, beta]) for z in (y, plain)]
    sizes = [size or 3 for size in shape]
    value, weights = (RNG.normal(size=sizes).astype("float32") for _ in range(2))
    values = [value * 2 + 5, weights, np.array([1, -2, 0, 3], "float32"), np.ones(4, "float32")]
    program = compare_onnx_and_py(
        [x, w, gamma, beta], [y, mean, var, *gradients[0]], values, rtol=1e-4, atol=1e-5
    )
    kinds = op_types(program)
    assert kinds.count("BatchNormalization") == 4
    assert not {"Sqrt", "Div"} & set(kinds) or None in shape
    expected = in_onnx([x, w, gamma, beta], gradients[1])(*values)
    for result, same in zip(program(*values)[3:], expected, strict=True):
        np.testing.assert_allclose(result, same, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_losses_of_the_statistics_and_second_derivatives_are_those_of_the_formula():
    x, (gamma, beta) = pt.tensor("x", shape=(5, 4)), (pt.vector(name) for name in "gb")
    (y, mean, var), plain = trained(x, gamma, beta)
    deviations = pt.sqr(x - x.mean(axis=0)).mean(axis=0)
    losses = [
        (y**3).sum() + (mean**2).sum() + (var**3).sum(),
        (plain**3).sum()
        + ((0.3 * x.mean(axis=0)) ** 2).sum()
        + ((0.7 + 0.3 * deviations) ** 3).sum(),
    ]
    results = []
    for loss in losses:
        gradient = pt.grad(loss, x)
        results += [gradient, pt.grad((gradient * pt.arange(20.0).reshape((5, 4))).sum(), x)]
    values = [RNG.normal(size=(5, 4)), np.array([1.0, -2, 0.5, 3]), np.ones(4)]
    first, second, *expected = in_onnx([x, gamma, beta], results)(*values)
    np.testing.assert_allclose([first, second], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e30, 0.0])
def test_gradients_of_batch_norm_in_training_spread_nan_over_a_channel(number):
    x, (gamma, beta) = (
        pt.tensor("x", shape=(3, 4), dtype="float32"),
        (pt.vector(name, dtype="float32") for name in "gb"),
    )
    (y, _, _), _ = trained(x, gamma, beta)
    value = RNG.normal(size=(3, 4)).astype("float32")
    value[1, 2] = number
    gradients = pt.grad((y**2).sum(), [x, gamma, beta])
    ones = np.ones(4, "float32")
    program = compare_onnx_and_py(
        [x, gamma, beta], gradients, [value, ones, ones], rtol=1e-3, atol=1e-4
    )
    result = program(value, ones, ones)[0]
    assert np.isfinite(np.delete(result, 2, axis=1)).all()


@pytest.mark.parametrize("rows", [0, 1])
def test_gradients_of_batch_norm_in_training_of_no_and_one_element(rows):
    x = pt.matrix("x", dtype="float32")
    gamma, beta = (pt.vector(name, dtype="float32") for name in "gb")
    (y, _, _), _ = trained(x, gamma, beta)
    gradients = pt.grad((y**2).sum(), [x, gamma, beta])
    ones = np.ones(4, "float32")
    compare_onnx_and_py([x, gamma, beta], gradients, [np.ones((rows, 4), "float32"), ones, ones])
