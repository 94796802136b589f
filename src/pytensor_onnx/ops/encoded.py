"""Define the Ops that convert a value that is not a tensor to its tensors and back."""

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.type import Type

from pytensor_onnx.encodings.registry import Encoding, encoding_of, tensor_types


class _Between(Op):
    """Base of the conversions between the values of a type and their tensors.

    Parameters
    ----------
    type_
        Type of the values, which has an encoding.
    """

    __props__ = ("type_",)

    def __init__(self, type_: Type) -> None:
        self.type_ = type_

    @property
    def encoding(self) -> Encoding:
        """The encoding of the type."""
        encoding = encoding_of(self.type_)
        assert encoding is not None
        return encoding

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.encoding.name}}}"


class Encode(_Between):
    """Tensors of an encoded value."""

    def make_node(self, value: Variable) -> Apply:
        """Return the node for a variable of the type."""
        return Apply(self, [value], [part() for part in tensor_types(self.type_)])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Encode the value."""
        for storage, array in zip(
            outputs, self.encoding.encode(self.type_, inputs[0]), strict=True
        ):
            storage[0] = array


class Decode(_Between):
    """Build a value, such as a generator, from the tensors of its encoding."""

    def make_node(self, *tensors: Variable) -> Apply:
        """Return the node for the tensors, in the order of the parts."""
        parts = zip(tensor_types(self.type_), tensors, strict=True)
        return Apply(self, [part.filter_variable(x) for part, x in parts], [self.type_()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Decode the tensors."""
        outputs[0][0] = self.encoding.decode(self.type_, inputs)
