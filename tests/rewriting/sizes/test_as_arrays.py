import numpy as np
import pytensor
import pytensor.tensor as pt

from tests.conftest import called, compare_onnx_and_py


def test_sizes_of_functions_are_computed_with_arrays():
    x, y = pt.tensor("x", shape=(1,)), pt.tensor("y", shape=(4,))
    chosen = pt.choose(pytensor.shared(np.array([0])), pt.stack([x, x * 2]))
    joined = called(lambda a, b: pt.join(0, a, b), y, called(pt.exp, chosen))
    compare_onnx_and_py([x, y], pt.mean(joined, axis=0), [np.ones(1), np.arange(4.0)])
