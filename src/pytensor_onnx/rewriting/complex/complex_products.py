"""Products and convolutions of complex arrays, by products and convolutions of their parts."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.blas import BatchedDot, Dot22
from pytensor.tensor.math import Dot
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.rewriting.complex.complex_parts import (
    ENCODING,
    Parts,
    is_complex,
    joined,
    operand,
    real_dtype,
)


@ENCODING.rewrites(Dot, Dot22, BatchedDot, Convolve1d, Convolve2d)
def multiply(op: Op, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Return the product of the first two operands."""
    return product_of_parts(op, node, inputs, factors=(0, 1))


def product_of_parts(
    op: Op, node: Apply, inputs: Sequence[Tensors], factors: tuple[int, int]
) -> list[Tensors]:
    """Return a product by four real ones, or by two if one factor is real.

    Parameters
    ----------
    factors
        Positions of the factors among the operands.
    """
    i, j = factors
    (a, b), (c, d) = (
        operand(node.inputs[k], inputs[k], real_dtype(*node.outputs)) for k in factors
    )
    arguments = [tensors[0] for tensors in inputs]

    def product(x: TensorVariable, y: TensorVariable) -> TensorVariable:
        arguments[i], arguments[j] = x, y
        return op.make_node(*arguments).outputs[0]

    if not is_complex(node.inputs[i]):
        return [[joined(Parts(product(a, c), product(a, d)))]]
    if not is_complex(node.inputs[j]):
        return [[joined(Parts(product(a, c), product(b, c)))]]
    real = product(a, c) - product(b, d)
    imag = product(a, d) + product(b, c)
    return [[joined(Parts(real, imag))]]
