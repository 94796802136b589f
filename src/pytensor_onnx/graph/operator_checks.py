"""Check operators as they are emitted: the name, the operands, the attributes and the dtypes."""

import linecache
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from pytensor_onnx.errors import LoweringError, did_you_mean
from pytensor_onnx.graph.signatures import (
    COMMON,
    COMMON_ATTRIBUTES,
    REQUIRED_ATTRIBUTES,
    Signature,
    signature,
)

_HERE = str(Path(__file__).parent)


def signature_of(op_type: str, opset_version: int, count: int) -> Signature:
    """Return the dtypes of an operator that takes a number of operands.

    Raises
    ------
    LoweringError
        If the opset has no such operator, or the operator takes another number of operands.

    Examples
    --------
    >>> signature_of("Add", 21, 2).outputs
    ('T',)
    """
    try:
        types = signature(op_type, opset_version)
    except onnx.defs.SchemaError:
        raise misuse(op_type, *_unknown_operator(op_type, opset_version)) from None
    if not types.takes(count):
        most = "or more" if types.variadic else f"to {len(types.inputs)}"
        wanted = [f"{types.required}", *([most] if types.required != len(types.inputs) else [])]
        raise misuse(op_type, f"it takes {' '.join(wanted)} operands, and was given {count}")
    return types


def check_dtypes(op_type: str, types: Signature, inputs: Sequence[ir.Value | None]) -> None:
    """Check that operands of one type variable have one dtype, and others the only one allowed.

    Dtypes that the standard lacks for an operator are left to the legaliser, which has other forms
    for them.

    Raises
    ------
    LoweringError
        If they do not.
    """
    bound: dict[str, ir.DataType] = {}
    for position, value in enumerate(inputs):
        if value is None or value.dtype is None:
            continue
        wanted = types.input_type(position)
        if isinstance(wanted, ir.DataType):
            if value.dtype != wanted:
                raise misuse(
                    op_type,
                    f"operand {position + 1} is of {_name(value.dtype)}, and must be of "
                    f"{_name(wanted)}",
                )
        elif bound.setdefault(wanted, value.dtype) != value.dtype:
            listed = ", ".join("none" if x is None else _name(x.dtype) for x in inputs)
            raise misuse(
                op_type,
                f"operands of the type variable {wanted} must have one dtype; the operands have: "
                f"{listed}",
                "cast them by build.cast(x, dtype)",
            )


def check_attributes(op_type: str, attributes: Mapping[str, Any], opset_version: int) -> None:
    """Check that an operator has all given attributes, and that no required attribute is missing.

    Attributes of later opsets are left to the legaliser, which has other forms for them.

    Raises
    ------
    LoweringError
        If an attribute is unknown or missing.
    """
    if op_type in COMMON and attributes.keys() <= COMMON_ATTRIBUTES.get(op_type, set()):
        required = REQUIRED_ATTRIBUTES.get(op_type, frozenset())
    else:
        known, required = _attributes(op_type, opset_version)
        for name in attributes.keys() - known:
            raise misuse(op_type, f"it has no attribute {name!r}", _did_you_mean(name, known))
    for name in required:
        if attributes.get(name) is None:
            raise misuse(op_type, f"it needs the attribute {name!r}")


@cache
def _attributes(op_type: str, opset_version: int) -> tuple[frozenset[str], frozenset[str]]:
    """Return the attributes of an operator in an opset or the newest, and its required ones."""
    here = onnx.defs.get_schema(op_type, opset_version, "").attributes
    newest = onnx.defs.get_schema(op_type).attributes
    required = (name for name, attribute in here.items() if attribute.required)
    return frozenset(here) | frozenset(newest), frozenset(required)


def misuse(op_type: str, reason: str, hint: str = "") -> LoweringError:
    """Return the error for the use of an operator, with the line that emits the operator."""
    return LoweringError(op_type, reason, hint, _line_of_lowering())


def _line_of_lowering() -> str:
    """Return ``file:line source`` of the innermost caller outside this folder."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    return f"{file}:{line}  {linecache.getline(file, line).strip()}".rstrip()


def _unknown_operator(op_type: str, opset_version: int) -> tuple[str, str]:
    schemas = [s for s in onnx.defs.get_all_schemas() if not s.domain and not s.deprecated]
    newer = {schema.name: schema.since_version for schema in schemas}
    reason = f"opset {opset_version} has no operator of that name"
    if op_type in newer:
        return reason, f"opset {newer[op_type]} has it: export with a later opset_version"
    return reason, _did_you_mean(op_type, [n for n, v in newer.items() if v <= opset_version])


def _did_you_mean(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, known, f"choose from {', '.join(sorted(known))}", similarity=0.5)


def _name(dtype: ir.DataType | None) -> str:
    return "an unknown dtype" if dtype is None else str(dtype.numpy())
