"""Products and convolutions of complex arrays, as those of their parts."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blas import BatchedDot, Dot22
from pytensor.tensor.math import Dot
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.rewriting.complex_numbers.parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    operands,
    real_dtype,
)


@ENCODING.rewrites(Dot, Dot22, BatchedDot, Convolve1d, Convolve2d)
def multiply(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the product by four real ones, or by two if one operand is real."""
    (a, b), (c, d) = operands(node.inputs[:2], inputs[:2], real_dtype(*node.outputs))
    mode = [tensors[0] for tensors in inputs[2:]]

    def product(x: TensorVariable, y: TensorVariable) -> TensorVariable:
        return op.make_node(x, y, *mode).outputs[0]

    if not is_complex(node.inputs[0]):
        return [[joined(Parts(product(a, c), product(a, d)))]]
    if not is_complex(node.inputs[1]):
        return [[joined(Parts(product(a, c), product(b, c)))]]
    real = product(a, c) - product(b, d)
    imag = product(a, d) + product(b, c)
    return [[joined(Parts(real, imag))]]
