import numpy as np
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py
from tests.dispatch.values import INTEGERS


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bartlett(dtype):
    n = pt.scalar("n", dtype=dtype)
    first, *others = ([np.asarray(size, dtype)] for size in [0, 1, 2, 3, 12])
    compare_onnx_and_py([n], pt.bartlett(n), first, also=others)


def test_bartlett_of_a_negative_size_is_empty():
    n = pt.lscalar("n")
    compare_onnx_and_py([n], pt.bartlett(n), [-3])
