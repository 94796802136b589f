"""Threefry-2x64-20 as a PyTensor expression, of operators that runtimes have for uint64."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.registry import define
from pytensor_onnx.ops.random.draw_reference import PARITY, ROTATIONS, ROUNDS
from pytensor_onnx.ops.random.draws import Threefry


@define(Threefry)
def threefry(
    first_key: TensorVariable, second_key: TensorVariable, low: TensorVariable, high: TensorVariable
) -> list[TensorVariable]:
    """Return the two words that the cipher makes of the two words of a counter.

    A rotation is a product and a quotient by powers of two, whose bits do not overlap.
    """
    keys = [first_key, second_key, _word(PARITY) ^ first_key ^ second_key]
    x, y = low + keys[0], high + keys[1]
    for i in range(ROUNDS):
        x = x + y
        n = ROTATIONS[i % 8]
        y = (y * _word(2**n) + y // _word(2 ** (64 - n))) ^ x
        if i % 4 == 3:
            k = i // 4 + 1
            x = x + keys[k % 3]
            y = y + (keys[(k + 1) % 3] + _word(k))
    return [x, y]


def _word(number: int | np.uint64) -> TensorVariable:
    return pt.constant(np.uint64(number))
