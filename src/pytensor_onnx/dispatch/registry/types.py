"""Types of PyTensor that ONNX values can have."""

from __future__ import annotations

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import DenseTensorType, TensorType
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.encodings import encoding_for, encoding_of
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.named_dims import is_named, is_tensor
from pytensor_onnx.ops.encoded import Decode, Encode


class UnsupportedType(UnsupportedCase):
    """Raised for a variable whose type no ONNX tensor can hold."""

    def __init__(self, type_: Type, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.type = type_


def check_type(type_: Type) -> None:
    """Raise `UnsupportedCase` for a type that no ONNX tensor can hold."""
    if type(type_) is TensorType or isinstance(type_, NoneTypeT) or encoding_of(type_):
        return
    if not (is_named(type_) or isinstance(type_, DenseTensorType | ScalarType)):
        raise UnsupportedType(
            type_,
            "only dense tensors and scalars have a counterpart in ONNX",
            "take a matrix of format csr or csc"
            if hasattr(type_, "format")
            else "give the values that it stands for as tensor inputs",
        )


def check_operands(node: Apply) -> None:
    """Raise `UnsupportedCase` for an Op on arrays with an encoding, which has no rewrite for them.

    Its lowering would take their tensors for the arrays themselves.
    """
    if isinstance(node.op, Decode | Encode):
        return
    encoding = encoding_for(node)
    if encoding is None:
        return
    if encoding.advice and type(node.op).__module__.startswith("pytensor."):
        raise UnsupportedCase(
            f"no formula of tensors is known for this operation on {encoding.name} values",
            encoding.advice,
        )
    for variable in (*node.inputs, *node.outputs):
        numbers = encoding_of(variable.type)
        if numbers is not None and is_array(variable.type):
            raise UnsupportedCase(
                f"no formula of real parts is known for this operation on {numbers.name} numbers",
                "compute it from the real and the imaginary part: pytensor.tensor.real and imag",
            )


def is_array(type_: Type) -> bool:
    """Return whether values of a type are arrays or numbers."""
    return is_tensor(type_) or isinstance(type_, ScalarType)


def is_supported(variable: Variable) -> bool:
    """Return whether a variable has a type that ONNX can hold."""
    try:
        check_type(variable.type)
    except UnsupportedCase:
        return False
    return True
