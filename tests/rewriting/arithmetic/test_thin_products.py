"""Elementwise products with a column become products of matrices, with a bias or a sum."""

import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py, op_types

RNG = np.random.default_rng(0)
SPECIAL = [[np.nan], [np.inf], [0], [-0.0], [2], [1e30]]


def draw(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_column_times_a_row_plus_a_bias_is_one_product(dtype):
    x, w = pt.tensor("x", dtype=dtype, shape=(None, 1)), pt.tensor("w", dtype=dtype, shape=(1, 8))
    bias = pt.tensor("bias", dtype=dtype, shape=(8,))
    values = [np.array(SPECIAL, dtype), draw((1, 8), dtype), draw((8,), dtype)]
    program = compare_onnx_and_py([x, w, bias], bias + w * x, values)
    assert op_types(program) == ["Gemm"]
    compare_onnx_and_py([x, w, bias], bias + w * x, [values[0][:0], *values[1:]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sum_of_rows_times_a_column_is_one_product(dtype):
    n = 6 if dtype == "float32" else None
    x, d = (pt.tensor(name, dtype=dtype, shape=(n, k)) for name, k in (("x", 1), ("d", 8)))
    y = (x * d).sum(axis=0)
    values = [draw((6, 1), dtype), draw((6, 8), dtype)]
    values[1][:, 0], values[1][:, 1] = np.array(SPECIAL)[:, 0], np.inf
    program = compare_onnx_and_py([x, d], [y, (y**2)[None, :]], values)
    assert sorted(op_types(program)) == ["Gemm", "Mul", "Squeeze"]
    if n is None:
        compare_onnx_and_py([x, d], y, [value[:0] for value in values])


def test_a_sum_of_float32_products_in_float64_stays_one():
    x, d = (pt.tensor(name, dtype="float32", shape=(6, k)) for name, k in (("x", 1), ("d", 8)))
    values = [draw((6, 1), "float32"), draw((6, 8), "float32")]
    program = compare_onnx_and_py([x, d], (x * d).sum(axis=0, dtype="float64"), values)
    assert "Gemm" not in op_types(program)


def test_factors_of_a_sum_that_are_used_elsewhere_are_computed_once():
    x, d, e = (pt.matrix(n, shape=(None, k)) for n, k in (("x", 1), ("d", 8), ("e", 8)))
    values = [draw(shape, "float64") for shape in ((5, 1), (5, 8), (5, 8))]
    outputs = [(d * e).sum(axis=0), (x * d * e).sum(axis=0)]
    program = compare_onnx_and_py([x, d, e], outputs, values)
    assert op_types(program).count("Mul") == 1


def test_the_first_layer_of_a_network_of_one_input_is_one_product_forwards_and_backwards():
    rewrite_pregrad = pytest.importorskip("pytensor_ml.pytensorf").rewrite_pregrad
    x = pt.matrix("x", shape=(5, 1))
    w = pt.tensor("w", shape=(1, 8))
    b = pt.vector("b", shape=(8,))
    loss = rewrite_pregrad(pt.tanh(x @ w + b).mean())
    values = [draw((5, 1), "float64"), draw((1, 8), "float64"), draw((8,), "float64")]
    program = compare_onnx_and_py([x, w, b], pt.grad(loss, [w, b]), values)
    assert op_types(program).count("Gemm") == 2


@pytest.mark.parametrize(
    ("dtype", "width", "of"),
    [
        pytest.param("int64", 4, lambda x, w, b: x * w + b, id="integers"),
        pytest.param("float64", None, lambda x, w, b: x * w + b, id="row of unknown size"),
        pytest.param("float64", 300, lambda x, w, b: x * w + b, id="long row"),
        pytest.param("float64", 4, lambda x, w, b: x * w + b * x, id="no bias"),
        pytest.param("float64", 4, lambda x, w, b: (x * w).sum(axis=1), id="sum of columns"),
        pytest.param("float64", 4, lambda x, w, b: (x * w).sum(axis=0), id="sum of a column"),
        pytest.param(
            "float32", 4, lambda x, w, b: (x * pt.exp(x * w)).sum(axis=0), id="long float32 sum"
        ),
        pytest.param("float16", 4, lambda x, w, b: x * w + b, id="half precision"),
    ],
)
def test_other_products_stay_elementwise(dtype, width, of):
    x, w = (
        pt.tensor("x", dtype=dtype, shape=(None, 1)),
        pt.tensor("w", dtype=dtype, shape=(1, width)),
    )
    b = pt.tensor("b", dtype=dtype, shape=(width,))
    n = width or 4
    values = [np.arange(1, 6).reshape(5, 1), np.arange(n).reshape(1, n), np.arange(n)]
    program = compare_onnx_and_py([x, w, b], of(x, w, b), [v.astype(dtype) for v in values])
    assert not {"Gemm", "MatMul"} & set(op_types(program))
