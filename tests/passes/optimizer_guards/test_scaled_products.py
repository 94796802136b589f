"""Matrix products are right in any session, whatever stands before and after them."""

import numpy as np
import onnxruntime as ort
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.raise_op import Assert

from pytensor_onnx import export_onnx
from tests.conftest import called, compare_onnx_and_py, op_types
from tests.levels import assert_same_at_every_level

assert_op = Assert("none")


def given(function, *arguments):
    """Return a function's results, computed by a function of the model for variables."""
    if isinstance(arguments[0], np.ndarray):
        return function(*arguments)
    return called(function, *map(pt.as_tensor, arguments))


def product(a, b):
    return a @ b


def scaled(a, factor=0.1):
    return factor * a


def turned(a):
    return a.mT


GRAPHS = {
    "factor after": lambda a, b: 0.1 * (a @ b),
    "divisor after": lambda a, b: (a @ b) / 3.0,
    "factor on the left operand": lambda a, b: (0.1 * a) @ b,
    "factor on the right operand": lambda a, b: a @ (0.1 * b),
    "factors everywhere": lambda a, b: 0.1 * ((0.3 * a) @ (0.7 * b)),
    "factor on a transposed operand": lambda a, b: ((0.1 * a).mT @ b.mT).mT,
    "factor after a product in a function": lambda a, b: 0.1 * given(product, a, b),
    "factor before a product in a function": lambda a, b: given(product, a, 0.1 * b),
    "factor in a function after": lambda a, b: given(scaled, a @ b),
    "factor in a function before": lambda a, b: given(scaled, a) @ b,
    "factor and product in functions": lambda a, b: given(product, given(scaled, a), b),
    "factor and product in one function": lambda a, b: given(lambda x, y: 0.1 * (x @ y), a, b),
    "factor that a function is given": lambda a, b: given(scaled, a @ b, np.array(0.1)),
    "transposed in a function": lambda a, b: given(turned, 0.1 * given(turned, a)) @ b,
}


@pytest.mark.each_value
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_constant_factors_are_not_narrowed(name, size, rank, tmp_path):
    a, b = (pt.tensor(n, dtype="float64", shape=(size,) * rank) for n in "ab")
    program = export_onnx([a, b], GRAPHS[name](a, b), tmp_path / "model.onnx", verify=False)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, *(3,) * rank))
    session = ort.InferenceSession(str(tmp_path / "model.onnx"))
    expected = GRAPHS[name](x, y)
    for found in (session.run(None, {"a": x, "b": y})[0], program(x, y)):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


