"""Full convolutions, as sums of products with single numbers."""

import pytensor.tensor as pt
from pytensor.scalar.basic import upcast
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.functions.loops import iterate
from pytensor_onnx.functions.registry import define, own_signature
from pytensor_onnx.ops.signal import FullConvolution


@define(FullConvolution, own_signature)
def convolve(x: TensorVariable, y: TensorVariable, *, axes: int) -> TensorVariable:
    """Return the sum of the first array, moved by the indices of the second and times its numbers.

    No product has a padding zero, so that infinities reach the same results as in NumPy. A step
    takes the time of the result, and there is one for each number of the second array.

    Examples
    --------
    >>> x, y = pt.vector("x"), pt.vector("y")
    >>> convolve(x, y, axes=1).eval({x: [1.0, 2.0, 3.0], y: [1.0, 10.0]})
    array([ 1., 12., 23., 30.])
    """
    dtype = upcast(x.type.dtype, y.type.dtype)
    x, y = pt.cast(x, dtype), pt.cast(y, dtype)
    lead = [x.shape[axis] for axis in range(x.type.ndim - axes)]
    widths = [y.shape[axis - axes] for axis in range(axes)]
    numbers = y.reshape((*lead, pt.prod(widths, dtype="int64")))
    sizes = [x.shape[axis - axes] + width - 1 for axis, width in enumerate(widths)]
    start = pt.zeros((*lead, *sizes), dtype)

    def step(
        index: TensorVariable,
        total: TensorVariable,
        x: TensorVariable,
        numbers: TensorVariable,
        *widths: TensorVariable,
    ) -> list[TensorVariable]:
        number = numbers[..., index]
        term = x * pt.shape_padright(number, axes)
        for axis in reversed(range(axes)):
            width = widths[axis]
            offset = index % width if axis else index
            index = index // width
            term = _placed(term, offset, width - 1 - offset, axis - axes)
        return [total + term]

    steps = pt.arange(numbers.shape[-1])
    constants = [x, numbers, *widths]
    return iterate(step, [start], constants, sequences=[steps], n_steps=numbers.shape[-1])[0]


def _placed(
    x: TensorVariable, before: TensorVariable, after: TensorVariable, axis: int
) -> TensorVariable:
    """Return an array between zeros along an axis."""
    sides = []
    for count in (before, after):
        shape = [x.shape[i] for i in range(x.type.ndim)]
        shape[axis] = count
        sides.append(pt.zeros(shape, x.type.dtype))
    return pt.concatenate([sides[0], x, sides[1]], axis=axis)
