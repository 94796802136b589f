import numpy as np
import pytensor.tensor as pt
import pytest

from pytensor_onnx import nn
from tests.conftest import compare_onnx_and_py

NOT_FINITE = np.array([[[1, 2, 3], [np.inf, 4, 5]], [[np.nan, 6, 7], [-np.inf, 8, 9]]])


@pytest.mark.few(6)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(None, None, None), (None, 2, 3)])
@pytest.mark.parametrize("antialias", [False, True])
def test_linear_resizing_along_one_axis_keeps_nan_in_its_channel(dtype, shape, antialias):
    x = pt.tensor("x", dtype=dtype, shape=shape)
    outputs = [
        nn.resize(x, scales=2, mode="linear", antialias=antialias),
        nn.resize(x, sizes=6, mode="linear", antialias=antialias),
    ]
    compare_onnx_and_py([x], outputs, [NOT_FINITE.astype(dtype)])
    compare_onnx_and_py([x], outputs, [NOT_FINITE[:0].astype(dtype)])


def test_linear_resizing_is_one_operator_where_all_is_known_to_be_finite():
    x = pt.tensor3("x", dtype="float32")
    y = nn.upsample(x, 2, mode="linear")
    values = [np.arange(12, dtype="float32").reshape(2, 2, 3)]
    program = compare_onnx_and_py([x], y, values, assume_finite=True)
    assert [node.op_type for node in program.model.graph] == ["Resize"]
