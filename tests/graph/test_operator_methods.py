"""The declarations of the standard operators, which editors and type checkers read."""

from pathlib import Path

import pytest

from pytensor_onnx.graph import operator_methods
from scripts.make_operators import STUB, stub


def test_the_declarations_are_those_of_the_schemas():
    assert Path(operator_methods.__file__).with_suffix(".pyi") == STUB
    assert STUB.read_text(encoding="utf-8") == stub()


@pytest.mark.parametrize(
    "declared",
    [
        "def Gather(self, data: Operand, indices: Operand, /, *, axis: int = 0) -> ir.Value:",
        "def Concat(self, *inputs: Operand, axis: int) -> ir.Value:",
        "def Clip(self, input: Operand, min: Operand = None, max: Operand = None, /) -> ir.Value:",
    ],
)
def test_operands_are_positional_and_attributes_are_keywords(declared):
    assert declared in STUB.read_text(encoding="utf-8")
