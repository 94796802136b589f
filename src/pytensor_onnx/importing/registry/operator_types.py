"""Dtypes of the results of operators, from the schemas of the standard."""

from __future__ import annotations

from collections.abc import Sequence
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


def result_dtypes(
    schema: onnx.defs.OpSchema | None, operands: Sequence[Variable | None], count: int
) -> list[str | None]:
    """Return the dtypes of results that the operands determine, None for others.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> result_dtypes(schema_of("", "TopK", 21), [pt.fvector(), pt.lvector()], 2)
    ['float32', 'int64']
    """
    if schema is None:
        return [None] * count
    formal_inputs, formal_outputs = schema.inputs, schema.outputs
    bound: dict[str, str] = {}
    for position, operand in enumerate(operands):
        formal = formal_inputs[min(position, len(formal_inputs) - 1)] if formal_inputs else None
        if operand is not None and formal is not None and formal.is_homogeneous:
            bound.setdefault(formal.type_str, getattr(operand.type, "dtype", ""))
    single = {
        constraint.type_param_str: constraint.allowed_type_strs[0]
        for constraint in schema.type_constraints
        if len(constraint.allowed_type_strs) == 1
    }
    dtypes: list[str | None] = []
    for position in range(count):
        formal = formal_outputs[min(position, len(formal_outputs) - 1)]
        text = formal.type_str
        dtypes.append(bound.get(text) or _dtype_of(single.get(text, text)))
    return [
        dtype if formal_outputs[min(i, len(formal_outputs) - 1)].is_homogeneous else None
        for i, dtype in enumerate(dtypes)
    ]


def _dtype_of(text: str) -> str | None:
    if not text.startswith("tensor("):
        return None
    return _OF_SCHEMAS.get(text, text.removeprefix("tensor(").removesuffix(")"))
