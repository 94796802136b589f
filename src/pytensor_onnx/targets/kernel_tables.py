"""Tables of a runtime's kernels."""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.traversal import is_float32
from pytensor_onnx.operators.inference import schema_attributes, schema_of, signature

if TYPE_CHECKING:
    pass


Attributes = Mapping[str, Any]


class Row(NamedTuple):
    """Dtypes of one operator, or of one variant of it, by the first opset."""

    opsets: tuple[int, ...]
    dtypes: tuple[frozenset[ir.DataType], ...]

    def at(self, opset_version: int) -> frozenset[ir.DataType]:
        """Return the dtypes for one opset."""
        index = bisect_right(self.opsets, opset_version)
        return self.dtypes[index - 1] if index else frozenset()


@dataclass(frozen=True, eq=False)
class KernelTable:
    """Kernels that all measured versions of a runtime have.

    Attributes
    ----------
    runtime, versions
        The runtime and its versions that were measured.
    min_opset, max_opset
        The opsets that were measured.
    probed
        The dtypes that were tried; nothing is known of the others.
    rows
        The rows by name.
    variants
        The attributes that make variants of an operator.
    wrong
        The rows of operators that return other results, such as those of another dtype.
    accuracy
        The largest errors of elementwise operators by dtype, over their whole domain: in units in
        the last place, and relative to one where results are smaller.
    """

    runtime: str
    versions: tuple[str, ...]
    min_opset: int
    max_opset: int
    probed: frozenset[ir.DataType]
    rows: Mapping[str, Row]
    variants: Mapping[str, str]
    wrong: Mapping[str, Row] = field(default_factory=dict)
    accuracy: Mapping[str, Mapping[ir.DataType, tuple[float, float]]] = field(default_factory=dict)

    def supports(
        self,
        op_type: str,
        dtype: ir.DataType,
        opset_version: int,
        attributes: Attributes | None = None,
    ) -> bool:
        """Return whether an operator runs; true for unprobed operators. See `Profile.supports`."""
        row = self.rows.get(op_type)
        if row is None or dtype not in self.probed:
            return True
        if attributes is not None and op_type in self.variants:
            name = self.variants[op_type]
            default = schema_attributes(op_type, opset_version).get(name)
            value = _plain(attributes.get(name, default))
            row = self.rows.get(f"{op_type}[{name}={value}]", row)
        return dtype in row.at(opset_version)


@cache
def load_kernels(file_name: str) -> KernelTable:
    """Read a kernel table of the package.

    Examples
    --------
    >>> load_kernels("kernels_onnxruntime.json").rows["Erf"].at(21) == {
    ...     ir.DataType.FLOAT16, ir.DataType.FLOAT
    ... }
    True
    """
    text = resources.files(__package__).joinpath(file_name).read_text(encoding="utf-8")
    data = json.loads(text)
    return KernelTable(
        runtime=data["runtime"],
        versions=tuple(data["versions"]),
        min_opset=data["opsets"][0],
        max_opset=data["opsets"][1],
        probed=_dtypes(data["dtypes"]),
        rows={key: _row(row) for key, row in data["kernels"].items()},
        variants=dict(_variant(key) for key in data["kernels"] if "[" in key),
        wrong={key: _row(row) for key, row in data.get("wrong", {}).items()},
        accuracy={
            key: {ir.DataType.from_numpy(np.dtype(name)): tuple(e) for name, e in row.items()}
            for key, row in data.get("accuracy", {}).items()
        },
    )


def _row(row: dict[str, str]) -> Row:
    return Row(tuple(int(opset) for opset in row), tuple(_dtypes(names) for names in row.values()))


@cache
def _dtypes(names: str) -> frozenset[ir.DataType]:
    return frozenset(ir.DataType.from_numpy(np.dtype(name)) for name in names.split())


def _variant(key: str) -> tuple[str, str]:
    op_type, condition = key.rstrip("]").split("[")
    return op_type, condition.split("=")[0]


def _plain(attribute: object) -> object:
    value = attribute.value if isinstance(attribute, ir.Attr) else attribute
    return value.decode() if isinstance(value, bytes) else value


MAIN_TYPES: dict[str, str] = {
    # The first input of these selects or counts; the kernel depends on another type.
    "BlackmanWindow": "T2",
    "ConstantOfShape": "T2",
    "EyeLike": "T2",
    "HammingWindow": "T2",
    "HannWindow": "T2",
    "If": "V",
    "Loop": "V",
    "MelWeightMatrix": "T3",
    "OneHot": "T3",
    "RandomNormalLike": "T2",
    "RandomUniformLike": "T2",
    "Scan": "V",
    "Where": "T",
}

