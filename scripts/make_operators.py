"""Write the standard operators as typed methods, and their schemas as a table.

    python scripts/make_operators.py

The schemas of the installed onnx tell the operands, the attributes and the dtypes. The methods, in
`src/pytensor_onnx/graph/operator_methods.pyi`, have those of the default opset, and for operators
of later opsets those of the newest one. The table, `src/pytensor_onnx/operators/schemas.json`, has
the operators and attributes that are the same in all opsets from 18 on.
"""

import json
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
from onnx.defs import OpSchema

from pytensor_onnx.operators.inference import (
    FIRST_OPSET,
    default_of,
    read_signature,
    schema_of,
    type_of_text,
)
from pytensor_onnx.running.linker import OPSET_VERSION

SOURCE = Path(__file__).parents[1] / "src" / "pytensor_onnx"
STUB = SOURCE / "graph" / "operator_methods.pyi"
TABLE = SOURCE / "operators" / "schemas.json"
HEAD = f'''"""Operators of opset {OPSET_VERSION} and later ones, by `scripts/make_operators.py`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.emitter import Operand

class Operators:
    """Gives every standard operator as a method that emits it."""

    def op(self, op_type: str, *operands: Operand, outputs: int = 1, **attributes: Any) -> Any: ...
'''
ATTRIBUTES = {
    "INT": "int",
    "FLOAT": "float",
    "STRING": "str",
    "INTS": "Sequence[int]",
    "FLOATS": "Sequence[float]",
    "STRINGS": "Sequence[str]",
    "TENSOR": "np.ndarray | ir.TensorProtocol",
    "GRAPH": "ir.Graph",
}
LONGEST = 90


def stub() -> str:
    """Return the text of the stub, as ruff formats it."""
    newest = sorted((s for s in onnx.defs.get_all_schemas() if not s.domain), key=lambda s: s.name)
    schemas = [
        onnx.defs.get_schema(schema.name, OPSET_VERSION, "")
        if onnx.defs.has(schema.name, OPSET_VERSION)
        else schema
        for schema in newest
    ]
    text = HEAD + "".join(method(schema) for schema in schemas if not schema.deprecated)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def table() -> str:
    """Return the text of the table of schemas, a line for each operator."""
    names = sorted({s.name for s in onnx.defs.get_all_schemas() if not (s.domain or s.deprecated)})
    rows = {name: row(name) for name in names}
    lines = [f'"{name}": {json.dumps(entry)}' for name, entry in rows.items() if entry]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def row(op_type: str) -> list[Any] | None:
    """Return the schema of an operator for the table, None if its types are not always equal."""
    versions = range(FIRST_OPSET, onnx.defs.onnx_opset_version() + 1)
    signatures = {read_signature(op_type, version) for version in versions} - {None}
    if len(signatures) != 1:
        return None
    types = signatures.pop()
    operands = words(types.inputs) + (" ..." if types.variadic else "")
    schemas = [schema for version in versions if (schema := schema_of(op_type, version))]
    first = min(schema.since_version for schema in schemas)
    defaults = [{a.name: default_of(a) for a in s.attributes.values()} for s in schemas]
    same = {
        name: value
        for name, value in sorted(defaults[-1].items())
        if all(name in other and other[name] == value for other in defaults)
    }
    needed = [name for name, value in same.items() if value is ...]
    optional = {name: value for name, value in same.items() if value is not ...}
    first = first if first > FIRST_OPSET else 1
    return [operands, words(types.outputs), types.required, first, optional, needed]


def words(types: Sequence[str | ir.DataType | None]) -> str:
    """Return types as words, with a question mark for any type."""
    return " ".join("?" if t is None else t if isinstance(t, str) else t.name for t in types)


def method(schema: OpSchema) -> str:
    """Return the declaration of an operator."""
    several = schema.max_output > 1
    attributes = sorted(
        (attribute(a) for a in schema.attributes.values() if a.type.name in ATTRIBUTES),
        key=lambda text: ("=" in text, text),
    )
    attributes += ["outputs: int = 1"] if several else []
    operands, variadic = operand_list(schema)
    if attributes and not variadic:
        attributes.insert(0, "*")
    parameters = ", ".join(["self", *operands, *attributes])
    result = "Any" if several else "ir.Value"
    doc = textwrap.indent(docstring(schema), " " * 8)
    return f"\n    def {schema.name}({parameters}) -> {result}:\n{doc}\n"


def operand_list(schema: OpSchema) -> tuple[list[str], bool]:
    """Return the parameters of the operands, and whether the last takes any number of them."""
    parameters = []
    for i, operand in enumerate(schema.inputs):
        if operand.option == OpSchema.FormalParameterOption.Variadic:
            return [*parameters, f"*{name_of(operand.name)}: Operand"], True
        default = " = None" if i >= schema.min_input else ""
        parameters.append(f"{name_of(operand.name)}: Operand{default}")
    return [*parameters, "/"] if parameters else [], False


def attribute(schema: OpSchema.Attribute) -> str:
    """Return the parameter of an attribute."""
    text = f"{name_of(schema.name)}: {ATTRIBUTES[schema.type.name]}"
    if schema.required:
        return text
    default = default_of(schema)
    shown = repr(default) if isinstance(default, int | str) else "..."
    return f"{text} = {shown}"


def docstring(schema: OpSchema) -> str:
    """Return the first sentence of an operator's documentation, and the dtypes that it takes."""
    text = re.sub(r"[*`\\]|<[^>]+>", "", " ".join(schema.doc.split()))
    sentence = re.split(r"(?<=[a-z\])])[.:](?:\s|$)", text, maxsplit=1)[0].strip().replace('"', "'")
    dtypes = [
        textwrap.fill(
            f"{c.type_param_str}: {', '.join(dtype_names(c.allowed_type_strs))}.",
            LONGEST,
            subsequent_indent="    ",
        )
        for c in schema.type_constraints
    ]
    summary = textwrap.shorten(sentence.rstrip(".") + ".", LONGEST - 6, placeholder=" …")
    later = [f"Since opset {schema.since_version}."] if schema.since_version > OPSET_VERSION else []
    return "\n".join([f'"""{summary}', "", *later, *dtypes, '"""'])


def dtype_names(types: list[str]) -> list[str]:
    """Return the dtypes of tensors by NumPy's names, and other types as the schema has them."""
    found = [type_of_text(text) for text in types]
    strings = {ir.DataType.STRING: "string"}
    return sorted(
        {strings.get(t) or str(t.numpy()) if isinstance(t, ir.DataType) else t for t in found}
    )


def name_of(name: str) -> str:
    """Return a name as a Python identifier."""
    return f"{name}_" if keyword.iskeyword(name) else name


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
    TABLE.write_text(table(), encoding="utf-8")
