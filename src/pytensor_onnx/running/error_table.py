"""Table of the runtime's messages, with the exception and the text for each."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytensor_onnx.errors import (
    InputError,
    PyTensorONNXError,
    RunIndexError,
    RunValueError,
    RunZeroDivisionError,
)
from pytensor_onnx.running.operand_shapes import Shapes


@dataclass(frozen=True)
class Meaning:
    """Exception and text for a message of the runtime.

    Attributes
    ----------
    message
        Regular expression for a part of the runtime's message.
    error
        Class of the exception to raise.
    text
        The message in the user's terms, formatted with the groups of the expression.
    numbers
        Further fields of the text, computed from the groups.
    sized
        Text for the shapes of two operands, for messages without sizes.
    """

    message: str
    error: type[PyTensorONNXError]
    text: str
    numbers: Mapping[str, Callable[[Mapping[str, str]], str]] = field(default_factory=dict)
    sized: str = ""

    def of(
        self, message: str, into: str = "", shapes: Callable[[], Shapes | None] = lambda: None
    ) -> str | None:
        """Return the text for a message of the runtime, None for other messages."""
        match = re.search(self.message, message, re.DOTALL)
        if match is None:
            return None
        groups = {name: value or "" for name, value in match.groupdict().items()}
        groups["into"] = into
        groups.update({name: number(groups) for name, number in self.numbers.items()})
        known = shapes() if self.sized else None
        if known is None:
            return self.text.format_map(groups)
        return self.sized.format_map({**groups, "first": known[0], "second": known[1]})


def _shape(name: str) -> Callable[[Mapping[str, str]], str]:
    """Return a function that formats a shape such as ``3,4`` as a Python tuple."""

    def shape(groups: Mapping[str, str]) -> str:
        sizes = [size for size in groups[name].split(",") if size]
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    return shape


def _size(groups: Mapping[str, str]) -> str:
    return str(int(groups["last"]) + 1)


BROADCAST = "operands cannot be broadcast together: one axis has the sizes {first} and {second}"

MEANINGS = (
    Meaning(
        r"indices element out of data bounds, idx=(?P<index>-?\d+) .*\[-?\d+,(?P<last>-?\d+)\]",
        RunIndexError,
        "index {index}{into} is out of range for an axis of size {size}",
        {"size": _size},
    ),
    Meaning(
        r"invalid ind(?:ex|ice) found, ind(?:ex|ice) = (?P<index>-?\d+)",
        RunIndexError,
        "index {index}{into} is out of range",
        sized="index {index}{into} is out of range for an array of shape {first}",
    ),
    Meaning(
        "Out of range value in index tensor",
        RunIndexError,
        "an index{into} is out of range",
        sized="an index{into} is out of range for an array of shape {first}",
    ),
    Meaning(
        r"by a dimension other than 1\. (?P<first>\d+) by (?P<second>\d+)",
        RunValueError,
        BROADCAST,
    ),
    Meaning(
        r"Can broadcast (?P<first>0) by 0 or 1\. (?P<second>\d+) is invalid",
        RunValueError,
        BROADCAST,
    ),
    Meaning(
        "invalid expand shape",
        RunValueError,
        "an array cannot be broadcast to the shape that is asked for",
        sized="an array of shape {first} cannot be broadcast to the shape {second}",
    ),
    Meaning(
        r"updates shape: {(?P<values>[\d,]*)}, indices shape: {(?P<indices>[\d,]*)}, "
        r"data shape: {(?P<array>[\d,]*)}",
        RunValueError,
        "values of shape {new} do not fit the {count} elements that are set or incremented in an "
        "array of shape {old}",
        {
            "new": _shape("values"),
            "old": _shape("array"),
            "count": lambda groups: groups["indices"].rpartition(",")[0].replace(",", " x "),
        },
    ),
    Meaning(
        r"Input shape:{(?P<old>[\d,]*)}, requested shape:{(?P<new>[-\d,]*)}",
        RunValueError,
        "an array of shape {old_shape} cannot be reshaped to {new_shape}",
        {"old_shape": _shape("old"), "new_shape": _shape("new")},
    ),
    Meaning(
        "At most one dimension can be -1",
        RunValueError,
        "only one size of the new shape may be -1",
    ),
    Meaning(
        r"A dimension cannot be less than -1, got (?P<size>-\d+)",
        RunValueError,
        "negative dimensions are not allowed: {size}",
    ),
    Meaning(
        r"Input shape={(?P<shape>[\d,]*)} .*was (?P<total>-?\d+)\s*$",
        RunValueError,
        "the sizes of a split sum to {total}, for an array of shape {old}",
        {"old": _shape("shape")},
    ),
    Meaning(
        r"Invalid value in 'split' input\. All values must be >= 0",
        RunValueError,
        "the sizes of a split cannot be negative",
    ),
    Meaning(
        r"Split size (?P<size>\d+) exceeds the remaining size of the selected axis, (?P<rest>\d+)",
        RunValueError,
        "the sizes of a split are more than the axis has: {size} where {rest} are left",
    ),
    Meaning(
        r"Axis (?P<axis>\d+) has mismatched dimensions of (?P<second>\d+) and (?P<first>\d+)",
        RunValueError,
        "arrays that are joined differ in another axis: axis {axis} has the sizes {first} and "
        "{second}",
    ),
    Meaning(
        r"MatMul dimension mismatch|operand cannot broadcast on dim|GEMM: Dimension mismatch",
        RunValueError,
        "the shapes of a matrix product do not fit",
        sized="the shapes {first} and {second} of a matrix product do not fit",
    ),
    Meaning(
        r"Gemm: Invalid bias shape for broadcast",
        RunValueError,
        "a product and its addend cannot be broadcast together",
    ),
    Meaning(
        r"The shape is: {(?P<shape>[\d,]*)}Another operand has a dim value of (?P<size>\d+)",
        RunValueError,
        "the shapes of a product do not fit: {own} where the other operand has {size}",
        {"own": _shape("shape")},
    ),
    Meaning(
        r"Dimension of input (?P<axis>\d+) must be 1 instead of (?P<size>\d+)",
        RunValueError,
        "axis {axis} cannot be dropped: it has the size {size}",
    ),
    Meaning(
        r"Input channels C is not equal to kernel channels \* group\. C: (?P<found>\d+) "
        r"kernel channels: (?P<wanted>\d+) group: (?P<groups>\d+)",
        RunValueError,
        "an image of {found} channels does not fit filters for {wanted} channels in {groups} "
        "groups",
    ),
    Meaning(
        r"filter_number: (?P<wanted>\d+) num_input_channels: (?P<found>\d+)",
        RunValueError,
        "an image of {found} channels does not fit filters for {wanted} channels",
    ),
    Meaning(
        r"X\.shape={(?P<shape>[\d,]*)} scale\.shape={(?P<scale>[\d,]*)}",
        RunValueError,
        "a scale of shape {own} does not fit an array of shape {whole}",
        {"own": _shape("scale"), "whole": _shape("shape")},
    ),
    Meaning(
        r"shape\.Size\(\) must be >= 0|repeat value must be non-negative|Depth is negative",
        RunValueError,
        "negative dimensions are not allowed",
    ),
    Meaning(
        "'step' value cannot be 0",
        RunValueError,
        "the step of a slice cannot be zero",
    ),
    Meaning(
        "delta in Range operator can not be zero",
        RunZeroDivisionError,
        "the step of a range cannot be zero",
    ),
    Meaning(
        "Integer (?:division|modulo) by zero",
        RunZeroDivisionError,
        "integer division by zero",
    ),
    Meaning(
        r"Previous value was (?P<first>\d+) but input .* has length of (?P<second>\d+)",
        RunValueError,
        "the sequences of a loop differ in length: {first} and {second}",
    ),
    Meaning(
        r"Shape mismatch attempting to re-use buffer\. {(?P<first>[\d,]*)} != {(?P<second>[\d,]*)}",
        RunValueError,
        "arrays that must have one shape have the shapes {expected} and {found}",
        {"expected": _shape("first"), "found": _shape("second")},
    ),
    Meaning(
        r"Invalid rank for input: (?P<name>.+?) Got: (?P<rank>\d+) Expected: (?P<wanted>\d+)",
        InputError,
        "input {name} has {rank} axes, but {wanted} are expected",
    ),
    Meaning(
        r"invalid dimensions for input: (?P<name>.+?) for .*index: (?P<axis>\d+) "
        r"Got: (?P<size>\d+) Expected: (?P<wanted>\d+)",
        InputError,
        "axis {axis} of input {name} has the size {size}, but {wanted} is expected",
    ),
)
