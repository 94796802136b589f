"""The last steps of a loop are no more than it has."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from tests.conftest import compare_onnx_and_py


@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_the_last_two_of_few_rows(n_steps):
    x = pt.tensor("x", shape=(n_steps,))
    states = pytensor.scan(lambda e, y: 0.5 * y + e, [x], [pt.zeros(())], return_updates=False)
    rows = pytensor.scan(lambda e: pt.stack([pt.tanh(e), e]), [states], return_updates=False)
    compare_onnx_and_py(
        [x], [rows[-2:], rows[-2:, 1], rows[-2:][-1], states[-2:]], [np.arange(n_steps) + 1.0]
    )