SIZED = {
    "attention": lambda a, b, c: pt.special.softmax(a @ b.mT / pt.sqrt(a.shape[-1]), -1) @ b,
    "divided by rows": lambda a, b, c: a @ b.mT / a.shape[-2],
    "mean of products": lambda a, b, c: (a @ b.mT / b.shape[-2]).sum(axis=-1),
    "times a root": lambda a, b, c: pt.sqrt(c.shape[0]) * (a @ b.mT),
    "operand divided": lambda a, b, c: (a / c.shape[0]) @ b.mT,
    "size as an argument": lambda a, b, c: given(
        lambda x, n: x / n, a @ b.mT, pt.cast(c.shape[0], "float64")
    ),
    "size in a function": lambda a, b, c: given(lambda x, y: x @ y.mT / pt.sqrt(x.shape[-1]), a, b),
    "after a known condition": lambda a, b, c: ifelse(c.shape[0] > 0, a @ b.mT, a @ a.mT) / 3.0,
    "factor of a known condition": lambda a, b, c: (
        (a @ b.mT) * ifelse(c.shape[0] > 0, pt.constant(0.1), pt.constant(0.3))
    ),
    "checked": lambda a, b, c: 0.1 * assert_op(a @ b.mT, c.shape[0] > 0),
    "transposed": lambda a, b, c: pt.exp((a @ b.mT).mT / c.shape[0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(None, None), (2, None, 4), (None, None, None)], ids=str)
def test_sizes_that_a_session_knows_are_not_narrowed(shape):
    a, b = (pt.tensor(n, dtype="float64", shape=shape) for n in "ab")
    c = pt.vector("c", dtype="float64")
    rng = np.random.default_rng(0)
    feeds = dict(zip("ab", rng.normal(size=(2, *(2, 3, 4)[-len(shape) :])), strict=True))
    feeds |= {"c": np.ones(7)}
    # Only a product that one node reads is fused.
    results = [make(abs(a) + i, b, c) for i, make in enumerate(SIZED.values())]
    program = compare_onnx_and_py([a, b, c], results, list(feeds.values()), rtol=1e-12)
    expected = program(*feeds.values())
    assert_same_at_every_level(program.proto, feeds, expected, rtol=1e-12)


def test_sizes_are_fused_with_products_in_float32():
    a, b = (pt.tensor(n, dtype="float32", shape=(2, 3, 4)) for n in "ab")
    c = pt.vector("c", dtype="float32")
    scaled = a @ b.mT / pt.sqrt(pt.cast(c.shape[0], "float32"))
    assert "Max" not in op_types(export_onnx([a, b, c], scaled, verify=False))


@pytest.mark.parametrize("factor", [2.0, -0.25, 1.0 / 3.0])
def test_only_constants_that_float32_rounds_are_kept_apart(factor):
    a, b = (pt.tensor(n, shape=(2, 3, 3)) for n in "ab")
    x, y = np.random.default_rng(1).normal(size=(2, 2, 3, 3))
    program = compare_onnx_and_py([a, b], [factor * (a @ b), (b @ a) / factor], [x, y])
    assert op_types(program).count("Max") == (2 if factor == 1.0 / 3.0 else 0)


def test_unscaled_products_are_one_operator():
    a, b = pt.matrices("a", "b")
    assert op_types(export_onnx([a, b], a @ b)) == ["MatMul"]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("factor", [np.inf, -np.inf, np.nan])
def test_factors_that_are_not_finite_are_no_attributes(factor, rank, dtype, tmp_path):
    a, b = (pt.tensor(n, dtype=dtype, shape=(None,) * rank) for n in "ab")
    number = pt.constant(np.array(factor, dtype))
    zero = pt.constant(np.array(0, dtype))
    results = [number * (a @ b), (number * a) @ b, a @ (b / zero)]
    values = [np.arange(-4, 4).reshape(2, 4)[(None,) * (rank - 2)].astype(dtype) for _ in "ab"]
    values[1] = values[1].mT
    for result in results:
        program = compare_onnx_and_py([a, b], result, values)
        program.save(tmp_path / "model.onnx")
        ort.InferenceSession(str(tmp_path / "model.onnx"))


PERMS = [(1, 0, 2), (1, 2, 0), (1, 2, 0, 3), (1, 2, 3, 0)]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("perm", "dtype"),
    [
        *((perm, dtype) for perm in PERMS for dtype in ("float32", "float64")),
        *((PERMS[1], dtype) for dtype in ("float16", "int64", "uint8")),
    ],
    ids=str,
)
def test_rows_before_the_batch_may_be_none(perm, dtype):
    x, y = (pt.tensor(name, dtype=dtype, shape=(None,) * len(perm)) for name in "xy")
    # Of the last two axes the other way round.
    last = len(perm) - 1
    before = [{last: last - 1, last - 1: last}.get(axis, axis) for axis in perm]
    for rows in (0, 3):
        value = np.ones((rows, 2, 4, 2)[: len(perm)], dtype)
        moved = value.transpose(perm).mT
        compare_onnx_and_py([x, y], [x.transpose(perm) @ y, y @ x.transpose(perm)], [value, moved])
        results = [
            called(product, x.transpose(perm), y),
            called(lambda a: a.transpose(perm), x) @ y,
            called(turned, x).transpose(before) @ y,
            called(pt.exp, called(turned, x)).transpose(before) @ y,
        ]
        compare_onnx_and_py([x, y], results, [value, moved])
