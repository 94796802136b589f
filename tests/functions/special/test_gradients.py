"""Gradients of special functions, and the functions inside of other graphs."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import called, compare_onnx_and_py

CENTERED = np.array([-0.9, -0.3, 0.2, 0.7])
FUNCTIONS = {
    "erfcx": (pt.erfcx, 3 * CENTERED),
    "erfinv": (pt.erfinv, CENTERED),
    "erfcinv": (pt.erfcinv, 1 + CENTERED),
    "ndtri_exp": (pt.ndtri_exp, -np.exp(3 * CENTERED)),
    "i0": (pt.i0, 9 * CENTERED),
    "j0": (pt.j0, 9 * CENTERED),
    "j1": (pt.j1, 9 * CENTERED),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    function, points = FUNCTIONS[name]
    x = pt.vector("x")
    results = [function(x)]
    for _ in range(2):
        results.append(pt.grad(results[-1].sum(), x))
    compare_onnx_and_py([x], results, [points], rtol=1e-11)


@pytest.mark.slow
def test_gradients_of_owens_t():
    h, a = pt.vectors("h", "a")
    total = pt.owens_t(h, a).sum()
    first = pt.grad(total, [h, a])
    second = pt.grad(sum(g.sum() for g in first), [h, a])
    compare_onnx_and_py([h, a], [total, *first, *second], [3 * CENTERED, CENTERED[::-1]])


@pytest.mark.slow
def test_owens_t_broadcasts_and_casts():
    h, a = pt.col("h", dtype="float32"), pt.row("a", dtype="int8")
    compare_onnx_and_py(
        [h, a], pt.owens_t(h, a), [np.ones((2, 1), "f4"), np.array([[0, 1, 2]], "i1")]
    )


@pytest.mark.slow
def test_shapes_and_integers():
    shapes, dtypes = [(), (2, 0, 3)], ["int8", "int64"]
    values = [np.full(shape, 0.25) for shape in shapes]
    values += [np.array([0, 1], dtype) for dtype in dtypes]
    inputs = [pt.tensor(dtype=v.dtype.name, shape=(None,) * v.ndim) for v in values]
    outputs = [function(x) for function in (pt.erfcx, pt.ndtri_exp, pt.j0) for x in inputs]
    with np.errstate(invalid="ignore"):
        compare_onnx_and_py(inputs, outputs, values, rtol=1e-3)


@pytest.mark.slow
def test_functions_run_within_functions_and_loops():
    x = pt.vector("x")
    for function, points in FUNCTIONS.values():
        steps = pytensor.scan(
            lambda total, x, function=function: total + function(x),
            outputs_info=[pt.zeros_like(x)],
            non_sequences=[x],
            n_steps=3,
            return_updates=False,
        )
        compare_onnx_and_py([x], [called(function, x), steps], [points])
