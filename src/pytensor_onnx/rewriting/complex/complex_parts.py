"""The real and imaginary parts of complex numbers, and their pairs."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.encodings.complex_numbers import REAL, ComplexNumbers
from pytensor_onnx.encodings.registry import Tensors, registered
from pytensor_onnx.functions.complex.complex_arithmetic import Parts

ENCODING = registered(ComplexNumbers)


def is_complex(variable: Variable) -> bool:
    """Return whether the values of a variable are complex."""
    return ENCODING.serves(variable.type)


def real_dtype(*variables: Variable) -> str:
    """Return the dtype of the parts of the widest complex variable."""
    return max(REAL[v.type.dtype] for v in variables if is_complex(v))


def joined(parts: Parts) -> TensorVariable:
    """Return the pairs of parts, which `parts_of` takes apart without a node.

    Examples
    --------
    >>> parts_of(joined(Parts(pt.vector("x"), pt.vector("y"))))
    Parts(real=x, imag=y)
    """
    real, imag = parts.real, parts.imag
    if real.type.broadcastable != imag.type.broadcastable:
        real, imag = pt.broadcast_arrays(real, imag)
    return pt.join(-1, _with_last_axis(real), _with_last_axis(imag))


def parts_of(pairs: TensorVariable) -> Parts:
    """Return the parts of pairs."""
    known = known_parts(pairs)
    return known or Parts(pairs[..., 0], pairs[..., 1])


def known_parts(pairs: TensorVariable) -> Parts | None:
    """Return the parts that pairs were joined from, or None if no join made the pairs."""
    node = pairs.owner
    if node is None or not isinstance(node.op, Join) or len(node.inputs) != 2:
        return None
    if not all(map(_has_new_last_axis, node.inputs)):
        return None
    return Parts(*(side.owner.inputs[0] for side in node.inputs))


def operand(variable: Variable, tensors: Tensors, dtype: str) -> Parts:
    """Return the parts of an operand in a dtype; the imaginary part of a real operand is zero."""
    if is_complex(variable):
        return Parts(*(pt.cast(part, dtype) for part in parts_of(tensors[0])))
    return Parts(pt.cast(tensors[0], dtype), pt.zeros((), dtype))


def operands(inputs: Sequence[Variable], tensors: Sequence[Tensors], dtype: str) -> list[Parts]:
    """Return the parts of all operands in a dtype."""
    return [operand(v, group, dtype) for v, group in zip(inputs, tensors, strict=True)]


def _with_last_axis(x: TensorVariable) -> TensorVariable:
    return x.dimshuffle(*range(x.type.ndim), "x")


def _has_new_last_axis(x: TensorVariable) -> bool:
    node = x.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return False
    return tuple(node.op.new_order) == (*range(node.inputs[0].type.ndim), "x")
