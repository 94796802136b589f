"""Dtypes of the results of operators, from the schemas of the standard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import onnx_ir as ir
from pytensor.graph.basic import Variable

from pytensor_onnx.errors import UnsupportedCase

if TYPE_CHECKING:
    import onnx

_NOT_OF_PYTENSOR = "PyTensor has no arrays of {}"


def dtype_name(dtype: ir.DataType) -> str:
    """Return the name of a dtype in PyTensor.

    Raises
    ------
    UnsupportedCase
        If PyTensor has no such arrays.

    Examples
    --------
    >>> dtype_name(ir.DataType.FLOAT), dtype_name(ir.DataType.BOOL)
    ('float32', 'bool')
    """
    name = _NAMES.get(dtype)
    if name is None:
        raise UnsupportedCase(_NOT_OF_PYTENSOR.format(dtype.name.lower()))
    return name


_NAMES = {
    ir.DataType.BOOL: "bool",
    ir.DataType.COMPLEX64: "complex64",
    ir.DataType.COMPLEX128: "complex128",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.FLOAT: "float32",
    ir.DataType.DOUBLE: "float64",
    **{
        ir.DataType[f"{kind.upper()}{bits}"]: f"{kind}{bits}"
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
}

_OF_SCHEMAS = {"tensor(float)": "float32", "tensor(double)": "float64"}


@cache
def schema_of(domain: str, operator: str, opset: int) -> onnx.defs.OpSchema | None:
    """Return the schema of an operator in an opset, None if the standard has none."""
    import onnx

    try:
        return onnx.defs.get_schema(operator, opset, domain)
    except onnx.defs.SchemaError:
        return None


@dataclass(frozen=True)
class _Signature:
    """The types of operands and results in a schema, which takes long to read."""

    operands: tuple[str, ...]
    are_operands_alike: tuple[bool, ...]
    results: tuple[str, ...]
    are_results_alike: tuple[bool, ...]
    single: Mapping[str, str]


@cache
def _signature_of(domain: str, operator: str, opset: int) -> _Signature | None:
    schema = schema_of(domain, operator, opset)
    if schema is None:
        return None
    inputs, outputs = list(schema.inputs), list(schema.outputs)
    return _Signature(
        tuple(formal.type_str for formal in inputs),
        tuple(formal.is_homogeneous for formal in inputs),
        tuple(formal.type_str for formal in outputs),
        tuple(formal.is_homogeneous for formal in outputs),
        {
            constraint.type_param_str: constraint.allowed_type_strs[0]
            for constraint in schema.type_constraints
            if len(constraint.allowed_type_strs) == 1
        },
    )


def result_dtypes(
    domain: str, operator: str, opset: int, operands: Sequence[Variable | None], count: int
) -> list[str | None]:
    """Return the dtypes of results that the operands determine, None for others.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> result_dtypes("", "TopK", 21, [pt.fvector(), pt.lvector()], 2)
    ['float32', 'int64']
    """
    signature = _signature_of(domain, operator, opset)
    if signature is None:
        return [None] * count
    bound: dict[str, str] = {}
    last = len(signature.operands) - 1
    for position, operand in enumerate(operands):
        formal = min(position, last)
        if operand is not None and last >= 0 and signature.are_operands_alike[formal]:
            bound.setdefault(signature.operands[formal], getattr(operand.type, "dtype", ""))
    dtypes: list[str | None] = []
    for position in range(count):
        formal = min(position, len(signature.results) - 1)
        text = signature.results[formal]
        dtype = bound.get(text) or _dtype_of(signature.single.get(text, text))
        dtypes.append(dtype if signature.are_results_alike[formal] else None)
    return dtypes


def _dtype_of(text: str) -> str | None:
    if not text.startswith("tensor("):
        return None
    return _OF_SCHEMAS.get(text, text.removeprefix("tensor(").removesuffix(")"))
