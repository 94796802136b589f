"""Encode complex numbers as real tensors with a trailing axis of two.

``docs/understanding/complex.md`` describes their form in a file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.type import DenseTensorType, TensorType

from pytensor_onnx.encodings.registry import Encoding, register_encoding
from pytensor_onnx.named_dims import is_named

REAL = {"complex64": "float32", "complex128": "float64"}
"""Dtype of the parts by the dtype of complex numbers."""


@register_encoding
class ComplexNumbers(Encoding):
    """Encoding with one part: real and imaginary parts along a last axis of two.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> encoding, type_ = ComplexNumbers(), pt.zvector().type
    >>> (pairs,) = encoding.encode(type_, np.array([1 + 2j, 3j]))
    >>> pairs
    array([[1., 2.],
           [0., 3.]])
    >>> encoding.decode(type_, [pairs])
    array([1.+2.j, 0.+3.j])
    """

    name = "complex"

    def serves(self, type_: Type) -> bool:
        """Return whether a type is one of complex arrays or scalars."""
        is_array = isinstance(type_, DenseTensorType | ScalarType) or is_named(type_)
        return is_array and type_.dtype in REAL

    def owns(self, op: Op) -> bool:
        """Return whether an Op reduces real numbers as complex ones."""
        return isinstance(op, CAReduce) and op.acc_dtype in REAL

    def parts(self, type_: TensorType | ScalarType) -> Mapping[str, TensorType]:
        """Return the type of the pairs."""
        return {"pairs": TensorType(REAL[type_.dtype], shape=(*type_.shape, 2))}

    def type_of(self, parts: Mapping[str, TensorType], details: Mapping[str, str]) -> Type:
        """Return the type of complex arrays whose pairs have a type."""
        pairs = parts["pairs"]
        dtype = next(dtype for dtype, real in REAL.items() if real == pairs.dtype)
        return TensorType(dtype, shape=pairs.shape[:-1])

    def encode(self, type_: TensorType | ScalarType, value: Any) -> Sequence[np.ndarray]:
        """Return the parts of complex numbers, a view where their memory is contiguous."""
        numbers = np.ascontiguousarray(value, type_.dtype)
        return [numbers.view(REAL[type_.dtype]).reshape(*np.shape(value), 2)]

    def decode(self, type_: TensorType | ScalarType, arrays: Sequence[np.ndarray]) -> Any:
        """Return the complex numbers, a view where the memory of the pairs is contiguous.

        Pairs of a program with narrower floats become numbers of as many digits.
        """
        dtype = np.result_type(arrays[0], np.complex64).name
        numbers = np.ascontiguousarray(arrays[0], REAL[dtype]).view(dtype)[..., 0]
        return numbers[()] if isinstance(type_, ScalarType) else np.asarray(numbers)
