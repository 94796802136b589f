"""Products of matrices that are summed over a batch are one product of all rows."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_onnx import InputError, export_onnx
from tests.conftest import compare_onnx_and_py, op_types


def arrays(batch, k=3, n=4, dtype="float64"):
    """Return variables of unknown batch sizes, and values."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(*batch, size)).astype(dtype) for size in (k, n)]
    shapes = [(*[None] * len(batch), size) for size in (k, n)]
    variables = [
        pt.tensor(name, shape=shape, dtype=dtype) for name, shape in zip("xy", shapes, strict=True)
    ]
    return variables, values


def summed(x, y):
    return (x.mT @ y).sum(axis=tuple(range(x.type.ndim - 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(5, 6), (2, 5, 6), (0, 6), (5, 0), (1, 1), (300, 7)])
def test_a_sum_over_the_batch_is_one_product(batch, dtype):
    (x, y), values = arrays(batch, dtype=dtype)
    # Sums of positive and negative products lose digits.
    atol = {"float32": 3e-5, "float64": 1e-12}[dtype]
    program = compare_onnx_and_py([x, y], [summed(x, y)], values, atol=atol)
    assert op_types(program) == ["Flatten", "Flatten", "Gemm"]


def test_rows_without_elements_and_numbers_that_are_not_finite_stay_what_they_are():
    (x, y), (a, b) = arrays((2, 3), k=2, n=3)
    a[0, 1, 0], b[1, 2, 2] = np.nan, np.inf
    compare_onnx_and_py([x, y], [summed(x, y)], [a, b])
    z = pt.tensor("z", shape=(None, None, None))
    compare_onnx_and_py([x, z], [summed(x, z)], [a, b[..., :0]])


def test_the_gradient_of_weights_of_unknown_shape_is_one_product():
    x, w = pt.tensor("x", shape=(None, None, 8)), pt.matrix("w")
    rng = np.random.default_rng(1)
    values = [rng.normal(size=(4, 5, 8)), rng.normal(size=(8, 3))]
    gradient = pt.grad(pt.sqr(pt.tanh(x @ w)).sum(), w)
    program = compare_onnx_and_py([x, w], [gradient], values)
    assert op_types(program).count("Gemm") == 1
    assert "ReduceSum" not in op_types(program)


def test_arrays_that_are_repeated_along_the_batch_are_multiplied_one_by_one():
    x, y = pt.tensor("x", shape=(1, None, 3)), pt.tensor("y", shape=(None, None, 4))
    rng = np.random.default_rng(2)
    values = [rng.normal(size=(1, 5, 3)), rng.normal(size=(2, 5, 4))]
    program = compare_onnx_and_py([x, y], [summed(x, y)], values)
    assert "ReduceSum" in op_types(program)


def test_products_that_are_used_elsewhere_are_summed():
    (x, y), values = arrays((2, 5))
    products = x.mT @ y
    program = compare_onnx_and_py([x, y], [products, products.sum(axis=0)], values)
    assert op_types(program).count("MatMul") == 1
    assert "Gemm" not in op_types(program)


def test_batches_of_other_sizes_are_refused_if_they_have_as_many_rows():
    (x, y), (a, _) = arrays((2, 6))
    program = export_onnx([x, y], summed(x, y))
    with pytest.raises(InputError, match="is 2 in x and 3 in y"):
        program(a, np.zeros((3, 4, 4)))


def test_steps_of_loops_sum_as_well():
    _, (a, b) = arrays((2, 5))
    xs, ys = (
        pt.tensor("xs", shape=(None, None, None, 3)),
        pt.tensor("ys", shape=(None, None, None, 4)),
    )
    total = pytensor.scan(
        lambda x, y, total: total + summed(x, y),
        sequences=[xs, ys],
        outputs_info=[pt.zeros((3, 4))],
        return_updates=False,
    )
    compare_onnx_and_py([xs, ys], [total], [np.stack([a, 2 * a, a]), np.stack([b, b, -b])])
