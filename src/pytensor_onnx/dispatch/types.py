"""Types of PyTensor that ONNX values can have."""

from __future__ import annotations

from pytensor.graph.basic import Variable
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import DenseTensorType
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.encodings import encoding_of
from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.named_dims import is_named, is_tensor


class UnsupportedType(UnsupportedCase):
    """Raised for a variable whose type no ONNX tensor can hold."""

    def __init__(self, type_: Type, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.type = type_


def check_type(type_: Type) -> None:
    """Raise `UnsupportedCase` for a type that no ONNX tensor can hold."""
    if isinstance(type_, NoneTypeT) or (encoding_of(type_) and not is_tensor(type_)):
        return
    if not (is_named(type_) or isinstance(type_, DenseTensorType | ScalarType)):
        raise UnsupportedType(
            type_,
            "only dense tensors and scalars have a counterpart in ONNX",
            "give the values that it stands for as tensor inputs",
        )
    if type_.dtype.startswith("complex"):
        raise UnsupportedType(
            type_,
            "ONNX runtimes do not compute with complex numbers",
            "carry the real and the imaginary part as two real tensors",
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
