"""The schemas of operators: types of operands and results, and attributes."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir

_DTYPE_OF_SCHEMA_TYPE = {
    "tensor(float)": ir.DataType.FLOAT,
    "tensor(double)": ir.DataType.DOUBLE,
    "tensor(float16)": ir.DataType.FLOAT16,
    "tensor(bfloat16)": ir.DataType.BFLOAT16,
    "tensor(bool)": ir.DataType.BOOL,
    "tensor(string)": ir.DataType.STRING,
    "tensor(complex64)": ir.DataType.COMPLEX64,
    "tensor(complex128)": ir.DataType.COMPLEX128,
} | {
    f"tensor({kind}{bits})": ir.DataType[f"{kind.upper()}{bits}"]
    for kind in ("int", "uint")
    for bits in (8, 16, 32, 64)
}


class Signature(NamedTuple):
    """Types of an operator in its schema: dtypes, type variables, and None for any type.

    Operands and results of one type variable have one dtype.
    """

    inputs: tuple[str | ir.DataType | None, ...]
    outputs: tuple[str | ir.DataType | None, ...]
    required: int
    variadic: bool = False

    def input_type(self, position: int) -> str | ir.DataType | None:
        """Return the dtype or type variable of an input."""
        return self.inputs[min(position, len(self.inputs) - 1)]

    def takes(self, count: int) -> bool:
        """Return whether the operator takes a number of operands."""
        return self.required <= count and (self.variadic or count <= len(self.inputs))


FIRST_OPSET = 18
"""First opset that nodes are emitted in, and from which on the table of schemas holds."""


class _Schema(NamedTuple):
    """Row of the table: types by words, with "?" for any and "..." for any number of operands."""

    operands: str
    results: str
    required: int
    first_opset: int
    optional_attributes: Mapping[str, Any]
    required_attributes: Sequence[str]


@cache
def _schemas() -> Mapping[str, _Schema]:
    """Return the schemas that are the same in all opsets, by `scripts/make_operators.py`.

    A model of these operators reads no schema of onnx. Reading the first one takes 8 ms, as onnx
    then makes all.
    """
    text = resources.files(__package__).joinpath("schemas.json").read_text(encoding="utf-8")
    return {name: _Schema(*row) for name, row in json.loads(text).items()}


@cache
def signature(op_type: str, opset_version: int, domain: str = "") -> Signature | None:
    """Return the types of an operator, None if the opset has no such operator.

    Examples
    --------
    >>> signature("Gather", 21).inputs
    ('T', 'Tind')
    >>> signature("Shape", 21).outputs
    (INT64,)
    """
    known = None if domain else _schemas().get(op_type)
    if known is not None and opset_version >= max(known.first_opset, FIRST_OPSET):
        operands = _types_of_words(known.operands.removesuffix(" ..."))
        variadic = known.operands.endswith("...")
        return Signature(operands, _types_of_words(known.results), known.required, variadic)
    return read_signature(op_type, opset_version, domain)


def _types_of_words(words: str) -> tuple[str | ir.DataType | None, ...]:
    members = ir.DataType.__members__
    return tuple(None if word == "?" else members.get(word, word) for word in words.split())


def read_signature(op_type: str, opset_version: int, domain: str = "") -> Signature | None:
    """Return the types of an operator from its schema, None if the opset has no such operator."""
    schema = schema_of(op_type, opset_version, domain)
    if schema is None:
        return None
    single = {
        constraint.type_param_str: constraint.allowed_type_strs[0]
        for constraint in schema.type_constraints
        if len(constraint.allowed_type_strs) == 1
    }

    def types(parameters: Any) -> tuple[str | ir.DataType | None, ...]:
        return tuple(
            type_of_text(single.get(p.type_str, p.type_str)) if p.is_homogeneous else None
            for p in parameters
        )

    variadic = bool(schema.inputs) and (
        schema.inputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    )
    return Signature(types(schema.inputs), types(schema.outputs), schema.min_input, variadic)


@cache
def schema_of(op_type: str, opset_version: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """Return the schema of an operator in an opset, None if the opset has no such operator."""
    try:
        schema = onnx.defs.get_schema(op_type, opset_version, domain)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@cache
def schema_attributes(op_type: str, opset_version: int) -> Mapping[str, Any]:
    """Return the attributes of a standard operator with their defaults.

    The default is Ellipsis for an attribute that must be given, and None for one without default.
    """
    known = _schemas().get(op_type)
    if known is not None and opset_version >= FIRST_OPSET:
        return {**known.optional_attributes, **dict.fromkeys(known.required_attributes, ...)}
    schema = schema_of(op_type, opset_version)
    attributes = {} if schema is None else schema.attributes
    return {name: default_of(attribute) for name, attribute in attributes.items()}


@cache
def required_attributes(op_type: str, opset_version: int) -> tuple[str, ...]:
    """Return the attributes that a standard operator cannot do without."""
    declared = schema_attributes(op_type, opset_version)
    return tuple(name for name, default in declared.items() if default is ...)


def default_of(attribute: onnx.defs.OpSchema.Attribute) -> Any:
    """Return the default of an attribute, Ellipsis if it is required, None if it has none."""
    if attribute.required:
        return ...
    return ir.from_proto(attribute.default_value).value if attribute.default_value.name else None


@cache
def defaults_of(op_type: str) -> Mapping[str, Any]:
    """Return the defaults of the attributes of a standard operator that have one.

    Examples
    --------
    >>> defaults_of("Gather"), defaults_of("Transpose")
    ({'axis': 0}, {})
    """
    known = _schemas().get(op_type)
    attributes = {} if known is None else known.optional_attributes
    return {name: value for name, value in attributes.items() if value is not None}


def type_of_text(text: str) -> str | ir.DataType:
    """Return the dtype of a plain type in a schema, or the name of a type variable.

    Examples
    --------
    >>> type_of_text("tensor(float)"), type_of_text("T")
    (FLOAT, 'T')
    """
    return _DTYPE_OF_SCHEMA_TYPE.get(text, text)


def attribute_of(node: ir.Node, name: str) -> Any:
    """Return an attribute of a node of the standard, or the schema's default for it.

    Examples
    --------
    >>> attribute_of(ir.node("Gather", [], {"axis": 1}), "axis"), attribute_of(
    ...     ir.node("Gather", []), "axis"
    ... )
    (1, 0)
    """
    given = node.attributes.get(name)
    return defaults_of(node.op_type)[name] if given is None else given.value


Bound = dict[str | ir.DataType | None, ir.DataType]


def bind_dtypes(types: Signature, inputs: Sequence[ir.Value | Any | None]) -> Bound:
    """Return the dtype of each type variable that an input value determines."""
    bound: Bound = {}
    for position, value in enumerate(inputs):
        if isinstance(value, ir.Value) and value.dtype is not None:
            variable = types.input_type(position)
            if isinstance(variable, str):
                bound.setdefault(variable, value.dtype)
    return bound


def output_dtypes(
    op_type: str,
    types: Signature,
    bound: Bound,
    attributes: Mapping[str, Any],
) -> list[ir.DataType | None]:
    """Return the dtype of each output in the schema, None if it is undetermined."""
    if op_type in ("Cast", "RandomNormalLike") and "to" in attributes:
        return [ir.DataType(attributes["to"])]
    if op_type == "ConstantOfShape":
        value = attributes.get("value")
        return [value.dtype if value is not None else ir.DataType.FLOAT]
    if op_type == "EyeLike":
        return [ir.DataType(attributes["dtype"]) if "dtype" in attributes else bound.get("T1")]
    return [out if isinstance(out, ir.DataType) else bound.get(out) for out in types.outputs]


def dtype_of(value: ir.Value | None) -> ir.DataType:
    """Return the dtype of a value, which must be known.

    Examples
    --------
    >>> dtype_of(ir.val("x", dtype=ir.DataType.FLOAT)).name
    'FLOAT'
    """
    if value is None or value.dtype is None:
        raise TypeError(f"the dtype of {value} is not known")
    return value.dtype
