import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.values import INTEGERS


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 12])
def test_bartlett(dtype, size):
    n = pt.scalar("n", dtype=dtype)
    compare_onnx_and_py([n], pt.bartlett(n), [np.asarray(size, dtype)])


def test_bartlett_of_a_negative_size_is_empty():
    n = pt.lscalar("n")
    compare_onnx_and_py([n], pt.bartlett(n), [-3])
