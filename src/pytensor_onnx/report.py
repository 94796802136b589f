"""The description of an exported model in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx_ir as ir

if TYPE_CHECKING:
    from pytensor_onnx.program import ONNXProgram


def report_program(program: ONNXProgram) -> str:
    """Return what a reader wants to know of a model before using it."""
    from pytensor_onnx.program import describe, weight_bytes

    model = program.model
    graph = model.graph
    operators = Counter(_operator(node) for node in graph.all_nodes())
    functions = [f"{_function(f)}: {len(f)} nodes" for f in model.functions.values()]
    state = [f"{s.name} -> {s.next_name}" for s in program._states]
    sections = [
        "# ONNX model",
        f"opset {graph.opset_imports['']}, IR version {model.ir_version}, "
        f"target {program.target}, made by {model.producer_name} {model.producer_version} "
        f"with PyTensor {model.metadata_props.get('pytensor_version', '?')}",
        _section("Inputs", map(describe, program.inputs)),
        _section("Outputs", map(describe, graph.outputs)),
        _section("State", state),
        _section("Operators", (f"{name}: {count}" for name, count in sorted(operators.items()))),
        _section("Functions", functions),
        _section(
            "Size",
            [
                f"{sum(operators.values())} nodes",
                f"{len(graph.initializers)} constants, {weight_bytes(model):,} bytes",
            ],
        ),
        _section("Changes for the target", program.changes),
        _section("Verification", [program.verification]),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _operator(node: ir.Node) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def _function(function: ir.Function) -> str:
    return f"{function.domain}::{function.name}"


def _section(title: str, lines: Iterable[str]) -> str:
    listing = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n\n{listing}" if listing else ""
