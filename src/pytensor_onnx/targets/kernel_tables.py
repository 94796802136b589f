"""Kernel tables: the dtypes in which a runtime implements each operator of each opset."""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from pytensor_onnx.targets.schema import default_attribute

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
            value = _plain(attributes.get(name, default_attribute(op_type, name, opset_version)))
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
