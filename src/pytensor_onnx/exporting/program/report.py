"""Describe an exported model in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx_ir as ir

from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.graph.weights import weight_bytes

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram


def report_program(program: ONNXProgram) -> str:
    """Return the report on a model in Markdown."""
    model = program.model
    graph = model.graph
    operators = operator_counts(model)
    functions = [f"{name}: {count} nodes" for name, count in function_sizes(model)]
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
        _section("Precision", program.losses),
        _section("Verification", [program.verification]),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def operator_counts(model: ir.Model) -> Counter[str]:
    """Return the number of nodes of each operator, in subgraphs as well."""
    return Counter(
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        for node in all_nodes(model.graph)
    )


def function_sizes(model: ir.Model) -> list[tuple[str, int]]:
    """Return the number of nodes of each model-local function."""
    return [(f"{f.domain}::{f.name}", len(f)) for f in model.functions.values()]


def _section(title: str, lines: Iterable[str]) -> str:
    listing = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n\n{listing}" if listing else ""
