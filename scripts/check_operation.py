"""List the parts that an operation has or lacks: ``python -m scripts.check_operation softplus``.

The argument is the name of a record in ``tests/operations``. A line on a missing part names the
file to edit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import applys_between
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.elemwise import Elemwise

import pytensor_onnx
from pytensor_onnx import export_onnx, from_onnx, native
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.functions.registry import definition_of
from scripts.measure_accuracy import rows_before
from tests.functions.special.accuracy import DTYPES
from tests.operations import OPERATIONS, Operation
from tests.operations.regions import Accuracy

ROOT = Path(__file__).parents[1]
Line = tuple[str, bool, str]
"""A part of an operation, whether the operation has the part, and the file to edit."""


def op_of(variable: Variable) -> Op:
    """Return the Op that makes a variable, the scalar one of an elementwise operation."""
    assert variable.owner is not None
    op = variable.owner.op
    return op.scalar_op if isinstance(op, Elemwise) else op


def lines_of(operation: Operation) -> Iterator[Line]:
    """Yield a line for each part of an operation."""
    inputs, outputs = [], []
    for group in operation.groups([x for x in operation.dtypes if x.startswith("float")]):
        inputs += group.inputs
        outputs += group.outputs
    op = op_of(outputs[0])
    name = type(op).__name__
    definition = definition_of(type(op))
    where = Path(definition.expression.__code__.co_filename).name if definition else ""
    yield f"a definition of {name}, or a lowering", *_exported(inputs, outputs)
    if definition:
        has_docstring = bool(definition.expression.__doc__)
        yield "a docstring with domain, error bound and cost", has_docstring, f"functions: {where}"
    own = [x for x in type(op).__mro__ if x not in ScalarOp.__mro__]
    has_pullback = any({"pullback", "L_op", "grad"} & vars(x).keys() for x in own)
    yield "a gradient", has_pullback, "pullback= of @operation, or `pullback` of the Op"
    point = "slope (or at=) of its record in tests/operations"
    yield "points at which the gradient is tested", operation.slope is not None, point
    yield "a kind of operation for the fuzzer", bool(operation.fuzz), "fuzz= of its record"
    if operation.fuzz:
        is_known = hasattr(pt, operation.name) or hasattr(pytensor_onnx, operation.name)
        where = "the fuzzer draws functions of pytensor.tensor and public ones of pytensor_onnx"
        yield "a name that the fuzzer knows", is_known, where
    if definition and isinstance(op, ScalarOp):
        yield "exact values by regions", operation.accuracy is not None, "accuracy= of its record"
        for dtype in DTYPES:
            where = "kernel= of its record; run scripts/write_special_kernels.py, native/build.py"
            yield f"a native kernel for {dtype}", native.has_kernel(f"{name}_{dtype}"), where
        yield "kernels that are tested", bool(operation.kernel), "kernel= of its record"
        rows, again = rows_before().get(name, []), f"python -m scripts.measure_accuracy {name}"
        yield "rows in the page of accuracy", bool(rows), again
        above = list(_above_bounds(operation.accuracy, rows)) if operation.accuracy else []
        where = f"{'; '.join(above)}: mend it, or bound= of its regions; {again}"
        yield "errors in that page within their bounds", not above, where
    if hasattr(pytensor_onnx, operation.name):
        listed = (ROOT / "docs/reference/api/index.md").read_text(encoding="utf-8").split()
        where = "docs/reference/api/index.md"
        yield "a line in the reference, as it is public", operation.name in listed, where
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    is_told = operation.name in changes or not type(op).__module__.startswith("pytensor_onnx")
    yield "a line in CHANGELOG.md, if users see the operation", is_told, "CHANGELOG.md"


def _above_bounds(accuracy: Accuracy, rows: list[str]) -> Iterator[str]:
    """Yield the measured errors that are above the bounds of their regions."""
    measured = {cells[2]: cells[3:5] for cells in ([x.strip() for x in r.split("|")] for r in rows)}
    for region in accuracy.regions:
        for dtype, cell in zip(DTYPES, measured.get(region.label, ("", "")), strict=True):
            if cell and not float(cell.split("/")[0]) <= region.bound:
                yield f"{cell.split()[0]} ulp of {region.bound:g} in {region.label}, {dtype}"


def _exported(inputs: list[Variable], outputs: list[Variable]) -> tuple[bool, str]:
    """Return whether a file of an operation can be made and imported, and why not."""
    try:
        program = export_onnx(inputs, outputs, verify=False)
        graph = from_onnx(program.proto)
    except PyTensorONNXError as error:
        return False, str(error)
    wanted = type(op_of(outputs[0]))
    found = {type(op_of(node.outputs[0])) for node in applys_between([], graph.outputs)}
    return wanted in found, "the import of a function of this name: src/pytensor_onnx/importing"


def main(names: list[str]) -> int:
    """Print the parts of operations, and return the number of missing parts."""
    missing = 0
    for name in names:
        if name not in OPERATIONS:
            print(f"{name}: no record in tests/operations; add it to OPERATIONS of its family")
            missing += 1
            continue
        print(name)
        for what, holds, where in lines_of(OPERATIONS[name]):
            print(f"  {'has  ' if holds else 'lacks'} {what}" + ("" if holds else f": {where}"))
            missing += not holds
    return missing


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(min(main(sys.argv[1:]), 1))