_NAMES: dict[str, ir.DataType] = {
    "float": ir.DataType.FLOAT,
    "double": ir.DataType.DOUBLE,
}


def main_type(op_type: str, opset_version: int) -> str | ir.DataType:
    """Return the type variable of an operator that selects its kernel.

    Parameters
    ----------
    op_type
        Name of a standard operator.
    opset_version
        Version of the standard operator set.

    Returns
    -------
    str or DataType
        A type variable of the schema, or the dtype where the schema leaves no choice.

    Raises
    ------
    ValueError
        The operator set has no such operator.

    Examples
    --------
    >>> main_type("Add", 21), main_type("Where", 21), main_type("OneHot", 21)
    ('T', 'T', 'T3')
    """
    types = signature(op_type, opset_version)
    if types is None:
        raise ValueError(f"opset {opset_version} has no operator {op_type!r}")
    main = MAIN_TYPES.get(op_type) or (types.inputs or types.outputs)[0]
    assert main is not None
    return main


@cache
def allowed_dtypes(
    op_type: str, opset_version: int, variable: str | None = None
) -> frozenset[ir.DataType]:
    """Return the dtypes of a type variable of an operator in the standard.

    Parameters
    ----------
    op_type
        Name of a standard operator.
    opset_version
        Version of the standard operator set.
    variable
        Type variable or plain type of the schema; the main one unless given.

    Returns
    -------
    frozenset of DataType
        Empty when the operator set has no such operator.

    Examples
    --------
    >>> sorted(dtype.name for dtype in allowed_dtypes("BitShift", 21))
    ['UINT16', 'UINT32', 'UINT64', 'UINT8']
    >>> allowed_dtypes("BitCast", 21)
    frozenset()
    """
    try:
        name = variable or main_type(op_type, opset_version)
    except ValueError:
        return frozenset()
    if isinstance(name, ir.DataType):
        return frozenset([name])
    schema = schema_of(op_type, opset_version)
    if schema is None:
        return frozenset()
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return frozenset(_dtype(text) for text in constraints.get(name, [name]))


def holds_attributes(
    op_type: str, dtype: ir.DataType, opset_version: int, attributes: Mapping[str, ir.Attr]
) -> bool:
    """Return whether an operator holds the attributes of a node in the precision of its dtype.

    Examples
    --------
    >>> dilations = {"dilations": ir.AttrInt64s("dilations", [2])}
    >>> holds_attributes("AveragePool", ir.DataType.FLOAT, 18, dilations)
    False
    >>> holds_attributes("AveragePool", ir.DataType.FLOAT, 19, dilations)
    True
    """
    if not attributes.keys() <= schema_attributes(op_type, opset_version).keys():
        schema = schema_of(op_type, opset_version)
        if schema is None or not attributes.keys() <= schema.attributes.keys():
            return False
    numbers = (a.as_float() for a in attributes.values() if a.type == ir.AttributeType.FLOAT)
    return all(is_float32(x, dtype) for x in numbers)


def misfit(node: ir.Node, opset_version: int) -> str | None:
    """Return why an opset cannot express a node, None if it can.

    Examples
    --------
    >>> x = ir.val("x", dtype=ir.DataType.UINT32, shape=("n",))
    >>> node = ir.node("BitwiseXor", [x, x])
    >>> misfit(node, 17), misfit(node, 18)
    ('opset 17 has no BitwiseXor', None)
    """
    schema = schema_of(node.op_type, opset_version)
    if schema is None:
        return f"opset {opset_version} has no {node.op_type}"
    unknown = sorted(node.attributes.keys() - schema.attributes.keys())
    if unknown:
        return f"{node.op_type} of opset {opset_version} has no attribute {unknown[0]!r}"
    if len(node.inputs) > schema.max_input:
        return f"{node.op_type} of opset {opset_version} takes {schema.max_input} operands"
    for position, value in enumerate(node.inputs):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if value is None or value.dtype is None:
            continue
        if value.dtype not in allowed_dtypes(node.op_type, opset_version, formal.type_str):
            return f"{node.op_type} of opset {opset_version} takes no {value.dtype.numpy()}"
    return None


def _dtype(type_text: str) -> ir.DataType:
    """Return the dtype of a schema's type such as ``seq(tensor(float))``."""
    name = type_text.rsplit("(", maxsplit=1)[-1].rstrip(")")
    return _NAMES.get(name) or ir.DataType[name.upper()]
