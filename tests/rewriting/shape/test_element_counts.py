import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("axes", "operators"),
    [
        (None, {"Size"}),
        ((1, 2), {"Shape", "ReduceProd"}),
        ((0, 2), {"Shape", "Gather", "ReduceProd"}),
    ],
)
def test_the_divisor_of_a_mean_reads_the_shape_once(axes, operators, dtype):
    x = pt.tensor3("x", dtype=dtype)
    mean = abs(x).mean(axis=axes)
    value = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(dtype)
    program = compare_onnx_and_py([x], mean, [value])
    kinds = [node.op_type for node in program.model.graph]
    assert operators <= set(kinds)
    assert not {"Mul", "Squeeze"} & set(kinds)
    value[0, 1, 2] = np.nan
    compare_onnx_and_py([x], mean, [value])
    compare_onnx_and_py([x], mean, [value[:, :1, :1]])


def test_counts_beside_other_factors_keep_their_rank():
    x = pt.tensor3("x")
    scaled = x * x.shape[0].astype("float64") * x.shape[1].astype("float64")
    compare_onnx_and_py([x], scaled, [np.ones((2, 3, 1))])
    compare_onnx_and_py([x], scaled, [np.ones((2, 0, 1))])
    product = x.shape[0].astype("float64") * x.shape[2].astype("float64")
    compare_onnx_and_py([x], pt.expand_dims(product, (0, 1)), [np.ones((2, 3, 5))])


def test_sizes_of_two_dtypes_are_multiplied_as_they_are():
    x = pt.tensor3("x")
    product = x.shape[0].astype("float32") * x.shape[1].astype("float64")
    compare_onnx_and_py([x], product, [np.ones((2, 3, 1))])
